"""What the state directory holds, for a person: what is wrong first, the worst first."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sentinel.calibration.calibration import Calibration, PageSent
from sentinel.calibration.check import CalibrationCheck
from sentinel.common.text import clean_text, duration_text
from sentinel.detectors.api import Severity
from sentinel.incidents.incident import Incident
from sentinel.incidents.json_body import incident_body
from sentinel.notifications.silences import Silence
from sentinel.runs.copied_logs import silence_of
from sentinel.runs.log import StoredRun
from sentinel.runs.metadata import RunMetadata
from sentinel.runs.state import RunState, standing
from sentinel.runs.state_codec import unpacked
from sentinel.runs.training_groups import trainings_of
from sentinel.sources.location import Url
from sentinel.storage.decisions import DecisionRow
from sentinel.storage.lock import watching_process
from sentinel.storage.outbox import Undelivered
from sentinel.storage.store import BEHIND, RunRow, Store

SHOWN = 20
"""The most runs, incidents and notifications that are shown."""
DECISIONS_SHOWN = 10
"""The most decisions that are shown."""

_DECISIONS_READ = 1000  # of all runs, of which those of the wanted runs are shown
_OUTAGE_SECONDS = 120.0
"""A watch records every ten seconds that it looked; a long read or a long `poll_seconds` may delay it."""

_UNKNOWN = "unknown"
STATES = (
    RunState.CRASHED,
    RunState.STALLED,
    RunState.SILENT,
    RunState.LOST,
    _UNKNOWN,
    RunState.RUNNING,
    RunState.PREEMPTED,
    RunState.FINISHED,
)
"""The worst first."""
NEED_EVIDENCE = STATES[: STATES.index(RunState.RUNNING)]


@dataclass(frozen=True)
class KnownRun:
    """A run as the last commit left it. ``severity`` is that of its worst open incident.

    ``training`` is the id of the log that stands for its training: its own id, if there is no other.
    """

    row: RunRow
    training: str
    state: str
    evidence: str
    kept: StoredRun | None  # None if its saved state cannot be decoded
    not_judged: str | None  # why
    severity: Severity
    lag: float  # seconds since its log was last read to its end; 0 if nothing of it is left to read

    @property
    def last_step(self) -> int | None:
        """The last step that was read."""
        return self.kept.metadata.last_step if self.kept else None

    @property
    def stands_for_its_training(self) -> bool:
        """Whether it is the log that stands for its training."""
        return self.training == self.row.id

    @property
    def badness(self) -> tuple[int, bool, int, float]:
        """What orders runs from the worst to the best."""
        return -self.severity, self.not_judged is None, STATES.index(self.state), -self.row.updated


@dataclass(frozen=True)
class Status:
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
    def realised(self) -> CalibrationCheck | None:
        """What came of the promise; None without one."""
        if self.promise is None:
            return None
        extents = {run.row.id: run.kept.metadata.extent for run in self.runs if run.kept}
        crashed = {run.row.id for run in self.runs if run.state == RunState.CRASHED}
        return CalibrationCheck.of(self.promise, extents, crashed, self.pages, self.useful)


Remember = Callable[[RunRow], StoredRun | None]
"""Gives what is stored of a run; None if that cannot be decoded."""


def status(
    store: Store,
    place: Path,
    now: float,
    wanted: Callable[[str], bool] = lambda _: True,
    remember: Remember | None = None,
    promise: Calibration | None = None,
) -> Status:
    """Read the store in a state directory. ``wanted`` chooses runs by their path.

    ``remember`` reads the state of a run, by default each time from the store. What came of a ``promise`` is
    counted over the wanted runs.
    """
    remember = remember or partial(remembered, store)
    stops = store.stops.all()
    rows = {row.id: row for row in store.runs() if wanted(row.path)}
    open_ = [incident for incident in store.incidents(open_only=True) if incident.run in rows]
    process = watching_process(place)
    recorded = store.health()
    lags = {
        run: lag for key, by_run in recorded.items() if key.endswith(BEHIND) for run, lag in by_run.items()
    }
    health = {key: value for key, value in recorded.items() if not key.endswith(BEHIND)}
    worst: dict[str, Severity] = {}
    for incident in open_:
        worst[incident.run] = max(worst.get(incident.run, Severity.CLEAN), incident.severity)
    stalls = {
        incident.run: str(incident.evidence["goes_on"])
        for incident in open_
        if "goes_on" in incident.evidence
    }
    memory = {run: remember(row) for run, row in rows.items()}
    of_training = _trainings(memory)
    runs = []
    for row in rows.values():
        kept = memory[row.id]
        state, evidence = _standing(row, kept, now, stalls.get(row.id, ""))
        stop = stops[row.id].reason if row.id in stops else None
        severity = worst.get(row.id, Severity.CLEAN)
        lag = lags.get(row.id, 0.0)
        runs.append(KnownRun(row, of_training[row.id], state, evidence, kept, stop, severity, lag))
    return Status(
        now=now,
        runs=together(runs),
        incidents=worst_first(open_),
        undelivered=store.outbox.undelivered(SHOWN),
        undelivered_count=store.outbox.undelivered_count(),
        decisions=[decision for decision in store.decisions(_DECISIONS_READ) if decision.run in rows][
            :DECISIONS_SHOWN
        ],
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


def _trainings(memory: Mapping[str, StoredRun | None]) -> dict[str, str]:
    """By the id of each run, that of the log of its training that tells most of how the training is.

    That is one which knows how the training ended, else the one with most settings.
    """

    def informed(run: str) -> tuple[bool, int, str]:
        kept = memory[run]
        return (kept.ending is None, -len(kept.metadata.config), run) if kept else (True, 0, run)

    best_first = ((run, memory[run]) for run in sorted(memory, key=informed))
    return trainings_of({run: kept.metadata if kept else RunMetadata() for run, kept in best_first})


def worst_first(incidents: Sequence[Incident]) -> list[Incident]:
    """Incidents as they are shown."""
    return sorted(incidents, key=lambda incident: (-incident.severity, incident.inhibited_by is not None))


def together(runs: Sequence[KnownRun]) -> list[KnownRun]:
    """Return the worst training first, and in each the log that stands for it."""
    trainings: dict[str, list[KnownRun]] = {}
    for run in sorted(runs, key=lambda run: run.badness):
        trainings.setdefault(run.training, []).append(run)
    return [
        run
        for logs in trainings.values()
        for run in sorted(logs, key=lambda run: not run.stands_for_its_training)
    ]


def remembered(store: Store, row: RunRow) -> StoredRun | None:
    """Return what is stored of a run; None if it cannot be decoded."""
    try:
        return StoredRun.from_state(unpacked(store.run_state(row.id) or b""))
    except ValueError:
        return None


def _standing(row: RunRow, kept: StoredRun | None, now: float, goes_on: str) -> tuple[str, str]:
    """Return the state of a run and the evidence for it. ``goes_on`` is what an open stall says of its
    process.
    """
    if kept is None:
        return _UNKNOWN, "its saved state cannot be decoded; a watch reads its log from the start"
    try:
        silent = silence_of(Url.parse(row.path) or Path(row.path), kept.metadata, now)
        stands = standing(
            kept.ending, silent, kept.metadata.lost_after_seconds, goes_on=kept.metadata.goes_on or goes_on
        )
    except Exception as error:  # noqa: BLE001  one run must not keep a person from the others
        return _UNKNOWN, f"it cannot be looked at: {clean_text(f'{type(error).__name__}: {error}', 200)}"
    return stands.state, stands.evidence


def _outage(health: Mapping[str, Any], process: str | None, now: float) -> str:
    looks = [value["looked_at"] for value in health.values() if isinstance(value, dict)]
    silent = now - max(looks, default=now)
    if silent > _OUTAGE_SECONDS and process:
        return f"process {process} watches, but recorded nothing for {duration_text(silent)}"
    return ""


def document(shown: Status) -> dict[str, Any]:
    """Return the whole status, JSON-able."""
    return {
        "schema": 1,
        "runs": [
            {
                "path": run.row.path,
                "source": run.row.format,
                "training": run.training,
                "state": run.state,
                "state_evidence": run.evidence,
                "last_step": run.last_step,
                "stopped": run.not_judged,
                "read_at": run.row.updated,
                "lag_seconds": run.lag,
            }
            for run in shown.runs
        ],
        "incidents": [{**incident_body(incident), "run": incident.run} for incident in shown.incidents],
        "undelivered": [vars(waiting) for waiting in shown.undelivered],
        "undelivered_count": shown.undelivered_count,
        "decisions": [vars(decision) for decision in shown.decisions],
        "silences": [vars(silence) for silence in shown.silences],
        "feedback": [
            {"detector": detector, "verdict": verdict, "incidents": count}
            for (detector, verdict), count in shown.feedback.items()
        ],
        "promise": None if shown.realised is None else _promise_body(shown.realised),
        "watch_process": shown.process,
        "health": {**shown.health, **({"outage": shown.outage} if shown.outage else {})},
    }


def _promise_body(realised: CalibrationCheck) -> dict[str, Any]:
    return {
        **realised.promise.model_dump(mode="json"),
        "highest": realised.promise.highest,
        "realised": {
            "runs": realised.runs,
            "paged": realised.paged,
            "false": realised.false,
            "pages": realised.pages,
            "run_days": realised.run_days,
            "answers": realised.answers,
        },
        "beyond": realised.beyond,
        "advice": realised.advice,
    }
