"""What sinks would have heard of finished runs, in the order in which it happened by the logs' own clocks."""

from collections.abc import Iterable, Iterator, Sequence

from sentinel.incidents.incident import Change, Incident
from sentinel.notifications.routing import RoutingContext, RunChanges, SinkDecision, route_changes
from sentinel.sources.identity import RunIdentity

Story = tuple[RunIdentity, Sequence[Change]]
"""A run as notifications name it, and what happened to its incidents, in order."""


def retold(stories: Sequence[Story], audience: RoutingContext) -> list[dict[str, list[SinkDecision]]]:
    """Return the decisions about each run by incident id, without reminders."""
    told: list[dict[str, list[SinkDecision]]] = [{} for _ in stories]
    happened = [
        (at, change, number) for number, (_, changes) in enumerate(stories) for at, change in _dated(changes)
    ]
    still_open: dict[str, dict[str, Incident]] = {}  # then, by run and by id
    for at, change, number in sorted(happened, key=lambda event: event[0]):
        standing = still_open.setdefault(change.incident.run, {})
        standing.pop(change.incident.id, None)
        if change.incident.open:
            standing[change.incident.id] = change.incident
        news = RunChanges(stories[number][0], [change], [*standing.values()], reminders=False)
        for outcome in route_changes(news, audience, at):
            told[number].setdefault(outcome.incident.id, []).append(outcome)
    return told


def _dated(changes: Iterable[Change]) -> Iterator[tuple[float, Change]]:
    """Yield the changes with their times, which never go back. A log without times has time 0."""
    at = 0.0
    for change in changes:
        at = max(at, change.incident.last_time or 0.0)
        yield at, change
