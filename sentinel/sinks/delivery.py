"""Brings the notifications of the outbox to the sinks, and is the only place that tries again.

Each sink has a thread of its own, so one that hangs delays no other. A notification is taken out of
the outbox only after its sink took it; a kill in between sends it once more with the same key.
"""

import logging
import math
import threading
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from sentinel.alerts.store import OutboxEntry, Store
from sentinel.clock import Clock
from sentinel.errors import StateError
from sentinel.sinks.base import Notification, Permanent, Sink, SinkError, Transient
from sentinel.text import duration_text

LONGEST_PAUSE_SECONDS = 300.0
GIVE_UP_SECONDS = 86400.0
_LONGEST_WAIT_SECONDS = 30.0  # another process may write to the outbox; the machine's clock may be set

_log = logging.getLogger(__name__)


class Delivery:
    """Sends what is due from ``start`` to ``stop``; `with` does both.

    The threads wait in real time for what ``clock`` says; who moves a clock by hand calls ``wake``.
    """

    def __init__(self, state_dir: Path, sinks: Sequence[Sink], clock: Clock) -> None:
        self._state_dir = state_dir
        self._clock = clock
        self._sinks = sinks
        self._changed = threading.Condition()
        self._stopping = False
        self._rests: dict[str, float] = {}  # sinks that asked to be left alone, and until when

    def start(self) -> None:
        """Begin to send."""
        for sink in self._sinks:
            # Daemons: a sink that hangs must not keep the process from ending.
            threading.Thread(target=self._serve, args=(sink,), name=f"sink {sink.name}", daemon=True).start()

    def wake(self) -> None:
        """Look into the outbox now: something was committed or the clock was moved."""
        with self._changed:
            self._changed.notify_all()

    def drain(self, deadline: float) -> bool:
        """Wait until nothing is left to send before ``deadline``; whether nothing is left at all.

        A notification that is to be tried again after the deadline is not waited for.
        """
        with Store(self._state_dir) as store, self._changed:
            self._changed.notify_all()
            while True:
                due = min((self._next_due(store, sink) for sink in self._sinks), default=math.inf)
                left = deadline - self._clock.now()
                if due >= deadline or left <= 0:
                    return due == math.inf
                self._changed.wait(min(left, _LONGEST_WAIT_SECONDS))

    def stop(self) -> None:
        """Send nothing more. Returns at once; what is on its way at this moment may still arrive."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _serve(self, sink: Sink) -> None:
        while not self._stopping:
            try:
                with Store(self._state_dir) as store:
                    while (entry := self._next(store, sink)) is not None:
                        told = msgspec.convert(entry.body, Notification)
                        self._settle(store, entry, attempt(sink, told, self._clock.now()))
            except StateError as error:
                _log.error("sink %s: %s", sink.name, error)
                with self._changed:
                    self._changed.wait_for(lambda: self._stopping, _LONGEST_WAIT_SECONDS)

    def _next(self, store: Store, sink: Sink) -> OutboxEntry | None:
        """Wait for what is due next; None at the end."""
        with self._changed:  # held while looking, so that no call of ``wake`` falls in between
            while not self._stopping:
                now = self._clock.now()
                due = self._next_due(store, sink)
                if due <= now and (entry := store.due(sink.name, now)):
                    return entry
                self._changed.wait(min(due - now, _LONGEST_WAIT_SECONDS))
        return None

    def _next_due(self, store: Store, sink: Sink) -> float:
        due = store.next_due(sink.name)
        return math.inf if due is None else max(due, self._rests.get(sink.name, 0.0))

    def _settle(self, store: Store, entry: OutboxEntry, error: SinkError | None) -> None:
        now = self._clock.now()
        give_up = entry.created_at + GIVE_UP_SECONDS
        if error is None:
            store.sent(entry.key, entry.sink, now)
        elif isinstance(error, Permanent) or now >= give_up:
            _log.error("sink %s: notification %s given up: %s", entry.sink, entry.key, error)
            store.failed(entry.key, entry.sink, str(error), now)
        else:
            asked = getattr(error, "retry_after_seconds", None) or 0.0
            at = min(now + max(pause_seconds(entry.key, entry.attempts), asked), give_up)
            if not entry.attempts:
                _log.warning("sink %s: %s; trying again in %s", entry.sink, error, duration_text(at - now))
            store.retry(entry.key, entry.sink, at, str(error))
            # What a receiver asks for holds for everything that it is sent.
            self._rests[entry.sink] = now + min(asked, GIVE_UP_SECONDS)
        self.wake()


def attempt(sink: Sink, notification: Notification, now: float) -> SinkError | None:
    """Send it once; None where the sink took it, else why not. Never raises."""
    try:
        sink.send(notification, now)
    except SinkError as error:
        return error
    except Exception as error:  # noqa: BLE001 - a defect of one sink stops neither it nor the others
        return Transient(f"the sink failed with {type(error).__name__}")  # its text may hold the address
    return None


def pause_seconds(key: str, attempts: int) -> float:
    """The pause after so many failed tries: twice as long each time, between half of it and all of it.

    Which share depends on the key, so that notifications that failed together do not come back together.
    """
    longest = min(2.0 ** min(attempts, 30), LONGEST_PAUSE_SECONDS)
    share = int.from_bytes(blake2b(f"{key} {attempts}".encode(), digest_size=4).digest()) / 2**32
    return longest * (0.5 + 0.5 * share)
