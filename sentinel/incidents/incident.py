"""An incident: a finding that held, and its life."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from hashlib import blake2b
from string import Formatter
from typing import Any, Self

import msgspec

from sentinel.common.text import duration_text, sentence
from sentinel.detectors.api import Maturity, Severity
from sentinel.incidents.causes import PossibleCause


class State(StrEnum):
    """The state of an incident.

    LOST means that its log went silent, not that the problem is over. WITHDRAWN means that it was found only
    because the run seemed to be over, and that the run went on.
    """

    FIRING = "firing"
    ESCALATED = "escalated"
    RESOLVED = "resolved"
    LOST = "lost"
    WITHDRAWN = "withdrawn"


class Event(StrEnum):
    """What happened to an incident; a notification names it."""

    FIRING = "firing"
    ESCALATED = "escalated"
    REPEAT = "repeat"
    RESOLVED = "resolved"
    ENDED = "ended"  # the run ended with it
    REOPENED = "reopened"
    FLAPPING = "flapping"
    LOST = "lost"
    TEST = "test"


OVER = frozenset({Event.RESOLVED, Event.ENDED})
"""Events after which nothing more is to be done about the run, as far as sentinel knows."""


class Incident(msgspec.Struct, frozen=True):
    """One problem of one run. Times are seconds since the epoch on the log's clock, None if unknown."""

    id: str
    run: str  # sentinel.sources.base.Run.id
    stream: str
    attempt: int  # in which it began
    detector: str
    severity: Severity
    maturity: Maturity
    signal: str
    tag: str
    onset_step: int
    onset_time: float | None  # of the onset step
    fired_step: int
    fired_time: float | None
    summary: str  # with the numbers of the finding at which it began, got worse or came back
    evidence: Mapping[str, Any] = {}  # numbers and text
    causes: tuple[PossibleCause, ...] = ()  # likeliest first
    cited: tuple[str, ...] = ()  # the entries that the finding cites, in their usual order
    state: State = State.FIRING
    resolved_step: int | None = None
    last_step: int | None = None  # newest step at which the finding was still there
    last_time: float | None = None
    findings: int = 0  # rows at which it was found; never decreases, although steps may go back
    reopen_count: int = 0  # how often it came back after it was resolved
    first_step: str = ""  # the first thing to do, where no cause is known
    no_reminder: bool = False  # it is a question, so no reminder follows
    inhibited_by: str | None = None
    ended: str = ""  # how the run ended with it, in words; empty while the run goes on
    gone: bool = False  # it ended as lost because its log was removed
    variant: str = ""  # of its detector
    latest: str = ""  # while it is open, the summary of its newest finding, if that is a later one
    taken_over: str = ""  # the trouble that it explains and that was found before it, by its first incident

    @property
    def drawn_tag(self) -> str:
        """The tag whose curve shows it. A finding about the whole run may name one in its evidence."""
        return self.tag or str(self.evidence.get("logged_as", ""))

    @property
    def is_of_card(self) -> bool:
        """Whether a score card found it, which judges all of a run that was seen."""
        return self.evidence.get("card_points") is not None

    @property
    def open(self) -> bool:
        """Whether the problem is still there, as far as the log shows."""
        return not self.gone and self.state in (State.FIRING, State.ESCALATED, State.LOST)

    @property
    def trouble(self) -> str:
        """The id of the incident with which its trouble was found. A receiver knows the trouble by that."""
        return self.taken_over or self.id

    @property
    def headline(self) -> str:
        """What is wrong by the newest finding, as a sentence that is safe to show."""
        return sentence(self.latest or self.summary)

    @property
    def catalogue(self) -> tuple[str, ...]:
        """The ids of the entries that may be behind it, likeliest first."""
        return tuple(cause.id for cause in self.causes)

    def now(self, newest: "Incident") -> "Incident":
        """Return the incident as it was when something happened to it, with what is known of it by now."""
        is_same = (newest.severity, newest.variant, newest.reopen_count) == (
            self.severity,
            self.variant,
            self.reopen_count,
        )
        if not (self.open and newest.open and is_same and newest.findings >= self.findings):
            newest = self
        return self.replace(
            summary=newest.latest or newest.summary,
            causes=newest.causes,
            last_step=newest.last_step,
            last_time=newest.last_time,
            findings=newest.findings,
        )

    @property
    def is_sent_by_default(self) -> bool:
        """Whether sinks are sent it unless their configuration says otherwise."""
        return self.severity > Severity.INFO and self.maturity is Maturity.STABLE

    def replace(self, **fields: Any) -> Self:
        """Return a copy with some fields replaced."""
        return msgspec.structs.replace(self, **fields)


def drawn_onsets(incidents: Iterable[Incident]) -> dict[str, int]:
    """Return by drawn tag the onset of the first of its incidents, which stand in order, the worst first."""
    onsets: dict[str, int] = {}
    for incident in incidents:
        onsets.setdefault(incident.drawn_tag, incident.onset_step)
    return onsets


def began_first(incident: Incident, others: Iterable[Incident]) -> Incident:
    """Return the run's open incident that began first: this one, or another that sinks get by default."""
    sent_by_default = (other for other in others if other.open and other.is_sent_by_default)
    return min((incident, *sent_by_default), key=lambda first: (first.attempt, first.onset_step))


SAME_STEPS = 0.2
"""The largest distance of steps, as a fraction of the larger one. Not all logs have each step, so the same
problem fires at a later one in some.
"""

_MAX_DISTANCE_SECONDS = 600.0  # loggers buffer, and not all for equally long


def began_together(incident: Incident, other: Incident) -> bool:
    """Return whether two incidents began at about the same step and, as far as it is known, time."""
    return near(incident.onset_step, other.onset_step) and same_moment(incident.onset_time, other.onset_time)


def near(step: int, other_step: int) -> bool:
    """Return whether two steps are about the same."""
    return abs(step - other_step) <= SAME_STEPS * max(step, other_step)


def same_moment(time: float | None, other_time: float | None) -> bool:
    """Return whether two times are about the same, or one is not known."""
    return time is None or other_time is None or abs(time - other_time) <= _MAX_DISTANCE_SECONDS


LASTED = "lasted"
"""The name under which messages may use `lasted_text`."""

DURATION = "duration"
"""The format with which messages write seconds in words."""


def lasted_text(steps: int, seconds: float | None) -> str:
    """Return how long something lasted, in words: "218 steps (7 min)"; without known times "218 steps"."""
    text = f"{max(steps, 0):,} {'step' if steps == 1 else 'steps'}"
    return text if seconds is None or round(seconds) < 1 else f"{text} ({duration_text(seconds)})"


def incident_id(
    run: str, stream: str, attempt: int, tag: str, detector: str, index: int, *, final: bool = False
) -> str:
    """Return the id of an incident. The same finding in the same log always has the same id.

    What is found only because the run is over (``final``) has an id of its own, because it may be withdrawn.
    """
    key = "\x1f".join((run, stream, str(attempt), tag, detector, str(index), *["final"] * final))
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class Change(msgspec.Struct, frozen=True):
    """An incident after an event."""

    event: Event
    incident: Incident


class _LenientFormatter(Formatter):
    """Writes ``?`` for a missing value, and ignores a format that does not suit its value.

    The format `DURATION` writes seconds in words.
    """

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        try:
            return super().get_field(field_name, args, kwargs)
        except (LookupError, AttributeError, TypeError):
            return None, field_name

    def format_field(self, value: Any, format_spec: str) -> Any:
        if value is None:
            return "?"
        if format_spec == DURATION:
            return duration_text(value)
        try:
            return super().format_field(value, format_spec)
        except (ValueError, TypeError, OverflowError):
            return str(value)


def format_message(message: str, values: Mapping[str, Any]) -> str:
    """Return a variant's message with its numbers. Missing or odd evidence never raises."""
    return _LenientFormatter().vformat(message, (), values)
