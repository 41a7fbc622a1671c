"""Makes messages of what the outbox holds, and records what a receiver holds once it took one."""

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from sentinel import catalogue
from sentinel.common.conversion import converter
from sentinel.incidents.incident import OVER, Event
from sentinel.sinks.base import Digest, Notification, RefreshingSink, Sink
from sentinel.storage.outbox import OutboxEntry
from sentinel.storage.store import Store

_to_notification = converter(Notification)
_STILL_THERE = frozenset({Event.ESCALATED, Event.REOPENED, Event.REPEAT, Event.ENDED})
"""Events after which the problem is still there. A run may end with it before anybody was told."""
_FINAL_EVENTS = (*OVER, Event.TEST)  # after which nothing is refreshed


def record_receipt(
    store: Store, sink: Sink, message: Notification | Digest, thread: str | None, now: float
) -> None:
    """Record what the receiver holds now, if its sink refreshes that or has threads."""
    refreshes = isinstance(sink, RefreshingSink)
    if not refreshes and not thread:
        return
    notifications = message.notifications if isinstance(message, Digest) else [message]
    receipts = []
    for last in notifications:
        may_refresh = refreshes and last.event not in _FINAL_EVENTS and not last.incident.ended
        body = json.dumps(msgspec.to_builtins(replace(last, catalogue=()))) if may_refresh else None
        receipts.append((last.incident.id, thread or "", body))
    store.receipts.keep(sink.name, receipts, now)


def notification(body: str) -> Notification | None:
    """Return the notification with these fields; None if it cannot be read.

    What the catalogue says of the incident is not stored: it follows from the incident.
    """
    try:
        decoded = _to_notification({**json.loads(body), "catalogue": ()})
    except (ValueError, TypeError, msgspec.MsgspecError):
        return None
    return replace(decoded, catalogue=catalogue.cited(decoded.incident.catalogue))


def up_to_date(notification: Notification, store: Store) -> Notification:
    """Return the notification with what is known by now: it may have waited for long."""
    newest = store.recorded(notification.incident.id)
    if newest is None:
        return notification
    incident = notification.incident.now(newest)
    return replace(notification, incident=incident, catalogue=catalogue.cited(incident.catalogue))


def latest(readable: Mapping[OutboxEntry, Notification], *, may_be_over: bool = False) -> list[Notification]:
    """Return one notification of each incident, the newest last. Where all ``may_be_over``, one whose run was
    over when it was first seen tells its end.
    """
    by_incident: dict[str, list[OutboxEntry]] = {}
    for outbox_entry in readable:
        by_incident[outbox_entry.incident] = [*by_incident.pop(outbox_entry.incident, ()), outbox_entry]
    return [
        _merge([readable[outbox_entry] for outbox_entry in entries], entries, may_be_over=may_be_over)
        for entries in by_incident.values()
    ]


def _merge(
    notifications: Sequence[Notification], entries: Sequence[OutboxEntry], *, may_be_over: bool
) -> Notification:
    """Return an incident's last notification. It says "fires" if the receiver knows nothing of it yet."""
    first = notifications[0]
    last = notifications[-1]
    together = len({entry.attempts for entry in entries}) == 1  # else the receiver may have the first one
    is_news = first.event is Event.FIRING and together
    was_over = may_be_over and last.event is Event.ENDED and any(entry.batch for entry in entries)
    if is_news and last.event in _STILL_THERE and not was_over:
        return replace(last, event=Event.FIRING, excerpts=last.excerpts or first.excerpts)
    return last


def digest(readable: Mapping[OutboxEntry, Notification], *, daily: bool = False) -> Digest:
    """Return one notification of each incident, in one message."""
    newest_first = latest(readable, may_be_over=True)[::-1]
    worst_first = sorted(
        newest_first,
        key=lambda notification: (notification.event is Event.RESOLVED, -notification.incident.severity),
    )
    keys = "\x1f".join(entry.key for entry in readable)
    key = blake2b(keys.encode(), digest_size=16).hexdigest()
    if any(entry.batch for entry in readable):
        return Digest(key, worst_first, why="the runs were over when they were first seen")
    if daily:
        return Digest(key, worst_first, why="this sink asks for one a day")
    return Digest(key, worst_first)
