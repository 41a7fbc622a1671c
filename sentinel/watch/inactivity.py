"""Judges what time alone shows: logs that fall silent, alone or together, runs that end, and siblings."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from sentinel.common.clock import Clock
from sentinel.common.fault_isolation import Guard
from sentinel.config.file import ProcessConfig
from sentinel.detectors.run_checks import Together
from sentinel.incidents.incident import Change
from sentinel.pipeline import Pipeline
from sentinel.runs.continuations import Member, successors
from sentinel.runs.inactivity import Quiet
from sentinel.runs.metadata import framework
from sentinel.runs.state import is_gone
from sentinel.runs.training_groups import Trace, trace_of, trainings
from sentinel.sources.location import Place
from sentinel.storage.store import Store
from sentinel.watch.process_monitor import Ends, note
from sentinel.watch.siblings import SiblingWatch
from sentinel.watch.watched import Watched

_SHORT_SECONDS = 60.0  # no rule asks about a shorter silence, unless its parameters say so
_LEAST = "least_seconds"
_LONGER = 1 / 300  # a silence is judged again once it is longer by this share of it ...
_LONGEST_PAUSE_SECONDS = 60.0  # ... or by so much
_LOOKED_UP_SECONDS = 60.0  # for so long it counts what directories tell of the training of a log


class Silences:
    """Judges the silence of the runs below some places."""

    def __init__(
        self,
        pipeline: Pipeline,
        store: Store,
        places: Sequence[Place],
        clock: Clock,
        processes: ProcessConfig,
    ) -> None:
        self._pipeline = pipeline
        self._places = places
        self._ends = Ends(clock, processes)
        self._siblings = SiblingWatch(pipeline, store)
        self._traces: dict[str, tuple[float, Trace]] = {}  # by run id, with the time awake of the look
        asked = [of_rule[_LEAST] for of_rule in pipeline.checking.parameters.values() if _LEAST in of_rule]
        self._short_seconds = min([_SHORT_SECONDS, *asked])

    def alarmed(self, ring: Callable[[], None]) -> AbstractContextManager[object]:
        """Surround a watch in which the end of a process calls ``ring``."""
        return self._ends.alarmed(ring)

    def ended(
        self, runs: Iterable[Watched], awake: float, read: Callable[[Sequence[Watched]], object]
    ) -> list[Watched]:
        """The runs to review: their processes have ended since, and what these left was read, or some of
        their ranks have, or it is known by now where these stand.
        """
        self._ends.seek([*runs], awake)
        ended = self._ends.ended(runs)
        over = [watched for watched, *_ in ended]
        guard = Guard()
        if over:
            read(over)
        for watched, words, how in ended:
            guard(watched.tracker.log.run, "the end of its process", partial(note, watched, words, how))
        ended_or_known = [*over, *self._ends.news(runs, awake)]
        for watched in ended_or_known:
            watched.review_at = -math.inf
        return ended_or_known

    def news(
        self, runs: Sequence[Watched], awake: float, now: float, guard: Guard
    ) -> dict[str, Sequence[Change]]:
        """The changes by run id. ``awake`` is the time awake, ``now`` the time of day.

        Runs that were over when they were first seen are not expected to grow. Runs that are over by now are
        judged to their end.
        """
        expected = [watched for watched in runs if not watched.past]
        seconds = {watched.tracker.id: watched.silent_seconds(awake) for watched in expected}
        silent = [watched for watched in expected if seconds[watched.tracker.id] > self._short_seconds]
        training = self._trainings(expected, awake) if silent else {}
        together = self._together(expected, training, awake, now) if silent else {}
        going_on = _continued(expected, silent)
        likes = _likes(silent)
        heard = _heard(expected, seconds, training) if silent else {}
        changes: dict[str, Sequence[Change]] = {}
        for watched in expected:
            run = watched.tracker.log.run
            own = seconds[run.id]
            if awake < watched.review_at or (own <= self._short_seconds and not self._may_change(watched)):
                continue
            watched.review_at = awake + min(own * _LONGER, _LONGEST_PAUSE_SECONDS)
            process = partial(self._ends.process, watched)
            of_all = together.get(run.id)
            goes_on_in = going_on.get(run.id)
            gone = partial(is_gone, run.path)
            like = partial(_ended_likewise, watched, likes)
            stands = partial(self._ends.standstill, watched)
            dead = self._ends.dead_rank(watched)
            short = partial(self._ends.shortages, watched)
            silence = Quiet(
                heard.get(run.id, own),
                watched.intervals,
                of_all,
                goes_on_in,
                like,
                process,
                gone,
                stands,
                dead,
                self._ends.ranks(watched),
                short,
            )
            judge = partial(self._judge, watched, silence, awake)
            changes[run.id] = guard(run, "the review", judge) or ()
        over = [watched for watched in runs if watched.is_newly_over(awake)]
        for watched, advance in zip(over, self._pipeline.conclude([w.tracker for w in over]), strict=True):
            watched.uncommitted += 1  # so that its last state is recorded
            changes[advance.tracker.id] = [*changes.get(advance.tracker.id, ()), *advance.changes]
            if advance.failure:
                guard.failures[advance.tracker.id] = advance.failure
        for run_id, new in self._siblings.news(runs, guard).items():
            changes[run_id] = [*changes.get(run_id, ()), *new]
        return changes

    def _judge(self, watched: Watched, silence: Quiet, awake: float) -> list[Change]:
        log = watched.tracker.log
        before = log.ending
        stalled = self._pipeline.review(watched.tracker, silence)
        watched.uncommitted += log.ending is not before  # so that it is recorded soon
        seconds = watched.silent_seconds(awake)
        return [*stalled, *watched.tracker.book.silent(seconds, watched.lost_after_seconds)]

    def _may_change(self, watched: Watched) -> bool:
        """Whether time may bring something to a run that was heard a moment ago."""
        tracker = watched.tracker
        return tracker.book.watches_run or bool(tracker.log.facts.gone or self._ends.dead_rank(watched))

    def _together(
        self, expected: Iterable[Watched], training: Mapping[str, str], awake: float, now: float
    ) -> Mapping[str, Together]:
        """By run id, that all runs of its place are silent, for those that fell silent together.

        A run that was silent before the last one grew for the last time, by more than a usual pause, is not
        among them. The logs of one training are one run.
        """
        members: dict[Place, list[Watched]] = {}
        for watched in expected:
            log = watched.tracker.log
            if log.facts.points and log.ending is None:
                members.setdefault(self._place(log.run.path), []).append(watched)
        told: dict[str, Together] = {}
        for place, runs in members.items():
            shortest = min(awake - watched.arrived_at for watched in runs)
            fell = [w for w in runs if awake - w.arrived_at - shortest <= w.usual_pause_seconds]
            since = datetime.fromtimestamp(now - shortest, UTC).strftime("%Y-%m-%d %H:%M UTC")
            same = len({w.tracker.log.facts.last_step for w in fell}) == 1
            count = len({training[w.tracker.id] for w in fell})
            told |= {w.tracker.id: Together(count, str(place), since, shortest, same) for w in fell}
        return told

    def _trainings(self, expected: Iterable[Watched], awake: float) -> Mapping[str, str]:
        """By run id, that of the first log of its training."""
        self._traces = {watched.tracker.id: self._looked_up(watched, awake) for watched in expected}
        return trainings({run: trace for run, (_, trace) in self._traces.items()})

    def _looked_up(self, watched: Watched, awake: float) -> tuple[float, Trace]:
        """What a log tells of its training, and when its directory was looked at."""
        run = watched.tracker.id
        facts = watched.tracker.log.facts
        at, trace = self._traces.get(run, (-math.inf, None))
        if trace is None or awake - at > _LOOKED_UP_SECONDS:
            return awake, trace_of(run, facts)
        return at, trace.until(facts)

    def _place(self, path: Place) -> Place:
        """The watched place that a run lies below."""
        if isinstance(path, Path):
            above = (place for place in self._places if isinstance(place, Path))
            return next((place for place in above if path.is_relative_to(place)), path)
        return self._places[0]


def _heard(
    expected: Sequence[Watched], seconds: Mapping[str, float], training: Mapping[str, str]
) -> Mapping[str, float]:
    """The ``seconds`` since points arrived by run id, but 0 for all logs of a training except the one heard
    last.

    Loggers write when they like: what a training prints is there long before the record of W&B. A training
    that ended by one of its logs is not silent.
    """
    last: dict[str, Watched] = {}
    for run in sorted(
        expected, key=lambda run: (seconds[run.tracker.id], run.tracker.log.planned_steps is None)
    ):
        last.setdefault(training[run.tracker.id], run)
    return {run: seconds[run] if last[training[run]].tracker.id == run else 0.0 for run in seconds}


def _continued(expected: Iterable[Watched], silent: Sequence[Watched]) -> dict[str, str]:
    """By the id of a silent run, the name of the run in the same directory that continues it."""
    asked = {run.tracker.id for run in silent}
    parents = {path.parent for run in silent if isinstance(path := run.tracker.log.run.path, Path)}
    members = []
    names = {}
    for watched in expected if parents else ():
        log = watched.tracker.log
        if isinstance(log.run.path, Path) and log.run.path.parent in parents:
            kind = (str(log.run.path.parent), log.run.format, framework(log.streams.values()))
            members.append(Member(log.run.id, kind, log.facts, asked=log.run.id in asked))
            names[log.run.id] = log.name
    return {of: names[by] for of, by in successors(members).items()}


def _likes(runs: Iterable[Watched]) -> Mapping[object, Watched]:
    """The run that fell silent first of those that end alike, by what these have in common: format, tree and
    last step.
    """
    first: dict[object, Watched] = {}
    for watched in sorted(runs, key=lambda run: run.arrived_at):
        first.setdefault(_kind(watched), watched)
    return first


def _kind(watched: Watched) -> object:
    log = watched.tracker.log
    tree = log.run.path.parents[1:2] if isinstance(log.run.path, Path) else ()
    return log.run.format, (*tree,), log.facts.first_step, log.facts.last_step


def _ended_likewise(watched: Watched, likes: Mapping[object, Watched]) -> str:
    """How a run of the same kind ended at the same step before; empty if none did.

    One that fell silent without a word counts, too: a person was asked about it, and two runs that get stuck
    one after the other are hardly at the same step.
    """
    between = max(watched.usual_pause_seconds, _SHORT_SECONDS)
    other = likes.get(_kind(watched))
    if other is None or watched.arrived_at - other.arrived_at <= between:
        return ""
    log = other.tracker.log
    return f"{log.name} {'ended' if log.ending else 'stopped'} at the same step {log.facts.last_step}"
