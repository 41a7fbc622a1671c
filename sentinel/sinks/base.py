"""The contract of a sink: send one notification, or say whether trying again can help."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sentinel.alerts.incident import Event, Incident


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


class SinkError(Exception):
    """A notification was not delivered. The message names no URL, token or secret."""


class Transient(SinkError):
    """Trying again later can help. ``retry_after_seconds`` is what the receiver asked for, if it did."""

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Permanent(SinkError):
    """Trying again cannot help: a wrong address, a refused token, a body the receiver rejects."""


class Sink(Protocol):
    """``name`` is the sink's name in the configuration and in `sentinel status`."""

    name: str

    def send(self, notification: Notification, now: float) -> None:
        """Deliver, or raise Transient or Permanent. Never retries, never waits longer than its timeout."""
        ...
