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
from sentinel.runs.inactivity import Inactivity
from sentinel.runs.metadata import framework
from sentinel.runs.state import is_removed
from sentinel.runs.training_groups import TrainingEvidence, trace_of, trainings
from sentinel.sources.location import Location
from sentinel.storage.store import Store
from sentinel.watch.process_monitor import ProcessMonitor, note
from sentinel.watch.siblings import SiblingWatch
from sentinel.watch.watched import WatchedRun

_SHORT_SECONDS = 60.0  # no rule asks about a shorter silence, unless its parameters say so
_LEAST = "least_seconds"
_LONGER = 1 / 300  # a silence is judged again once it is longer by this share of it ...
_MAX_PAUSE_SECONDS = 60.0  # ... or by so much
_LOOKED_UP_SECONDS = 60.0  # for so long it counts what directories tell of the training of a log


class InactivityMonitor:
    """Judges the silence of the runs below some places."""

    def __init__(
        self,
        pipeline: Pipeline,
        store: Store,
        places: Sequence[Location],
        clock: Clock,
        processes: ProcessConfig,
    ) -> None:
        self._pipeline = pipeline
        self._places = places
        self._process_monitor = ProcessMonitor(clock, processes)
        self._siblings = SiblingWatch(pipeline, store)
        self._traces: dict[
            str, tuple[float, TrainingEvidence]
        ] = {}  # by run id, with the time awake of the look
        asked = [of_rule[_LEAST] for of_rule in pipeline.checking.parameters.values() if _LEAST in of_rule]
        self._short_seconds = min([_SHORT_SECONDS, *asked])

    def alarmed(self, ring: Callable[[], None]) -> AbstractContextManager[object]:
        """Surround a watch in which the end of a process calls ``ring``."""
        return self._process_monitor.alarmed(ring)

    def ended(
        self, runs: Iterable[WatchedRun], awake: float, read: Callable[[Sequence[WatchedRun]], object]
    ) -> list[WatchedRun]:
        """Return the runs to review: their processes have ended since, and what these left was read, or some
        of their ranks have, or it is known by now where these stand.
        """
        self._process_monitor.seek([*runs], awake)
        ended = self._process_monitor.ended(runs)
        over = [watched for watched, *_ in ended]
        guard = Guard()
        if over:
            read(over)
        for watched, words, how in ended:
            guard(watched.run_pipeline.log.run, "the end of its process", partial(note, watched, words, how))
        ended_or_known = [*over, *self._process_monitor.news(runs, awake)]
        for watched in ended_or_known:
            watched.review_at = -math.inf
        return ended_or_known

    def news(
        self, runs: Sequence[WatchedRun], awake: float, now: float, guard: Guard
    ) -> dict[str, Sequence[Change]]:
        """Return the changes by run id. ``awake`` is the time awake, ``now`` the time of day.

        Runs that were over when they were first seen are not expected to grow. Runs that are over by now are
        judged to their end.
        """
        expected = [watched for watched in runs if not watched.past]
        seconds = {watched.run_pipeline.id: watched.silent_seconds(awake) for watched in expected}
        silent = [watched for watched in expected if seconds[watched.run_pipeline.id] > self._short_seconds]
        training = self._trainings(expected, awake) if silent else {}
        together = self._together(expected, training, awake, now) if silent else {}
        going_on = _continued(expected, silent)
        likes = _likes(silent)
        heard = _heard(expected, seconds, training) if silent else {}
        changes: dict[str, Sequence[Change]] = {}
        for watched in expected:
            run = watched.run_pipeline.log.run
            own = seconds[run.id]
            if awake < watched.review_at or (own <= self._short_seconds and not self._may_change(watched)):
                continue
            watched.review_at = awake + min(own * _LONGER, _MAX_PAUSE_SECONDS)
            process = partial(self._process_monitor.process, watched)
            of_all = together.get(run.id)
            goes_on_in = going_on.get(run.id)
            gone = partial(is_removed, run.path)
            like = partial(_ended_likewise, watched, likes)
            stands = partial(self._process_monitor.hang_diagnosis, watched)
            dead = self._process_monitor.dead_rank(watched)
            short = partial(self._process_monitor.shortages, watched)
            silence = Inactivity(
                heard.get(run.id, own),
                watched.intervals,
                of_all,
                goes_on_in,
                like,
                process,
                gone,
                stands,
                dead,
                self._process_monitor.ranks(watched),
                short,
            )
            judge = partial(self._judge, watched, silence, awake)
            changes[run.id] = guard(run, "the review", judge) or ()
        over = [watched for watched in runs if watched.is_newly_over(awake)]
        for watched, advance in zip(
            over, self._pipeline.finalize([w.run_pipeline for w in over]), strict=True
        ):
            watched.uncommitted += 1  # so that its last state is recorded
            changes[advance.run_pipeline.id] = [*changes.get(advance.run_pipeline.id, ()), *advance.changes]
            if advance.failure:
                guard.failures[advance.run_pipeline.id] = advance.failure
        for run_id, new in self._siblings.news(runs, guard).items():
            changes[run_id] = [*changes.get(run_id, ()), *new]
        return changes

    def _judge(self, watched: WatchedRun, silence: Inactivity, awake: float) -> list[Change]:
        log = watched.run_pipeline.log
        before = log.ending
        stalled = self._pipeline.review(watched.run_pipeline, silence)
        watched.uncommitted += log.ending is not before  # so that it is recorded soon
        seconds = watched.silent_seconds(awake)
        return [*stalled, *watched.run_pipeline.incidents.silent(seconds, watched.lost_after_seconds)]

    def _may_change(self, watched: WatchedRun) -> bool:
        """Return whether time may bring something to a run that was heard a moment ago."""
        run_pipeline = watched.run_pipeline
        return run_pipeline.incidents.watches_run or bool(
            run_pipeline.log.metadata.process_gone or self._process_monitor.dead_rank(watched)
        )

    def _together(
        self, expected: Iterable[WatchedRun], training: Mapping[str, str], awake: float, now: float
    ) -> Mapping[str, Together]:
        """By run id, that all runs of its place are silent, for those that fell silent together.

        A run that was silent before the last one grew for the last time, by more than a usual pause, is not
        among them. The logs of one training are one run.
        """
        members: dict[Location, list[WatchedRun]] = {}
        for watched in expected:
            log = watched.run_pipeline.log
            if log.metadata.points and log.ending is None:
                members.setdefault(self._location(log.run.path), []).append(watched)
        told: dict[str, Together] = {}
        for place, runs in members.items():
            shortest = min(awake - watched.arrived_at for watched in runs)
            fell = [w for w in runs if awake - w.arrived_at - shortest <= w.usual_pause_seconds]
            since = datetime.fromtimestamp(now - shortest, UTC).strftime("%Y-%m-%d %H:%M UTC")
            same = len({w.run_pipeline.log.metadata.last_step for w in fell}) == 1
            count = len({training[w.run_pipeline.id] for w in fell})
            told |= {w.run_pipeline.id: Together(count, str(place), since, shortest, same) for w in fell}
        return told

    def _trainings(self, expected: Iterable[WatchedRun], awake: float) -> Mapping[str, str]:
        """By run id, that of the first log of its training."""
        self._traces = {watched.run_pipeline.id: self._looked_up(watched, awake) for watched in expected}
        return trainings({run: trace for run, (_, trace) in self._traces.items()})

    def _looked_up(self, watched: WatchedRun, awake: float) -> tuple[float, TrainingEvidence]:
        """Return what a log tells of its training, and when its directory was looked at."""
        run = watched.run_pipeline.id
        facts = watched.run_pipeline.log.metadata
        at, trace = self._traces.get(run, (-math.inf, None))
        if trace is None or awake - at > _LOOKED_UP_SECONDS:
            return awake, trace_of(run, facts)
        return at, trace.until(facts)

    def _location(self, path: Location) -> Location:
        """Return the watched place that a run lies below."""
        if isinstance(path, Path):
            above = (place for place in self._places if isinstance(place, Path))
            return next((place for place in above if path.is_relative_to(place)), path)
        return self._places[0]


def _heard(
    expected: Sequence[WatchedRun], seconds: Mapping[str, float], training: Mapping[str, str]
) -> Mapping[str, float]:
    """Return the ``seconds`` since points arrived by run id, but 0 for all logs of a training except the one
    heard last.

    Loggers write when they like: what a training prints is there long before the record of W&B. A training
    that ended by one of its logs is not silent.
    """
    last: dict[str, WatchedRun] = {}
    for run in sorted(
        expected, key=lambda run: (seconds[run.run_pipeline.id], run.run_pipeline.log.planned_steps is None)
    ):
        last.setdefault(training[run.run_pipeline.id], run)
    return {run: seconds[run] if last[training[run]].run_pipeline.id == run else 0.0 for run in seconds}


def _continued(expected: Iterable[WatchedRun], silent: Sequence[WatchedRun]) -> dict[str, str]:
    """By the id of a silent run, the name of the run in the same directory that continues it."""
    asked = {run.run_pipeline.id for run in silent}
    parents = {path.parent for run in silent if isinstance(path := run.run_pipeline.log.run.path, Path)}
    members = []
    names = {}
    for watched in expected if parents else ():
        log = watched.run_pipeline.log
        if isinstance(log.run.path, Path) and log.run.path.parent in parents:
            kind = (str(log.run.path.parent), log.run.format, framework(log.streams.values()))
            members.append(Member(log.run.id, kind, log.metadata, asked=log.run.id in asked))
            names[log.run.id] = log.name
    return {of: names[by] for of, by in successors(members).items()}


def _likes(runs: Iterable[WatchedRun]) -> Mapping[object, WatchedRun]:
    """Return the run that fell silent first of those that end alike, by what these have in common: format,
    tree and last step.
    """
    first: dict[object, WatchedRun] = {}
    for watched in sorted(runs, key=lambda run: run.arrived_at):
        first.setdefault(_kind(watched), watched)
    return first


def _kind(watched: WatchedRun) -> object:
    log = watched.run_pipeline.log
    tree = log.run.path.parents[1:2] if isinstance(log.run.path, Path) else ()
    return log.run.format, (*tree,), log.metadata.first_step, log.metadata.last_step


def _ended_likewise(watched: WatchedRun, likes: Mapping[object, WatchedRun]) -> str:
    """Return how a run of the same kind ended at the same step before; empty if none did.

    One that fell silent without a word counts, too: a person was asked about it, and two runs that get stuck
    one after the other are hardly at the same step.
    """
    between = max(watched.usual_pause_seconds, _SHORT_SECONDS)
    other = likes.get(_kind(watched))
    if other is None or watched.arrived_at - other.arrived_at <= between:
        return ""
    log = other.run_pipeline.log
    return f"{log.name} {'ended' if log.ending else 'stopped'} at the same step {log.metadata.last_step}"
