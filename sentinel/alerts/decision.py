"""Decides whether to notify: one pure function, and a named reason for every decision."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from detectors.api import Maturity, Severity
from sentinel.alerts.incident import Change, Event, Incident
from sentinel.alerts.routing import EVERYTHING, QuietHours, Route

REPEAT_SECONDS = 4 * 3600.0


class Reason(StrEnum):
    """Why a notification is sent or not.

    The value is a stable name, which the state directory and JSON reports keep. ``text`` is the wording for
    people, and may change. ``sends`` is true for a reason to send.
    """

    text: str
    sends: bool

    def __new__(cls, name: str, text: str, sends: bool = False) -> Self:
        """A member with its wording."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.text = text
        member.sends = sends
        return member

    FIRST_NOTIFICATION = "first-notification", "first notification", True
    ESCALATED = "escalated", "got worse", True
    REPEAT_DUE = "repeat-due", "still there, repeat interval over", True
    RESOLVED = "resolved", "resolved", True
    REOPENED = "reopened", "came back, repeat interval over", True
    FLAPPING = "flapping", "keeps coming back", True
    LOST = "lost", "log went silent", True
    INHIBITED = "inhibited", "explained by another incident"
    TOLD_OF_ANOTHER_LOG = "told-of-another-log", "told already, of another log with the same trouble"
    BELOW_SINK_SEVERITY = "below-sink-severity", "below the sink's severity"
    PREVIEW_NOT_WANTED = "preview-not-wanted", "detector is a preview"
    NOT_ROUTED = "not-routed", "the sink asks for other runs, frameworks or detectors"
    EVENT_NOT_WANTED = "event-not-wanted", "the sink does not ask for this event"
    QUIET_HOURS = "quiet-hours", "quiet hours of the sink"
    SILENCED = "silenced", "silenced"
    ALREADY_SENT = "already-sent", "already sent"
    NOT_SENT_BEFORE = "not-sent-before", "its beginning was not sent either"
    UNDELIVERED = "undelivered", "the last notification is still waiting"
    REPEAT_NOT_DUE = "repeat-not-due", "repeat interval not over"
    WITHDRAWN = "withdrawn", "withdrawn before it was tried, explained by another incident"
    NOTHING_NEW = "nothing-new", "not found again since the last notification"


@dataclass(frozen=True)
class SinkPolicy:
    """Which incidents a sink wants."""

    name: str
    min_severity: Severity = Severity.WARNING
    include_preview: bool = False
    repeat_seconds: float = REPEAT_SECONDS
    plots: bool = False  # whether its notifications carry what a plot needs
    route: Route = EVERYTHING
    events: Collection[Event] = frozenset(Event)
    quiet_hours: QuietHours | None = None  # what is critical goes through

    def wants(self, incident: Incident, run: Mapping[str, Any]) -> bool:
        """Whether the sink asks for an incident of this run. ``run`` is as notifications name it."""
        return self.refusal(incident, run) is None

    def refusal(self, incident: Incident, run: Mapping[str, Any]) -> Reason | None:
        """Why the sink does not ask for an incident of this run; None if it does."""
        if incident.severity < self.min_severity:
            return Reason.BELOW_SINK_SEVERITY
        if incident.maturity is Maturity.PREVIEW and not self.include_preview:
            return Reason.PREVIEW_NOT_WANTED
        return None if self.route.leads(run, incident.detector) else Reason.NOT_ROUTED

    def is_quiet(self, severity: Severity, now: float) -> bool:
        """Whether an incident of this severity has to wait."""
        return severity < Severity.CRITICAL and self.quiet_hours is not None and self.quiet_hours.cover(now)


@dataclass(frozen=True)
class Sent:
    """The last notification of one event of an incident to a sink, and the incident at that time."""

    at: float
    severity: Severity
    findings: int
    waiting: bool = False  # not delivered yet
    untried: bool = False  # never tried: the receiver takes nothing now, or the first look is not done
    given_up: bool = False  # nothing about the incident was ever delivered, nor will be


@dataclass(frozen=True)
class Decision:
    """``event`` is what the notification says, if ``reason.sends``."""

    event: Event
    reason: Reason


def decide(
    change: Change,
    run: Mapping[str, Any],
    policy: SinkPolicy,
    silenced: bool,
    sent: Mapping[Event, Sent],
    now: float,
    told: Severity | None = None,
) -> Decision:
    """Decide whether a sink hears of a change; ``sent`` is what it was sent of this incident before.

    ``run`` is the run as notifications name it. ``told`` is the severity that the sink was sent for another
    log of the same training.

    A REPEAT change asks for a reminder of an incident that did not change. The first notification of an
    open incident is FIRING, even if the incident has escalated or a silence has ended since.
    """
    reason = _reason(change, run, policy, silenced, sent, now)
    if reason is Reason.FIRST_NOTIFICATION and told is not None and told >= change.incident.severity:
        reason = Reason.TOLD_OF_ANOTHER_LOG
    late = reason is Reason.FIRST_NOTIFICATION and change.event is not Event.LOST
    event = Event.FIRING if late else change.event
    return Decision(event, Reason.EVENT_NOT_WANTED if reason.sends and event not in policy.events else reason)


def _reason(
    change: Change,
    run: Mapping[str, Any],
    policy: SinkPolicy,
    silenced: bool,
    sent: Mapping[Event, Sent],
    now: float,
) -> Reason:
    incident = change.incident
    if change.event is Event.RESOLVED:  # who heard of the beginning hears of the end, silenced or not
        if all(one.given_up for one in sent.values()):
            return Reason.NOT_SENT_BEFORE
        return Reason.ALREADY_SENT if _knows_the_end(incident, sent) else Reason.RESOLVED
    if incident.inhibited_by is not None:
        return Reason.INHIBITED
    if (refusal := policy.refusal(incident, run)) is not None:
        return refusal
    if silenced:
        return Reason.SILENCED
    if policy.is_quiet(incident.severity, now):
        return Reason.QUIET_HOURS
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
