"""The JSON form of an incident: the same object in a replay's report and in a webhook's body."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from typing_extensions import TypedDict

from sentinel.incidents.incident import Incident


class CauseBody(TypedDict):
    """A catalogue entry that may be behind an incident, the likeliest first.

    ``score`` says how likely it is; it is null where nothing in the run speaks for the entry.
    """

    id: str
    score: float | None
    reason: str
    unmet_needs: list[str]  # what the entry needs and the run does not show


class IncidentBody(TypedDict):
    """An incident. Times are ISO 8601 in UTC, null where the log has none."""

    id: str
    detector: str
    severity: str
    maturity: str
    signal: str
    tag: str
    catalogue: list[str]
    onset_step: int
    fired_step: int
    fired_time: str | None
    resolved_step: int | None
    reopen_count: int
    state: str
    ended: str  # how the run ended with it; empty if it did not
    inhibited_by: str | None
    trouble: str  # the id of the incident with which the trouble was found; its own where it is the first
    summary: str
    evidence: dict[str, Any]
    causes: list[CauseBody]


def incident_body(incident: Incident) -> IncidentBody:
    """Return the JSON form of an incident."""
    return IncidentBody(
        id=incident.id,
        detector=plain(incident.detector),
        severity=incident.severity.label,
        maturity=incident.maturity.value,
        signal=plain(incident.signal),
        tag=plain(incident.tag),
        catalogue=list(incident.catalogue),
        onset_step=incident.onset_step,
        fired_step=incident.fired_step,
        fired_time=utc_text(incident.fired_time),
        resolved_step=incident.resolved_step,
        reopen_count=incident.reopen_count,
        state=incident.state.value,
        ended=plain(incident.ended),
        inhibited_by=incident.inhibited_by,
        trouble=incident.trouble,
        summary=plain(incident.summary),
        evidence=plain(incident.evidence),
        causes=[
            CauseBody(
                id=cause.id,
                score=cause.score if cause.favoured else None,
                reason=cause.reason,
                unmet_needs=list(cause.unmet_needs),
            )
            for cause in incident.causes
        ],
    )


def utc_text(seconds: float | None) -> str | None:
    """Return seconds since the epoch as `2026-01-01T00:00:00Z`; None for what no calendar holds."""
    try:
        moment = datetime.fromtimestamp(seconds or 0.0, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None if seconds is None else moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def clock_text(seconds: float | None) -> str:
    """Return seconds since the epoch as `2026-01-01 00:00:00 UTC`; empty for what no calendar holds."""
    return (utc_text(seconds) or "").replace("T", " ").replace("Z", " UTC")


def plain(value: Any) -> Any:
    """Return a value as strict JSON holds it: names for NaN and infinities, and no lone surrogates."""
    match value:
        case Enum():
            return plain(value.value)
        case str():
            return value.encode("utf-8", "replace").decode()
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case Mapping():
            return {plain(str(key)): plain(item) for key, item in value.items()}
        case Sequence():
            return [plain(item) for item in value]
    return value
