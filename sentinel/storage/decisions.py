"""The decisions about notifications: each is recorded with what follows from it, and kept for people."""

import sqlite3
from typing import Any, Self

import msgspec

from sentinel.common.conversion import converter
from sentinel.incidents.incident import Event
from sentinel.notifications.decide import Reason
from sentinel.notifications.routing import SinkDecision
from sentinel.storage.outbox import enqueue, withdraw
from sentinel.storage.pages import record_page

_to_reason = converter(Reason)


class DecisionRow(msgspec.Struct, frozen=True):
    """The decision about one event of an incident for one sink."""

    at: float
    run: str
    incident: str
    detector: str
    sink: str
    event: Event
    reason: Reason

    @classmethod
    def from_row(cls, row: tuple[Any, ...]) -> Self:
        """Decode a row of the table. Raises ValueError."""
        at, run, incident, detector, sink, event, reason = row
        return cls(at, run, incident, detector, sink, Event(event), _to_reason(reason))

    @property
    def sent(self) -> bool:
        """Whether it was a decision to send."""
        return self.reason.sends

    @property
    def reason_text(self) -> str:
        """The reason in words."""
        return self.reason.text


def record_decision(
    connection: sqlite3.Connection, run: str, sink_decision: SinkDecision, now: float, *, deferred: bool
) -> None:
    """Record a decision about a run, given by its id, and the notification if one is to be sent, inside a
    transaction. A ``deferred`` notification leaves after `Outbox.release`.
    """
    incident = sink_decision.incident
    sink = sink_decision.sink
    decision = sink_decision.decision
    connection.execute(
        "INSERT INTO decisions (at, run, incident, detector, sink, event, reason) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (now, run, incident.id, incident.detector, sink, decision.event, decision.reason),
    )
    if decision.reason is Reason.WITHDRAWN:
        withdraw(connection, sink, incident.id)
    if sink_decision.body is None:
        return
    number = sink_decision.number
    connection.execute(
        "INSERT OR REPLACE INTO notification_log (incident, sink, event, at, severity, findings, number) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (incident.id, sink, decision.event, now, incident.severity, incident.findings, number),
    )
    if sink_decision.is_page:
        record_page(connection, sink, incident, now)
    enqueue(connection, sink, incident, sink_decision.body, now, deferred=deferred)
