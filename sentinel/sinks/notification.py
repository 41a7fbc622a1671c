"""What sinks send. Reports word it as well, without what validates the configuration of a sink."""

from collections.abc import Mapping, Sequence

import msgspec

from sentinel.incidents.incident import Event, Incident
from sentinel.series.excerpt import Excerpt
from sentinel.sources.identity import RunIdentity


class Notification(msgspec.Struct, frozen=True):
    """A message about one incident. ``key`` is the same at every retry, so a receiver can ignore repeats."""

    key: str
    event: Event
    run: RunIdentity
    incident: Incident
    catalogue: Sequence[Mapping[str, str]]  # id, title, fix, check, url; likeliest first
    also_open: Sequence[str] = ()  # summaries of the run's other open incidents
    cause: str = ""  # what explains the incident, if something of its run does
    consequences: Sequence[str] = ()  # what the incident explains
    first_onset: tuple[int, float | None] | None = None  # step and time of the run's earliest open incident
    found_at: float | None = None  # time of day at which it was found, where the log has no times
    excerpts: Sequence[Excerpt] = ()  # what a plot shows, for sinks that show one
    link: str = ""  # to a page about the run
    checkpoint: str = ""  # the last one before the onset
    options: str = ""  # which commands about the incident need, such as " --state-dir /srv/state"
    thread: str = ""  # where the receiver put the first message about the incident, as `Sink.send` gave it


class Digest(msgspec.Struct, frozen=True):
    """Many waiting notifications in one message: the latest of each incident, worst first.

    ``key`` is the same for the same notifications. Each notification keeps its own key as well. ``why`` says
    why they come together.
    """

    key: str
    notifications: Sequence[Notification]
    why: str = "they had to wait"
