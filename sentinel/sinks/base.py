"""The contract of a sink: send one message, or say whether trying again can help.

A sink module defines one ``SinkConfig`` whose ``type`` is a ``Literal`` with its name in the
configuration; ``discovery`` finds it there.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pydantic import Field

from detectors.api import Severity
from sentinel.alerts.decision import SinkPolicy
from sentinel.alerts.incident import Event, Incident
from sentinel.settings import Table


@dataclass(frozen=True)
class Notification:
    """What a person receives. ``key`` is the same at every retry, so a receiver can drop repeats."""

    key: str
    event: Event
    run: Mapping[str, Any]  # run, path, framework: as the JSON form says
    incident: Incident
    catalogue: Sequence[Mapping[str, str]]  # id, title, fix, check, url; likeliest first
    also_open: Sequence[str] = ()  # summaries of the run's other open incidents
    cost: str = ""  # what it has cost since onset: steps and wall time, in words


@dataclass(frozen=True)
class Digest:
    """What piled up for a receiver, as one message: the latest notification of each incident, worst first.

    ``key`` is the same for the same notifications; each of them keeps its own, too.
    """

    key: str
    notifications: Sequence[Notification]


class SinkError(Exception):
    """A message was not delivered. What it says names no URL, token or secret."""


class Transient(SinkError):
    """Trying again later can help. ``retry_after_seconds`` is what the receiver asked for, if it did."""

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Permanent(SinkError):
    """Trying again cannot help: a wrong address, a refused token, a body the receiver rejects."""


class Sink(Protocol):
    """Where notifications go."""

    @property
    def name(self) -> str:
        """Its name in the configuration and in `sentinel status`."""
        ...

    def send(self, message: Notification | Digest, now: float) -> None:
        """Deliver, or raise Transient or Permanent. Never retries, never waits longer than its timeout."""
        ...


class SinkConfig(Table, ABC):
    """What every ``[[sinks]]`` table may hold."""

    type: str
    name: str = Field(
        "", description="name of the sink in `sentinel status`; default: its type, then type-2, ..."
    )
    min_severity: Literal["info", "warning", "critical"] = Field(
        "warning", description="the sink gets incidents of at least this severity"
    )
    include_preview: bool = Field(False, description="whether the sink gets incidents of preview detectors")

    def policy(self) -> SinkPolicy:
        """What it wants to hear, as the decision to notify reads it."""
        return SinkPolicy(self.name or self.type, Severity[self.min_severity.upper()], self.include_preview)

    @abstractmethod
    def open(self) -> Sink:
        """The sink itself. Raises ConfigError where a secret that it needs is not there."""
