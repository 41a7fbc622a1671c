"""Decides whether to notify: one pure function, and a named reason for every decision.

A policy says which incidents a sink asks for, and at what times of day.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Self

import msgspec

from sentinel.common.globs import matches
from sentinel.common.run_glob import any_fits
from sentinel.detectors.api import Maturity, Severity
from sentinel.incidents.incident import OVER, Change, Event, Incident, State
from sentinel.incidents.track import FLAPPING_RETURNS
from sentinel.sources.identity import RunIdentity


class Route(msgspec.Struct, frozen=True):
    """Globs, of which one each must match; without any, everything does."""

    runs: Sequence[str] = ()  # `sentinel.common.run_glob`
    frameworks: Sequence[str] = ()
    detectors: Sequence[str] = ()
    owners: Sequence[str] = ()  # users who own the log

    def leads(self, run: RunIdentity, detector: str) -> bool:
        """Return whether an incident of this detector takes this route."""
        return (
            (not self.runs or any_fits(self.runs, run.run, run.path, run.location))
            and _matches(self.frameworks, run.framework or "")
            and _matches(self.detectors, detector)
            and _matches(self.owners, run.owner or "")
        )


EVERYTHING = Route()


def _matches(globs: Sequence[str], name: str) -> bool:
    return not globs or any(matches(name, glob) for glob in globs)


class QuietHours(msgspec.Struct, frozen=True):
    """A time of each day, in minutes since midnight where the machine is. It may go over midnight."""

    begin: int
    end: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``22:00-07:30``. Raises ValueError."""
        times = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)\s*-\s*([01]?\d|2[0-3]):([0-5]\d)", text.strip())
        if times is None:
            raise ValueError("should be two times of day, such as 22:00-07:30")
        hour, minute, end_hour, end_minute = map(int, times.groups())
        return cls(60 * hour + minute, 60 * end_hour + end_minute)

    def cover(self, now: float) -> bool:
        """Return whether a time in seconds since the epoch is quiet."""
        local = datetime.fromtimestamp(now, UTC).astimezone()
        minute = 60 * local.hour + local.minute
        if self.begin <= self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end


REPEAT_SECONDS = 4 * 3600.0
"""The shortest time between two reminders of one incident, unless a sink has another."""


class Reason(StrEnum):
    """The reason why a notification is sent or not.

    The value is a stable name, which the state directory and JSON reports keep. ``text`` is the wording for
    people, and may change. ``sends`` is true for a reason to send.
    """

    text: str
    sends: bool

    def __new__(cls, name: str, text: str, sends: bool = False) -> Self:
        """Return a member with its wording."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.text = text
        member.sends = sends
        return member

    FIRST_NOTIFICATION = "first-notification", "first notification", True
    ESCALATED = "escalated", "got worse", True
    REPEAT_DUE = "repeat-due", "still there, repeat interval over", True
    RESOLVED = "resolved", "resolved", True
    REOPENED = "reopened", "came back after its end was told", True
    FLAPPING = "flapping", "keeps coming back", True
    LOST = "lost", "log went silent", True
    ENDED = "ended", "the run ended with it", True
    GOES_ON = "goes-on", "still there, its log is silent no more", True
    CAUSE_FOUND = "cause-found", "explains what the sink was told before", True
    OF_SAME_TROUBLE = "of-same-trouble", "told by another incident of the same trouble"
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
    MAY_RETURN = "may-return", "it keeps coming back, so its end is told once it stays away"
    UNDELIVERED = "undelivered", "the last notification is still waiting"
    REPEAT_NOT_DUE = "repeat-not-due", "repeat interval not over"
    WITHDRAWN = "withdrawn", "withdrawn before it was tried, explained by another incident"
    NOTHING_NEW = "nothing-new", "not found again since the last notification"


PAGES = frozenset({Reason.FIRST_NOTIFICATION, Reason.ESCALATED, Reason.REOPENED, Reason.FLAPPING})
"""Reasons to send that a problem is new to the sink or worse than the last notification said."""


class FirstLook(StrEnum):
    """Which runs a sink is told of that were over when a watch first saw them.

    DIGEST: those that ended within a day, in one message. ALL: all of them, in one message.
    """

    NONE = "none"
    DIGEST = "digest"
    ALL = "all"


class SinkPolicy(msgspec.Struct, frozen=True):
    """The incidents that a sink asks for, and when it may be sent them."""

    name: str
    min_severity: Severity = Severity.WARNING
    include_preview: bool = False
    repeat_seconds: float = REPEAT_SECONDS
    plots: bool = False  # whether its notifications carry what a plot needs
    route: Route = EVERYTHING
    events: Collection[Event] = frozenset(Event)
    quiet_hours: QuietHours | None = None  # what is critical goes through
    first_look: FirstLook = FirstLook.DIGEST
    by_incident: bool = False  # whether its receiver follows each incident by itself, not each trouble

    def wants(self, incident: Incident, run: RunIdentity) -> bool:
        """Return whether the sink asks for an incident of this run. ``run`` is as notifications name it."""
        return self.refusal(incident, run) is None

    def refusal(self, incident: Incident, run: RunIdentity) -> Reason | None:
        """Return why the sink does not ask for an incident of this run; None if it does."""
        if incident.severity < self.min_severity:
            return Reason.BELOW_SINK_SEVERITY
        if incident.maturity is Maturity.PREVIEW and not self.include_preview:
            return Reason.PREVIEW_NOT_WANTED
        return None if self.route.leads(run, incident.detector) else Reason.NOT_ROUTED

    def is_quiet(self, severity: Severity, now: float) -> bool:
        """Return whether an incident of this severity has to wait."""
        return severity < Severity.CRITICAL and self.quiet_hours is not None and self.quiet_hours.cover(now)


TERMINAL = SinkPolicy("terminal", first_look=FirstLook.ALL)
"""The policy of the terminal, the one sink where no configuration names any."""


class Sent(msgspec.Struct, frozen=True):
    """The last notification of one event of an incident to a sink, and the incident at that time.

    ``number`` is the place in the order in which notifications of the incident were decided for the sink.
    """

    at: float
    severity: Severity
    findings: int
    number: int
    waiting: bool = False  # not delivered yet
    untried: bool = False  # never tried: the receiver takes nothing now, or the initial scan is not done


class TroubleSent(msgspec.Struct, frozen=True):
    """What a sink was sent of the trouble of an incident by other incidents.

    ``explained`` is the worst severity of those that it explains; CLEAN if there are none. ``goes_on``: one
    is still open. ``end_is_sent``: one that explains it, or the crash that it explains, tells how the run
    ended.
    """

    explained: Severity = Severity.CLEAN
    goes_on: bool = False
    end_is_sent: bool = False


NO_TROUBLE = TroubleSent()


class Decision(msgspec.Struct, frozen=True):
    """The reason to notify or not. ``event`` is what the notification says, if ``reason.sends``."""

    event: Event
    reason: Reason


def decide(
    change: Change,
    run: RunIdentity,
    policy: SinkPolicy,
    silenced: bool,
    sent: Mapping[Event, Sent],
    now: float,
    already_sent: Iterable[Severity] = (),
    trouble: TroubleSent = NO_TROUBLE,
) -> Decision:
    """Decide whether a sink is notified of a change; ``sent`` is what it was sent of this incident before.

    The last notification must say what is so now, and this decides, whatever the change is. A REPEAT change
    asks for what the sink should know of an incident that did not change. ``run`` is the run as notifications
    name it. ``already_sent`` are the severities that the sink was sent for the same problem in other logs;
    they are read only if the notification would be the first of the incident. ``trouble`` is what it was sent
    of other incidents of the same trouble, which one conversation tells.

    The first notification of an open incident is FIRING, even if the incident has escalated or a silence has
    ended since. A flapping incident is sent as such, also while it pauses.
    """
    reason = _reason(change, run, policy, silenced, sent, now)
    if reason is Reason.FIRST_NOTIFICATION and any(
        severity >= change.incident.severity for severity in already_sent
    ):
        reason = Reason.TOLD_OF_ANOTHER_LOG
    elif reason is Reason.FIRST_NOTIFICATION and trouble.explained:
        is_worse = change.incident.severity > trouble.explained
        reason = Reason.ESCALATED if is_worse else Reason.CAUSE_FOUND
    elif (reason is Reason.RESOLVED and trouble.goes_on) or (reason is Reason.ENDED and trouble.end_is_sent):
        reason = Reason.OF_SAME_TROUBLE
    event = _event(reason, change) if reason.sends else change.event
    return Decision(event, Reason.EVENT_NOT_WANTED if reason.sends and event not in policy.events else reason)


def _event(reason: Reason, change: Change) -> Event:
    flaps = change.incident.reopen_count >= FLAPPING_RETURNS
    match reason:
        case Reason.FIRST_NOTIFICATION:
            return Event.LOST if change.incident.state is State.LOST else Event.FIRING
        case Reason.REOPENED | Reason.REPEAT_DUE if flaps:
            return Event.FLAPPING
        case Reason.REPEAT_DUE | Reason.GOES_ON | Reason.CAUSE_FOUND:
            return Event.REPEAT
    return Event(reason)


def _reason(
    change: Change,
    run: RunIdentity,
    policy: SinkPolicy,
    silenced: bool,
    sent: Mapping[Event, Sent],
    now: float,
) -> Reason:
    incident = change.incident
    if not incident.open and not incident.gone:  # who was sent the beginning is sent the end
        return _reason_at_end(incident, policy, sent, now)
    if incident.ended and sent:  # and that the run ended with it, whatever explains it now
        return Reason.ALREADY_SENT if _last(sent)[0] in OVER else Reason.ENDED
    barrier = _barrier(incident, run, policy, silenced, now)
    if barrier is not None:
        return barrier
    if not sent:
        return Reason.FIRST_NOTIFICATION
    if incident.severity > max(notification.severity for notification in sent.values()):
        return Reason.ESCALATED
    return _reason_to_go_on(change, policy, sent, now)


def _barrier(
    incident: Incident, run: RunIdentity, policy: SinkPolicy, silenced: bool, now: float
) -> Reason | None:
    """Return why a sink is sent nothing of an open incident, whatever came before; None if it may be."""
    if incident.inhibited_by is not None:
        return Reason.INHIBITED
    refusal = policy.refusal(incident, run)
    if refusal is not None:
        return refusal
    if silenced:
        return Reason.SILENCED
    return Reason.QUIET_HOURS if policy.is_quiet(incident.severity, now) else None


def _reason_to_go_on(change: Change, policy: SinkPolicy, sent: Mapping[Event, Sent], now: float) -> Reason:
    """Return why a sink that was sent an open incident before is sent it again, or is not."""
    incident = change.incident
    last_event, last_sent = _last(sent)
    if incident.findings < last_sent.findings:
        return Reason.ALREADY_SENT  # a log that is read again from its start
    if last_event is Event.RESOLVED:
        return Reason.REOPENED
    is_lost = incident.state is State.LOST
    if is_lost and last_event is not Event.LOST:
        is_news = _is_silence_news(incident, sent.get(Event.LOST), policy, now)
        return Reason.LOST if is_news else Reason.REPEAT_NOT_DUE
    if last_event in (Event.LOST, Event.ENDED) and not is_lost:
        return Reason.GOES_ON
    if change.event is Event.FLAPPING and last_event is not Event.FLAPPING:
        return Reason.FLAPPING
    if change.event is Event.REPEAT:
        return _repeat_reason(incident, last_sent, policy, now)
    return Reason.ALREADY_SENT


def _reason_at_end(incident: Incident, policy: SinkPolicy, sent: Mapping[Event, Sent], now: float) -> Reason:
    if not sent:
        return Reason.NOT_SENT_BEFORE
    last_event, last_sent = _last(sent)
    if last_event is Event.RESOLVED or incident.findings < last_sent.findings:
        return Reason.ALREADY_SENT
    if last_event is Event.FLAPPING and 0 <= now - last_sent.at < policy.repeat_seconds:
        return Reason.MAY_RETURN
    return Reason.RESOLVED


def _last(sent: Mapping[Event, Sent]) -> tuple[Event, Sent]:
    """Return the last notification. The clock may have been set back since, so its time does not count."""
    return max(sent.items(), key=lambda item: (item[1].number, item[1].findings, item[1].at))


def _is_silence_news(incident: Incident, last: Sent | None, policy: SinkPolicy, now: float) -> bool:
    """Return whether silence is news for a sink: none was sent lately, or something was found since."""
    if last is None or incident.findings > last.findings:
        return True
    return not 0 <= now - last.at < policy.repeat_seconds


def _repeat_reason(incident: Incident, last: Sent, policy: SinkPolicy, now: float) -> Reason:
    if last.waiting:
        return Reason.UNDELIVERED
    if 0 <= now - last.at < policy.repeat_seconds:
        return Reason.REPEAT_NOT_DUE
    return Reason.REPEAT_DUE if incident.findings > last.findings else Reason.NOTHING_NEW
