"""An incident as the state directory holds it, with what is known of its run."""

from functools import partial
from pathlib import Path

import msgspec

from sentinel import catalogue
from sentinel.common.fault_isolation import Guard
from sentinel.incidents.incident import Event, Incident, State, began_first
from sentinel.incidents.related import cause_text, consequence_texts
from sentinel.notifications.routing import idempotency_key
from sentinel.pipeline import Pipeline
from sentinel.report.status import stored_run
from sentinel.sinks.enrichment import completed
from sentinel.sinks.notification import Notification
from sentinel.sources.base import Cursor, PollResult, Run
from sentinel.sources.identity import RunIdentity
from sentinel.sources.location import Url
from sentinel.storage.store import RunRow, Store

_EVENT_OF_STATE = {
    State.FIRING: Event.FIRING,
    State.ESCALATED: Event.ESCALATED,
    State.RESOLVED: Event.RESOLVED,
    State.LOST: Event.LOST,
    State.WITHDRAWN: Event.RESOLVED,
}


class _NoSource(msgspec.Struct, frozen=True):
    """The source of a log that is not read here."""

    def poll(self, cursor: Cursor, limit: int) -> PollResult:  # noqa: ARG002
        return PollResult(cursor)


def location_of(row: RunRow) -> Path | Url:
    """Return where the log of a recorded run lies."""
    return Url.parse(row.path) or Path(row.path)


def recorded_run(row: RunRow) -> Run:
    """Return the run without its log: all that is known of it is what the watch stored."""
    return Run(location_of(row), row.format, _NoSource())


def event_of(incident: Incident) -> Event:
    """Return the event by which a message would say what is so of an incident."""
    return Event.ENDED if incident.ended and incident.open else _EVENT_OF_STATE[incident.state]


def recorded_incident(
    store: Store, pipeline: Pipeline, beginning: str, link: str, options: str
) -> Notification:
    """Return what a sink would be sent now of the incident whose id begins so, with its curves.

    Raises SentinelError unless there is exactly one such incident. ``link`` is the template of links, and
    ``options`` are those that commands about the incident need.
    """
    incident = store.incident(beginning)
    row = next((row for row in store.runs() if row.id == incident.run), None)
    event = event_of(incident)
    other_incidents = [
        other for other in store.incidents(open_only=True, run=incident.run) if other.id != incident.id
    ]
    first_incident = began_first(incident, other_incidents)
    run = RunIdentity(incident.run)
    excerpts = []
    if row is not None and (run_state := store.run_state(row.id)) is not None:
        stored = stored_run(store, row)
        run_pipeline = pipeline.track(recorded_run(row), (stored.name if stored else "") or row.path)
        guard = Guard()
        guard(run_pipeline.log.run, "restoring", partial(run_pipeline.restore, run_state))
        run = run_pipeline.described()
        excerpts = run_pipeline.excerpts(incident)
    notification = Notification(
        key=idempotency_key(run, incident, event),
        event=event,
        run=run,
        incident=incident,
        excerpts=excerpts,
        catalogue=catalogue.cited(incident.catalogue),
        also_open=[other.latest or other.summary for other in other_incidents],
        cause=cause_text(incident, other_incidents),
        consequences=consequence_texts(incident, other_incidents),
        first_onset=(first_incident.onset_step, first_incident.onset_time),
    )
    return completed(notification, link, options)
