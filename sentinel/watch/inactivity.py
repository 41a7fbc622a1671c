"""Judges what time alone shows: runs that become inactive, alone or together, runs that end, and siblings."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sentinel.common.clock import Clock
from sentinel.common.fault_isolation import Guard
from sentinel.config.file import ProcessConfig
from sentinel.detectors.run_checks import Together
from sentinel.incidents.incident import Change
from sentinel.pipeline import Pipeline
from sentinel.runs.continuations import Member, successors
from sentinel.runs.inactivity import Inactivity
from sentinel.runs.metadata import framework
from sentinel.runs.state import is_gone
from sentinel.runs.training_groups import TrainingEvidence, trace_of, trainings, wandb_ids
from sentinel.sources.location import Location
from sentinel.storage.store import Store
from sentinel.watch.process_monitor import ProcessMonitor, note_end
from sentinel.watch.siblings import SiblingWatch
from sentinel.watch.watched import WatchedRun

_SHORT_SECONDS = 60.0  # no rule asks about a shorter inactivity, unless its parameters say so
_MIN_PARAMETER = "least_seconds"  # the parameter of a rule that says from which inactivity on it asks
_REVIEW_GROWTH = 1 / 300  # an inactivity is judged again once it is longer by this fraction of it ...
_MAX_REVIEW_PAUSE_SECONDS = 60.0  # ... or by so much
_EVIDENCE_SECONDS = 60.0  # how long the evidence from directories about the training of a log counts


class _InactivityOverview(NamedTuple):
    """What all runs under watch say of the inactivity of each, by run id."""

    seconds: Mapping[str, float]  # since points arrived at any log of the training
    together: Mapping[str, Together]
    successors: Mapping[str, str]  # names of the runs that continue inactive ones
    first_by_kind: Mapping[object, WatchedRun]  # the first of the inactive runs of each kind; see `_kind`


class InactivityMonitor:
    """Judges the inactivity of the runs below some locations."""

    def __init__(
        self,
        pipeline: Pipeline,
        store: Store,
        locations: Sequence[Location],
        clock: Clock,
        processes: ProcessConfig,
    ) -> None:
        self._pipeline = pipeline
        self._locations = locations
        self._process_monitor = ProcessMonitor(clock, processes)
        self._siblings = SiblingWatch(pipeline, store)
        # by run id, with the time awake at which the directories were read
        self._evidence: dict[str, tuple[float, TrainingEvidence]] = {}
        thresholds = [
            parameters[_MIN_PARAMETER]
            for parameters in pipeline.checking.parameters.values()
            if _MIN_PARAMETER in parameters
        ]
        self._short_seconds = min([_SHORT_SECONDS, *thresholds])

    def alarmed(self, ring: Callable[[], None]) -> AbstractContextManager[object]:
        """Surround a watch in which the end of a process calls ``ring``."""
        return self._process_monitor.alarmed(ring)

    def ended(
        self, runs: Collection[WatchedRun], awake: float, read_runs: Callable[[Sequence[WatchedRun]], object]
    ) -> list[WatchedRun]:
        """Return the runs to review: those whose processes have ended, those that lost a rank, and those of
        which a hang diagnosis is ready.

        ``read_runs`` reads what the ended processes wrote last.
        """
        self._process_monitor.seek(runs, awake)
        ends = self._process_monitor.ended(runs)
        over = [end.watched for end in ends]
        guard = Guard()
        if over:
            read_runs([*over, *_logs_of_same_processes(over, runs)])
        for end in ends:
            guard(end.watched.run_pipeline.log.run, "the end of its process", partial(note_end, end, ends))
        ended_runs = [*over, *self._process_monitor.news(runs, awake)]
        for watched in ended_runs:
            watched.review_at = -math.inf
        return ended_runs

    def news(
        self, runs: Sequence[WatchedRun], awake: float, now: float, guard: Guard
    ) -> dict[str, Sequence[Change]]:
        """Return the changes by run id. ``awake`` is the time awake, ``now`` the time of day.

        Runs that were over at their initial scan are not expected to grow. Runs that are over by now are
        judged to their end.
        """
        for watched in runs:
            if watched.may_turn_out_over(awake):
                turns_out_over = partial(watched.turns_out_over, now)
                watched.past = bool(guard(watched.run_pipeline.log.run, "the review", turns_out_over))
        changes = self._review([watched for watched in runs if not watched.past], awake, now, guard)
        finalized = self._finalize(runs, awake, guard)
        for later in (finalized, self._resumed(runs, guard), self._siblings.news(runs, guard)):
            for run_id, new_changes in later.items():
                changes[run_id] = [*changes.get(run_id, ()), *new_changes]
        return changes

    def _review(
        self, expected: Sequence[WatchedRun], awake: float, now: float, guard: Guard
    ) -> dict[str, Sequence[Change]]:
        """Judge the inactivity of the runs for which it is time."""
        seconds = {watched.run_pipeline.id: watched.silent_seconds(awake) for watched in expected}
        overview = self._overview(expected, seconds, awake, now)
        changes: dict[str, Sequence[Change]] = {}
        for watched in expected:
            run = watched.run_pipeline.log.run
            is_short = seconds[run.id] <= self._short_seconds
            if awake < watched.review_at or (is_short and not self._may_change(watched)):
                continue
            pause = min(seconds[run.id] * _REVIEW_GROWTH, _MAX_REVIEW_PAUSE_SECONDS)
            watched.review_at = awake + pause
            judge = partial(self._judge_inactivity, watched, self._inactivity(watched, overview), awake)
            changes[run.id] = guard(run, "the review", judge) or ()
        return changes

    def _overview(
        self, expected: Sequence[WatchedRun], seconds: Mapping[str, float], awake: float, now: float
    ) -> _InactivityOverview:
        inactive = [watched for watched in expected if seconds[watched.run_pipeline.id] > self._short_seconds]
        if not inactive:
            return _InactivityOverview(seconds, {}, {}, {})
        training = self._trainings(expected, awake)
        return _InactivityOverview(
            _seconds_of_trainings(expected, seconds, training),
            self._together(expected, training, awake, now),
            _successors(expected, inactive),
            _first_by_kind(inactive),
        )

    def _inactivity(self, watched: WatchedRun, overview: _InactivityOverview) -> Inactivity:
        run = watched.run_pipeline.log.run
        return Inactivity(
            seconds=overview.seconds[run.id],
            pauses=watched.intervals,
            together=overview.together.get(run.id),
            goes_on_in=overview.successors.get(run.id),
            likewise=partial(_earlier_end, watched, overview.first_by_kind),
            process=partial(self._process_monitor.process, watched),
            log_is_gone=partial(is_gone, run.path),
            standstill=partial(self._process_monitor.hang_diagnosis, watched),
            dead_rank=self._process_monitor.dead_rank(watched),
            ranks=self._process_monitor.ranks(watched),
            shortages=partial(self._process_monitor.shortages, watched),
        )

    def _judge_inactivity(self, watched: WatchedRun, inactivity: Inactivity, awake: float) -> list[Change]:
        log = watched.run_pipeline.log
        before = log.ending
        stalled = self._pipeline.review(watched.run_pipeline, inactivity)
        watched.uncommitted += log.ending is not before  # so that it is recorded soon
        seconds = watched.silent_seconds(awake)
        return [*stalled, *watched.run_pipeline.incidents.silent(seconds, watched.lost_after_seconds)]

    def _finalize(
        self, runs: Iterable[WatchedRun], awake: float, guard: Guard
    ) -> dict[str, Sequence[Change]]:
        """Judge the runs that are newly over to their end."""
        over = [watched for watched in runs if watched.is_newly_over(awake)]
        advances = self._pipeline.finalize([watched.run_pipeline for watched in over])
        changes: dict[str, Sequence[Change]] = {}
        for watched, advance in zip(over, advances, strict=True):
            watched.uncommitted += 1  # so that its last state is recorded
            changes[advance.run_pipeline.id] = advance.changes
            if advance.failure:
                guard.failures[advance.run_pipeline.id] = advance.failure
        return changes

    def _resumed(self, runs: Sequence[WatchedRun], guard: Guard) -> dict[str, Sequence[Change]]:
        """Withdraw the ends of runs that another log goes on with, as W&B's id tells."""
        ended = [
            watched
            for watched in runs
            if watched.finalized is not None and watched.run_pipeline.incidents.watches_run
        ]
        last: dict[str, float] = {}  # when points of an id arrived last
        for watched in runs if ended else ():
            if watched.run_pipeline.log.metadata.points:
                for id_ in _wandb_ids(watched):
                    last[id_] = max(watched.arrived_at, last.get(id_, -math.inf))
        changes: dict[str, Sequence[Change]] = {}
        for watched in ended:
            if any(last.get(id_, -math.inf) > watched.arrived_at for id_ in _wandb_ids(watched)):
                go_on = watched.run_pipeline.incidents.go_on_elsewhere
                changes[watched.run_pipeline.id] = (
                    guard(watched.run_pipeline.log.run, "going on", go_on) or ()
                )
                watched.uncommitted += 1
        return changes

    def _may_change(self, watched: WatchedRun) -> bool:
        """Return whether time may bring something to a run whose points arrived a moment ago."""
        run_pipeline = watched.run_pipeline
        return run_pipeline.incidents.watches_run or bool(
            run_pipeline.log.metadata.process_gone or self._process_monitor.dead_rank(watched)
        )

    def _together(
        self, expected: Iterable[WatchedRun], training: Mapping[str, str], awake: float, now: float
    ) -> Mapping[str, Together]:
        """Return by run id that all runs of its location are inactive, for those that became so together.

        A run that was inactive before the last one grew for the last time, by more than a usual pause, is
        not among them. The logs of one training are one run.
        """
        by_location: dict[Location, list[WatchedRun]] = {}
        for watched in expected:
            log = watched.run_pipeline.log
            if log.metadata.points and log.ending is None:
                by_location.setdefault(self._location(log.run.path), []).append(watched)
        together: dict[str, Together] = {}
        for location, runs in by_location.items():
            shortest = min(awake - watched.arrived_at for watched in runs)
            members = [run for run in runs if awake - run.arrived_at - shortest <= run.usual_pause_seconds]
            since = datetime.fromtimestamp(now - shortest, UTC).strftime("%Y-%m-%d %H:%M UTC")
            same_step = len({watched.run_pipeline.log.metadata.last_step for watched in members}) == 1
            count = len({training[watched.run_pipeline.id] for watched in members})
            group = Together(count, str(location), since, shortest, same_step)
            together |= {watched.run_pipeline.id: group for watched in members}
        return together

    def _trainings(self, expected: Iterable[WatchedRun], awake: float) -> Mapping[str, str]:
        """Return the id of the first log of its training by run id."""
        self._evidence = {watched.run_pipeline.id: self._evidence_of(watched, awake) for watched in expected}
        return trainings({run: evidence for run, (_, evidence) in self._evidence.items()})

    def _evidence_of(self, watched: WatchedRun, awake: float) -> tuple[float, TrainingEvidence]:
        """Return what a log says of its training, and when its directory was read for that."""
        run = watched.run_pipeline.id
        metadata = watched.run_pipeline.log.metadata
        read_at, evidence = self._evidence.get(run, (-math.inf, None))
        if evidence is None or awake - read_at > _EVIDENCE_SECONDS:
            return awake, trace_of(run, metadata)
        return read_at, evidence.until(metadata)

    def _location(self, path: Location) -> Location:
        """Return the watched location that a run lies below."""
        if isinstance(path, Path):
            local = (location for location in self._locations if isinstance(location, Path))
            return next((location for location in local if path.is_relative_to(location)), path)
        return self._locations[0]


def _wandb_ids(watched: WatchedRun) -> frozenset[str]:
    path = watched.run_pipeline.log.run.path
    return wandb_ids(path) if isinstance(path, Path) else frozenset()


def _logs_of_same_processes(over: Sequence[WatchedRun], runs: Iterable[WatchedRun]) -> list[WatchedRun]:
    """Return the other logs of the processes that write some logs: one may say why they ended."""
    ids = {watched.run_pipeline.id for watched in over}
    writers = {name for watched in over for name in watched.run_pipeline.log.metadata.writers}
    others = (watched for watched in runs if watched.run_pipeline.id not in ids)
    return [other for other in others if not writers.isdisjoint(other.run_pipeline.log.metadata.writers)]


def _seconds_of_trainings(
    expected: Sequence[WatchedRun], seconds: Mapping[str, float], training: Mapping[str, str]
) -> Mapping[str, float]:
    """Return the ``seconds`` since points arrived by run id, but 0 for all logs of a training except the one
    that got points last.

    Loggers write when they like: what a training prints is there long before the record of W&B. A training
    that ended by one of its logs is not inactive.
    """
    last: dict[str, WatchedRun] = {}
    for run in sorted(
        expected, key=lambda run: (seconds[run.run_pipeline.id], run.run_pipeline.log.planned_steps is None)
    ):
        last.setdefault(training[run.run_pipeline.id], run)
    return {run: seconds[run] if last[training[run]].run_pipeline.id == run else 0.0 for run in seconds}


def _successors(expected: Iterable[WatchedRun], inactive: Sequence[WatchedRun]) -> dict[str, str]:
    """Return by the id of an inactive run the name of the run in the same directory that continues it."""
    ids = {run.run_pipeline.id for run in inactive}
    paths = [run.run_pipeline.log.run.path for run in inactive]
    parents = {path.parent for path in paths if isinstance(path, Path)}
    members = []
    names = {}
    for watched in expected if parents else ():
        log = watched.run_pipeline.log
        if isinstance(log.run.path, Path) and log.run.path.parent in parents:
            kind = (str(log.run.path.parent), log.run.format, framework(log.streams.values()))
            members.append(Member(log.run.id, kind, log.metadata, log.run.id in ids))
            names[log.run.id] = log.name
    return {run_id: names[successor] for run_id, successor in successors(members).items()}


def _first_by_kind(runs: Iterable[WatchedRun]) -> Mapping[object, WatchedRun]:
    """Return the run of each kind that became inactive first."""
    first: dict[object, WatchedRun] = {}
    for watched in sorted(runs, key=lambda run: run.arrived_at):
        first.setdefault(_kind_of_end(watched), watched)
    return first


def _kind_of_end(watched: WatchedRun) -> object:
    """Return what runs have in common that end alike: format, tree, first and last step."""
    log = watched.run_pipeline.log
    tree = log.run.path.parents[1:2] if isinstance(log.run.path, Path) else ()
    return log.run.format, (*tree,), log.metadata.first_step, log.metadata.last_step


def _earlier_end(watched: WatchedRun, first_by_kind: Mapping[object, WatchedRun]) -> str:
    """Return how a run of the same kind ended at the same step before; empty if none did.

    One that became inactive without an end marker counts, too: a person was asked about it, and two runs
    that get stuck one after the other are hardly at the same step.
    """
    other = first_by_kind.get(_kind_of_end(watched))
    min_seconds = max(watched.usual_pause_seconds, _SHORT_SECONDS)
    if other is None or watched.arrived_at - other.arrived_at <= min_seconds:
        return ""
    log = other.run_pipeline.log
    return f"{log.name} {'ended' if log.ending else 'stopped'} at the same step {log.metadata.last_step}"
