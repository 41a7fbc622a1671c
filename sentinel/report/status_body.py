"""The JSON form of what a state directory holds."""

from typing import Any, Literal

from typing_extensions import TypedDict

from sentinel.calibration.check import CalibrationCheck
from sentinel.incidents.incident import Incident
from sentinel.incidents.json_body import IncidentBody, incident_body, plain, utc_text
from sentinel.notifications.silences import Silence
from sentinel.report.run_body import RunBody
from sentinel.report.status import UNKNOWN, KnownRun, Status
from sentinel.runs.state import RunState
from sentinel.storage.decisions import DecisionRow
from sentinel.storage.outbox import Undelivered


class WatchedRunBody(RunBody):
    """A run under watch. ``read_at`` is when something of it was last recorded, and ``lag_seconds`` how long
    its log has not been read to its end, 0 if nothing of it is left to read.
    """

    read_at: str | None
    lag_seconds: float


class LocatedIncidentBody(IncidentBody):
    """An incident with the name and the path of its run."""

    run: str
    path: str


class DecisionBody(TypedDict):
    """A decision whether a sink hears of an event of an incident, and the name of its reason."""

    at: str | None
    run: str
    path: str
    incident: str
    detector: str
    sink: str
    event: str
    reason: str


class UndeliveredBody(TypedDict):
    """A notification that waits or ``failed``. ``next_attempt`` is null if it only waits for its turn."""

    sink: str
    incident: str
    attempts: int
    failed: bool
    error: str | None
    next_attempt: str | None


class SilenceBody(TypedDict):
    """A time in which nothing is sent about some runs, or about one ``incident``, which is else empty.

    ``run`` and ``detector`` are globs.
    """

    id: str
    run: str
    detector: str
    until: str | None
    reason: str
    created_at: str | None
    incident: str


class FeedbackBody(TypedDict):
    """How many incidents of a detector people called ``useful`` or a ``false-alarm``."""

    detector: str
    verdict: str
    incidents: int


class StatusBody(TypedDict):
    """`sentinel status --format json`. Runs and incidents stand with the worst first.

    ``promise`` is what a calibration promised and what came of it, null without one. ``watch_process`` is the
    process that watches now, null if none does, and ``health`` what the parts of the watch last recorded.
    """

    schema: Literal[1]
    runs: list[WatchedRunBody]
    incidents: list[LocatedIncidentBody]
    undelivered: list[UndeliveredBody]
    undelivered_count: int
    decisions: list[DecisionBody]
    silences: list[SilenceBody]
    feedback: list[FeedbackBody]
    promise: dict[str, Any] | None
    watch_process: str | None
    health: dict[str, Any]


def document(status: Status) -> StatusBody:
    """Return the whole status."""
    runs = {run.row.id: run for run in status.runs}
    return {
        "schema": 1,
        "runs": [watched_run(run) for run in status.runs],
        "incidents": [located(incident, runs[incident.run]) for incident in status.incidents],
        "undelivered": [_undelivered(waiting) for waiting in status.undelivered],
        "undelivered_count": status.undelivered_count,
        "decisions": [_decision(decision, runs[decision.run]) for decision in status.decisions],
        "silences": [_silence(silence) for silence in status.silences],
        "feedback": [
            {"detector": detector, "verdict": verdict, "incidents": count}
            for (detector, verdict), count in status.feedback.items()
        ],
        "promise": None if status.realised is None else _promise(status.realised),
        "watch_process": status.process,
        "health": {**status.health, **({"outage": status.outage} if status.outage else {})},
    }


def run_body(run: KnownRun) -> RunBody:
    """Return a run that a watch recorded."""
    return {
        "run": plain(run.name),
        "display_name": run.label.name or None,
        "project": run.label.project or None,
        "path": plain(run.row.path),
        "source": run.row.format,
        "framework": run.stored.framework if run.stored else None,
        "training": plain(run.training),
        "state": "unknown" if run.state == UNKNOWN else RunState(run.state),
        "state_evidence": run.evidence,
        "stopped": run.not_judged,
        "points": run.points,
        "first_step": run.stored.metadata.first_step if run.stored else None,
        "last_step": run.last_step,
        "attempts": run.stored.attempts if run.stored else 0,
    }


def watched_run(run: KnownRun) -> WatchedRunBody:
    """Return a run that a watch recorded, and how far it was read."""
    return {**run_body(run), "read_at": utc_text(run.row.updated), "lag_seconds": run.lag}


def located(incident: Incident, run: KnownRun) -> LocatedIncidentBody:
    """Return an incident of a run that a watch recorded."""
    return {**incident_body(incident), "run": plain(run.name), "path": plain(run.row.path)}


def _decision(decision: DecisionRow, run: KnownRun) -> DecisionBody:
    return {
        "at": utc_text(decision.at),
        "run": plain(run.name),
        "path": plain(run.row.path),
        "incident": decision.incident,
        "detector": plain(decision.detector),
        "sink": plain(decision.sink),
        "event": decision.event.value,
        "reason": decision.reason.value,
    }


def _undelivered(waiting: Undelivered) -> UndeliveredBody:
    return {
        "sink": plain(waiting.sink),
        "incident": waiting.incident,
        "attempts": waiting.attempts,
        "failed": bool(waiting.failed),
        "error": plain(waiting.error),
        "next_attempt": utc_text(waiting.next_attempt),
    }


def _silence(silence: Silence) -> SilenceBody:
    return {
        "id": silence.id,
        "run": plain(silence.run),
        "detector": plain(silence.detector),
        "until": utc_text(silence.until),
        "reason": plain(silence.reason),
        "created_at": utc_text(silence.created_at),
        "incident": silence.incident,
    }


def _promise(check: CalibrationCheck) -> dict[str, Any]:
    return {
        **check.promise.model_dump(mode="json"),
        "highest": check.promise.highest,
        "realised": {
            "runs": check.runs,
            "paged": check.paged,
            "false": check.false,
            "pages": check.pages,
            "run_days": check.run_days,
            "answers": check.answers,
        },
        "beyond": check.beyond,
        "advice": check.advice,
    }
