"""What sinks would have been sent of finished runs, in the order in which it happened by the logs' clocks."""

from collections.abc import Iterable, Iterator, Sequence

from sentinel.incidents.incident import Change, Incident
from sentinel.notifications.routing import RoutingContext, RunChanges, SinkDecision, route_changes
from sentinel.sources.identity import RunIdentity

Story = tuple[RunIdentity, Sequence[Change]]
"""A run as notifications name it, and what happened to its incidents, in order."""


def simulated_decisions(
    stories: Sequence[Story], context: RoutingContext
) -> list[dict[str, list[SinkDecision]]]:
    """Return the decisions about each run by incident id, without reminders."""
    decisions: list[dict[str, list[SinkDecision]]] = [{} for _ in stories]
    dated_changes = [
        (time, change, index)
        for index, (_, changes) in enumerate(stories)
        for time, change in _dated(changes)
    ]
    open_by_run: dict[str, dict[str, Incident]] = {}  # at the time of the change, by id
    for time, change, index in sorted(dated_changes, key=lambda event: event[0]):
        run, _ = stories[index]
        open_incidents = open_by_run.setdefault(change.incident.run, {})
        open_incidents.pop(change.incident.id, None)
        if change.incident.open:
            open_incidents[change.incident.id] = change.incident
        news = RunChanges(run, [change], [*open_incidents.values()], reminders=False)
        for decision in route_changes(news, context, time):
            decisions[index].setdefault(decision.incident.id, []).append(decision)
    return decisions


def _dated(changes: Iterable[Change]) -> Iterator[tuple[float, Change]]:
    """Yield the changes with their times, which never go back. A log without times has time 0."""
    time = 0.0
    for change in changes:
        time = max(time, change.incident.last_time or 0.0)
        yield time, change
