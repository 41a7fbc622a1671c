"""Notifications to send, in the outbox and out of it."""

from collections.abc import Iterable, Sequence

import msgspec

from sentinel.notifications.decide import Decision, Reason
from sentinel.notifications.routing import SinkDecision
from sentinel.sinks.base import Notification
from sentinel.storage.outbox import Outbox, OutboxEntry
from sentinel.storage.store import Store, Update
from sentinel.testing.sinks import INCIDENT as INCIDENT
from sentinel.testing.sinks import NOTIFICATION as NOTIFICATION
from sentinel.testing.sinks import about as about
from sentinel.testing.sinks import digest as digest


def enqueue(
    store: Store, notification: Notification, sinks: Sequence[str], now: float, *, held: bool = False
) -> None:
    """Put a notification into the outbox, as a poll of its run would."""
    enqueue_all(store, [notification], sinks, now, held=held)


def first_waiting(outbox: Outbox, sink: str) -> OutboxEntry | None:
    """The oldest notification about the worst incident that waits."""
    return next(iter(outbox.worst(sink, 1)), None)


def enqueue_all(
    store: Store,
    notifications: Iterable[Notification],
    sinks: Sequence[str],
    now: float,
    *,
    held: bool = False,
) -> None:
    """Put notifications into the outbox in one transaction."""
    incidents = [
        SinkDecision(
            told.incident, sink, Decision(told.event, Reason.FIRST_NOTIFICATION), msgspec.to_builtins(told)
        )
        for told in notifications
        for sink in sinks
    ]
    store.commit([Update("run", "/runs/run", "jsonl", b"", outcomes=incidents, deferred=held)], now)
