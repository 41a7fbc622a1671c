"""What the state directory holds, for a person: what is wrong first, the worst first."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from sentinel.calibration.calibration import Calibration, PageSent
from sentinel.calibration.check import CalibrationCheck
from sentinel.common.paths import closure
from sentinel.common.text import clean_text, duration_text
from sentinel.detectors.api import Severity
from sentinel.incidents.incident import Incident
from sentinel.notifications.silences import Silence
from sentinel.runs.copied_logs import silence_of
from sentinel.runs.log import StoredRun
from sentinel.runs.metadata import RunMetadata
from sentinel.runs.state import GOING_ON, RunState, RunStatus, run_status, silent_seconds
from sentinel.runs.state_codec import unpacked
from sentinel.runs.training_groups import trainings_of
from sentinel.sources.identity import NO_LABEL, Label
from sentinel.sources.location import Url
from sentinel.storage.decisions import DecisionRow
from sentinel.storage.lock import watching_process
from sentinel.storage.outbox import Undelivered
from sentinel.storage.store import BEHIND, RunRow, Store

MAX_ROWS = 20
"""The most runs, incidents and notifications that are shown."""
MAX_DECISIONS = 10
"""The most decisions that are shown."""

_MAX_DECISIONS_READ = 1000  # of all runs, of which those of the selected runs are shown
_OUTAGE_SECONDS = 120.0
"""A watch records every ten seconds that it looked; a long read or a long `poll_seconds` may delay it."""

UNKNOWN = "unknown"
"""The state of a run whose saved state cannot be decoded."""
STATES = (
    RunState.CRASHED,
    RunState.STALLED,
    RunState.SILENT,
    RunState.LOST,
    UNKNOWN,
    RunState.RUNNING,
    RunState.PREEMPTED,
    RunState.FINISHED,
)
"""The worst first."""
_OVER_STATES = (RunState.CRASHED, RunState.PREEMPTED, RunState.FINISHED, RunState.LOST)
NEED_EVIDENCE = STATES[: STATES.index(RunState.RUNNING)]


class KnownRun(msgspec.Struct, frozen=True):
    """A run as the last commit left it. ``severity`` is that of its worst open incident.

    ``training`` is the id of the log that stands for its training: its own id, if there is no other.
    """

    row: RunRow
    training: str
    state: str
    evidence: str
    stored: StoredRun | None  # None if its saved state cannot be decoded
    not_judged: str | None  # why
    severity: Severity
    lag: float  # seconds since its log was last read to its end; 0 if nothing of it is left to read

    @property
    def status(self) -> RunStatus:
        """The state, with the evidence for it; a state that is not known counts as lost."""
        return RunStatus(RunState(self.state) if self.state in [*RunState] else RunState.LOST, self.evidence)

    @property
    def label(self) -> Label:
        """What a tracker calls the run."""
        return self.stored.metadata.label if self.stored else NO_LABEL

    @property
    def name(self) -> str:
        """Its name below what is watched; its path, if a watch of an earlier version recorded it."""
        return (self.stored.name if self.stored else "") or self.row.path

    @property
    def goes_on(self) -> bool:
        """Whether the run goes on, as far as is known."""
        return self.state in GOING_ON

    @property
    def points(self) -> int:
        """The number of points that were read."""
        return self.stored.metadata.points if self.stored else 0

    @property
    def last_step(self) -> int | None:
        return self.stored.metadata.last_step if self.stored else None

    @property
    def planned_steps(self) -> int | None:
        """The step at which the run is planned to end."""
        return int(self.stored.planned_steps) if self.stored and self.stored.planned_steps else None

    @property
    def first_time(self) -> float | None:
        """When the first point was logged, in seconds since the epoch."""
        return self.stored.metadata.first_time if self.stored else None

    @property
    def last_time(self) -> float | None:
        """When the last point was logged, in seconds since the epoch."""
        return self.stored.metadata.last_time if self.stored else None

    @property
    def lasted(self) -> float | None:
        """The seconds from the first point to the last."""
        return self.stored.metadata.lasted_seconds if self.stored else None

    @property
    def to_go(self) -> float | None:
        """The seconds to the planned end, of a run that goes on."""
        if self.stored is None or self.state != RunState.RUNNING:
            return None
        return self.stored.metadata.seconds_to_go(self.stored.planned_steps)

    @property
    def stands_for_its_training(self) -> bool:
        """Whether it is the log that stands for its training."""
        return self.training == self.row.id

    @property
    def badness(self) -> tuple[bool, int, int, bool, int, float]:
        """What orders runs from the worst to the best. First come those in trouble that go on."""
        severity = -self.severity if self.severity > Severity.INFO else Severity.CLEAN
        calm = not severity or self.is_over
        return (
            calm,
            severity,
            -self.severity,
            self.not_judged is None,
            STATES.index(self.state),
            -self.row.updated,
        )

    @property
    def is_over(self) -> bool:
        """Whether nothing more is expected of the run."""
        return self.state in _OVER_STATES


class Status(msgspec.Struct, frozen=True):
    """The content of a state directory. Runs and incidents are sorted, the worst first.

    The logs of one training stand together, the one that stands for it first.
    """

    now: float
    runs: Sequence[KnownRun]
    incidents: Sequence[Incident]
    undelivered: Sequence[Undelivered]
    undelivered_count: int
    decisions: Sequence[DecisionRow]
    silences: Sequence[Silence]
    feedback: Mapping[tuple[str, str], int]  # by detector and verdict
    health: Mapping[str, Any]
    process: str | None  # the id of the process that watches
    outage: str  # that a watch runs and records nothing; empty if not
    answers: Mapping[str, str]  # what people said of incidents, by their ids
    promise: Calibration | None = None  # of a calibration
    pages: Sequence[PageSent] = ()  # since the promise
    useful: Sequence[str] = ()  # runs of which somebody called an incident so

    @property
    def trouble(self) -> str:
        """That nothing is recorded now, and why; empty if all is well."""
        return self.outage if self.process else "no watch is running"

    @property
    def present(self) -> Sequence[Incident]:
        """The incidents of runs that go on, as far as is known."""
        over = _over(self.runs)
        return [incident for incident in self.incidents if incident.run not in over and not incident.ended]

    @property
    def realised(self) -> CalibrationCheck | None:
        """What came of the promise; None without one."""
        if self.promise is None:
            return None
        extents = {run.row.id: run.stored.metadata.extent for run in self.runs if run.stored}
        crashed = {run.row.id for run in self.runs if run.state == RunState.CRASHED}
        return CalibrationCheck.of(self.promise, extents, crashed, self.pages, self.useful)


ReadRun = Callable[[RunRow], StoredRun | None]
"""Gives what is stored of a run; None if that cannot be decoded."""


def status(
    store: Store,
    state_dir: Path,
    now: float,
    selects: Callable[[str], bool] = lambda _: True,
    read_run: ReadRun | None = None,
    promise: Calibration | None = None,
) -> Status:
    """Read the store in a state directory. ``selects`` chooses runs by their path.

    ``read_run`` gives the state of a run, by default each time from the store. What came of a ``promise`` is
    counted over the selected runs.
    """
    read_run = read_run or partial(stored_run, store)
    stops = store.stops.all()
    run_rows = {row.id: row for row in store.runs() if selects(row.path)}
    open_ = [incident for incident in store.incidents(open_only=True) if incident.run in run_rows]
    process = watching_process(state_dir)
    health_records = store.health()
    lags = {
        run: lag
        for key, by_run in health_records.items()
        if key.endswith(BEHIND)
        for run, lag in by_run.items()
    }
    health = {key: value for key, value in health_records.items() if not key.endswith(BEHIND)}
    worst: dict[str, Severity] = {}
    for incident in open_:
        worst[incident.run] = max(worst.get(incident.run, Severity.CLEAN), incident.severity)
    stalls = {
        incident.run: str(incident.evidence["goes_on"])
        for incident in open_
        if "goes_on" in incident.evidence
    }
    stored_runs = {run: read_run(row) for run, row in run_rows.items()}
    trainings = _best_log_by_run(stored_runs)
    runs = []
    for row in run_rows.values():
        stored = stored_runs[row.id]
        run_state, evidence = _standing(row, stored, now, stalls.get(row.id, ""))
        stop = stops[row.id].reason if row.id in stops else None
        severity = worst.get(row.id, Severity.CLEAN)
        lag = lags.get(row.id, 0.0)
        runs.append(KnownRun(row, trainings[row.id], run_state, evidence, stored, stop, severity, lag))
    decisions = [decision for decision in store.decisions(_MAX_DECISIONS_READ) if decision.run in run_rows]
    return Status(
        now=now,
        runs=together(runs),
        incidents=worst_first(open_, runs),
        undelivered=store.outbox.undelivered(MAX_ROWS),
        undelivered_count=store.outbox.undelivered_count(),
        decisions=decisions[:MAX_DECISIONS],
        silences=store.silences(now),
        feedback=store.feedback.counts(),
        health=health,
        process=process,
        outage=_outage(health, process, now),
        answers=store.feedback.verdicts(),
        promise=promise,
        pages=() if promise is None else store.feedback.pages(promise.since),
        useful=() if promise is None else store.feedback.useful_runs(),
    )


def _best_log_by_run(runs: Mapping[str, StoredRun | None]) -> dict[str, str]:
    """Return by the id of each run that of the log which says most about its training.

    That is one which knows how the training ended, else the one with most settings.
    """

    def information(run: str) -> tuple[bool, int, str]:
        stored = runs[run]
        return (stored.ending is None, -len(stored.metadata.config), run) if stored else (True, 0, run)

    best_first = ((run, runs[run]) for run in sorted(runs, key=information))
    return trainings_of({run: stored.metadata if stored else RunMetadata() for run, stored in best_first})


def worst_first(incidents: Sequence[Incident], runs: Iterable[KnownRun]) -> list[Incident]:
    """Sort incidents as they are shown: first those of runs that go on, and of each the worst."""
    over = _over(runs)
    return sorted(
        incidents,
        key=lambda incident: (
            incident.run in over or bool(incident.ended),
            -incident.severity,
            incident.inhibited_by is not None,
        ),
    )


def _over(runs: Iterable[KnownRun]) -> set[str]:
    """Return the ids of the runs whose trainings are over: one log says so, or none goes on."""
    trainings: dict[str, list[KnownRun]] = {}
    for run in runs:
        trainings.setdefault(run.training, []).append(run)
    return {
        run.row.id
        for logs in trainings.values()
        if all(log.is_over for log in logs) or any(log.is_over and log.state != RunState.LOST for log in logs)
        for run in logs
    }


def together(runs: Sequence[KnownRun]) -> list[KnownRun]:
    """Sort the runs: the worst training first, and in each first the log that stands for it."""
    trainings: dict[str, list[KnownRun]] = {}
    for run in sorted(runs, key=lambda run: run.badness):
        trainings.setdefault(run.training, []).append(run)
    return [
        run
        for logs in trainings.values()
        for run in sorted(logs, key=lambda run: not run.stands_for_its_training)
    ]


def stored_run(store: Store, row: RunRow) -> StoredRun | None:
    """Return what is stored of a run; None if it cannot be decoded."""
    try:
        return StoredRun.from_state(unpacked(store.run_state(row.id) or b""))
    except ValueError:
        return None


def _standing(row: RunRow, stored: StoredRun | None, now: float, goes_on: str) -> tuple[str, str]:
    """Return the state of a run and the evidence for it.

    ``goes_on`` is what an open stall says of its process.
    """
    if stored is None:
        return UNKNOWN, "its saved state cannot be decoded; a watch reads its log from the start"
    try:
        metadata = stored.metadata
        location = Url.parse(row.path) or Path(row.path)
        idle_seconds = silence_of(location, metadata, now)
        if idle_seconds is not None and math.isinf(idle_seconds) and not metadata.heard:
            # Its last words, which may say that it ended, are not read yet.
            idle_seconds = silent_seconds(location, metadata.last_time, now)
        if idle_seconds is None and isinstance(location, Path) and closure(location):
            idle_seconds = max(0.0, now - row.updated)  # another user's log, of which its watch knows
        status = run_status(
            stored.ending, idle_seconds, metadata.lost_after_seconds, goes_on=metadata.goes_on or goes_on
        )
    except Exception as error:  # noqa: BLE001  one run must not keep a person from the others
        return UNKNOWN, f"it cannot be looked at: {clean_text(f'{type(error).__name__}: {error}', 200)}"
    return status.state, status.evidence


def _outage(health: Mapping[str, Any], process: str | None, now: float) -> str:
    polled_at = [value["polled_at"] for value in health.values() if isinstance(value, dict)]
    idle_seconds = now - max(polled_at, default=now)
    if idle_seconds > _OUTAGE_SECONDS and process:
        return f"process {process} watches, but recorded nothing for {duration_text(idle_seconds)}"
    return ""
