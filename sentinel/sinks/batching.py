"""What the outbox holds, as messages to send, and what a receiver holds once it took one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b

import msgspec

from sentinel.common.conversion import converter
from sentinel.incidents.incident import Event
from sentinel.sinks.base import Digest, Notification, RefreshingSink, Sink
from sentinel.storage.outbox import OutboxEntry
from sentinel.storage.store import Store

_to_notification = converter(Notification)
_STILL_FIRING = frozenset({Event.ESCALATED, Event.REOPENED, Event.REPEAT})


def keep(store: Store, sink: Sink, message: Notification | Digest, thread: str | None, now: float) -> None:
    """Record what the receiver holds now, if its sink will want to know."""
    refreshes = isinstance(sink, RefreshingSink)
    if not refreshes and not thread:
        return
    told = message.notifications if isinstance(message, Digest) else [message]
    over = (Event.RESOLVED, Event.TEST)
    taken = [
        (
            last.incident.id,
            thread or "",
            json.dumps(msgspec.to_builtins(last)) if refreshes and last.event not in over else None,
        )
        for last in told
    ]
    store.receipts.keep(sink.name, taken, now)


def notification(body: str) -> Notification | None:
    """Return the notification with these fields; None if it cannot be read."""
    try:
        return _to_notification(json.loads(body))
    except (ValueError, msgspec.MsgspecError):
        return None


def latest(readable: Mapping[OutboxEntry, Notification]) -> list[Notification]:
    """Return what is so now of each incident, the newest last."""
    about: dict[str, list[OutboxEntry]] = {}
    for entry in readable:
        about[entry.incident] = [*about.pop(entry.incident, ()), entry]
    return [_as_one([readable[entry] for entry in entries], entries) for entries in about.values()]


def _as_one(told: Sequence[Notification], entries: Sequence[OutboxEntry]) -> Notification:
    """Return the last of the notifications of one incident. Who was told nothing of it yet hears that it
    fires.
    """
    first = told[0]
    last = told[-1]
    together = len({entry.attempts for entry in entries}) == 1  # else the receiver may have the first one
    unheard = first.event is Event.FIRING and together
    if unheard and last.event in _STILL_FIRING:
        return replace(last, event=Event.FIRING, excerpts=last.excerpts or first.excerpts)
    return last


def digest(readable: Mapping[OutboxEntry, Notification], *, daily: bool = False) -> Digest:
    """Return what is so now of each incident, in one message."""
    newest_first = latest(readable)[::-1]
    worst_first = sorted(newest_first, key=lambda n: (n.event is Event.RESOLVED, -n.incident.severity))
    keys = "\x1f".join(entry.key for entry in readable)
    key = blake2b(keys.encode(), digest_size=16).hexdigest()
    if any(entry.batch for entry in readable):
        return Digest(key, worst_first, why="the runs were over when they were first seen")
    if daily:
        return Digest(key, worst_first, why="this sink asks for one a day")
    return Digest(key, worst_first)
