"""Decides whether to notify: one pure function, and a named reason for every decision."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from detectors.api import Maturity, Severity
from sentinel.alerts.incident import Change, Event, Incident

REPEAT_SECONDS = 4 * 3600.0


class Reason(StrEnum):
    """Why a notification is sent or not."""

    FIRST_NOTIFICATION = "first notification"
    ESCALATED = "got worse"
    REPEAT_DUE = "still there, repeat interval over"
    RESOLVED = "resolved"
    REOPENED = "came back, repeat interval over"
    FLAPPING = "keeps coming back"
    LOST = "log went silent"
    INHIBITED = "explained by another incident"
    TOLD_OF_ANOTHER_LOG = "told already, of another log of the same training"
    BELOW_SINK_SEVERITY = "below the sink's severity"
    PREVIEW_NOT_WANTED = "detector is a preview"
    SILENCED = "silenced"
    ALREADY_SENT = "already sent"
    NOT_SENT_BEFORE = "its beginning was not sent either"
    UNDELIVERED = "the last notification is still waiting"
    REPEAT_NOT_DUE = "repeat interval not over"
    WITHDRAWN = "withdrawn before it was tried, explained by another incident"
    NOTHING_NEW = "not found again since the last notification"

    @property
    def sends(self) -> bool:
        """Whether this is a reason to send."""
        return self in _SENDING


_SENDING = {
    Reason.FIRST_NOTIFICATION,
    Reason.ESCALATED,
    Reason.REPEAT_DUE,
    Reason.RESOLVED,
    Reason.REOPENED,
    Reason.FLAPPING,
    Reason.LOST,
}


@dataclass(frozen=True)
class SinkPolicy:
    """Which incidents a sink wants."""

    name: str
    min_severity: Severity = Severity.WARNING
    include_preview: bool = False
    repeat_seconds: float = REPEAT_SECONDS

    def wants(self, incident: Incident) -> bool:
        """Whether the sink asks for incidents of this severity and maturity."""
        heard = self.include_preview or incident.maturity is not Maturity.PREVIEW
        return heard and incident.severity >= self.min_severity


@dataclass(frozen=True)
class Sent:
    """The last notification of one event of an incident to a sink, and the incident at that time."""

    at: float
    severity: Severity
    findings: int
    waiting: bool = False  # not delivered yet
    untried: bool = False  # not delivered because the receiver takes nothing now, and never tried
    given_up: bool = False  # nothing about the incident was ever delivered, nor will be


@dataclass(frozen=True)
class Decision:
    """``event`` is what the notification says, if ``reason.sends``."""

    event: Event
    reason: Reason


def decide(
    change: Change,
    policy: SinkPolicy,
    silenced: bool,
    sent: Mapping[Event, Sent],
    now: float,
    told: Severity | None = None,
) -> Decision:
    """Decide whether a sink hears of a change; ``sent`` is what it was sent of this incident before.

    ``told`` is the severity that the sink was sent for another log of the same training.

    A REPEAT change asks for a reminder of an incident that did not change. The first notification of an
    open incident is FIRING, even if the incident has escalated or a silence has ended since.
    """
    reason = _reason(change, policy, silenced, sent, now)
    if reason is Reason.FIRST_NOTIFICATION and told is not None and told >= change.incident.severity:
        reason = Reason.TOLD_OF_ANOTHER_LOG
    late = reason is Reason.FIRST_NOTIFICATION and change.event is not Event.LOST
    return Decision(Event.FIRING if late else change.event, reason)


def _reason(
    change: Change, policy: SinkPolicy, silenced: bool, sent: Mapping[Event, Sent], now: float
) -> Reason:
    incident = change.incident
    if change.event is Event.RESOLVED:  # who heard of the beginning hears of the end, silenced or not
        if all(one.given_up for one in sent.values()):
            return Reason.NOT_SENT_BEFORE
        return Reason.ALREADY_SENT if _knows_the_end(incident, sent) else Reason.RESOLVED
    if incident.inhibited_by is not None:
        return Reason.INHIBITED
    if incident.severity < policy.min_severity:
        return Reason.BELOW_SINK_SEVERITY
    if incident.maturity is Maturity.PREVIEW and not policy.include_preview:
        return Reason.PREVIEW_NOT_WANTED
    if silenced:
        return Reason.SILENCED
    if not sent:
        return Reason.FIRST_NOTIFICATION
    match change.event:
        case Event.ESCALATED if incident.severity > max(s.severity for s in sent.values()):
            return Reason.ESCALATED
        case Event.LOST if Event.LOST not in sent or incident.findings > sent[Event.LOST].findings:
            return Reason.LOST
        case Event.FLAPPING if Event.FLAPPING not in sent:
            return Reason.FLAPPING
        case Event.REOPENED:
            due = _repeat_reason(change, policy, sent, now)
            return Reason.REOPENED if due is Reason.REPEAT_DUE else due
        case Event.REPEAT:
            return _repeat_reason(change, policy, sent, now)
    return Reason.ALREADY_SENT


def _knows_the_end(incident: Incident, sent: Mapping[Event, Sent]) -> bool:
    """Whether the sink's last notification was the resolution. ``findings`` only grows, so it orders them."""
    if (over := sent.get(Event.RESOLVED)) is None:
        return False
    return over.findings >= min(incident.findings, max(one.findings for one in sent.values()))


def _repeat_reason(change: Change, policy: SinkPolicy, sent: Mapping[Event, Sent], now: float) -> Reason:
    last = max(sent.values(), key=lambda s: (s.findings, s.at))  # the clock may have been set back since
    if any(s.waiting for s in sent.values()):
        return Reason.UNDELIVERED
    if 0 <= now - last.at < policy.repeat_seconds:
        return Reason.REPEAT_NOT_DUE
    if change.incident.findings <= last.findings:
        return Reason.NOTHING_NEW
    return Reason.REPEAT_DUE
