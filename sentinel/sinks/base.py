"""The contract of a sink: send one message, or say whether a retry can help.

A sink module defines one ``SinkConfig`` whose ``type`` is a ``Literal`` with its name in the
configuration; the table in ``discovery`` or an entry point names it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Protocol, runtime_checkable

from pydantic import AfterValidator, Field, PlainValidator

from sentinel.common.config_table import JointlyChecked
from sentinel.common.run_glob import run_glob
from sentinel.detectors.severity import Severity, SeverityName
from sentinel.incidents.incident import Event
from sentinel.notifications.decide import FirstLook, QuietHours, Route, SinkPolicy
from sentinel.sinks.notification import Digest as Digest
from sentinel.sinks.notification import Notification as Notification


class SinkError(Exception):
    """A message was not delivered. The text names no URL, token or secret."""


class Transient(SinkError):
    """A later retry can help, and nothing can be delivered before.

    ``retry_after_seconds`` is the pause that the receiver asked for, if any.
    """

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Permanent(SinkError):
    """The receiver refuses: a wrong address, a refused token, a body that it rejects.

    Whether that is about this one message is unknown, so the others go on and this one is tried later.
    """


class Sink(Protocol):
    """Sends messages to one receiver."""

    @property
    def name(self) -> str:
        """The name in the configuration and in `sentinel status`."""
        ...

    def send(self, message: Notification | Digest, now: float) -> str | None:
        """Deliver, or raise Transient or Permanent. Never retries and never waits longer than its timeout.

        It may return where the message is; later ones about the incident have that as ``thread``.
        """
        ...


@runtime_checkable
class RefreshingSink(Sink, Protocol):
    """A sink whose receiver forgets what is not sent again."""

    @property
    def refresh_seconds(self) -> float:
        """The time after which open incidents are sent again."""
        ...

    def refresh(self, notifications: Sequence[Notification], now: float) -> None:
        """Send all open incidents again, each by the last notification of it.

        Raises as ``send`` does.
        """
        ...


def _hours(text: Any) -> QuietHours:
    if not isinstance(text, str):
        raise ValueError("should be two times of day, such as 22:00-07:30")
    return QuietHours.parse(text)


SentEvent = Literal["firing", "escalated", "repeat", "resolved", "ended", "reopened", "flapping", "lost"]
GlobOfRuns = Annotated[str, AfterValidator(run_glob)]
HoursOfDay = Annotated[QuietHours, PlainValidator(_hours, json_schema_input_type=str)]


FIRST_LOOK = (
    "what is sent of runs that were over when the watch first saw them: `digest` is one message about those "
    "that ended within a day, `all` is one about all of them, `none` is nothing"
)
"""The description of a key whose default is not the same for all sinks."""


class SinkConfig(JointlyChecked, ABC):
    """The keys that every ``[[sinks]]`` table may hold."""

    type: str
    name: str = Field(
        "", description="name of the sink in `sentinel status`; default: its type, then type-2, ..."
    )
    min_severity: SeverityName = Field(
        "warning", description="the sink gets incidents of at least this severity"
    )
    include_preview: bool = Field(False, description="whether the sink gets incidents of preview detectors")
    runs: tuple[GlobOfRuns, ...] = Field(
        (), description="globs for the paths of runs, or the ends of them; default: all"
    )
    frameworks: tuple[str, ...] = Field((), description="globs for the frameworks of runs; default: all")
    detectors: tuple[str, ...] = Field((), description="globs for the names of detectors; default: all")
    owners: tuple[str, ...] = Field((), description="globs for the users who own the logs; default: all")
    events: tuple[SentEvent, ...] = Field((), description="what is sent of an incident; default: all")
    quiet_hours: HoursOfDay | None = Field(
        None,
        description="time of day, by the clock of the watch's machine, in which only what is critical is "
        "sent, such as `22:00-07:00`",
    )
    digest: Literal["daily"] | None = Field(
        None,
        description="gathers all that the sink gets and sends it once a day in one message; what is only "
        "worth a look (severity info) as well, unless `min_severity` is set",
    )

    first_look: FirstLook = Field(FirstLook.DIGEST, description=FIRST_LOOK)

    by_incident: ClassVar[bool] = False  # whether the receiver follows each incident, and not each trouble

    def policy(self) -> SinkPolicy:
        """Return which incidents the sink gets."""
        everything = self.digest is not None and "min_severity" not in self.model_fields_set
        return SinkPolicy(
            self.name or self.type,
            Severity.INFO if everything else Severity.named(self.min_severity),
            self.include_preview,
            route=Route(self.runs, self.frameworks, self.detectors, self.owners),
            events=frozenset(map(Event, self.events)) or frozenset(Event),
            quiet_hours=self.quiet_hours,
            first_look=self.first_look,
            by_incident=self.by_incident,
        )

    @abstractmethod
    def open(self) -> Sink:
        """Return the sink. Raises ConfigError if a secret is missing."""
