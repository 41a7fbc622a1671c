"""Delivers the notifications of the outbox to the sinks. Only this module retries.

Each sink has a thread of its own, so a sink that hangs delays no other. A notification leaves the outbox
only after its sink took it; after a kill in between it is sent again with the same key.

What waits about one incident leaves as one message, which says how it is now. A receiver that fails rests
for growing pauses, and then gets one message at a time. What piled up in the meantime follows as digests. A
notification that the receiver refuses waits by itself, and the others go on; once the receiver, which refused
several in a row, takes one, all are tried again. Pauses are measured in time awake, so a suspend or a clock
that is set neither loses a notification nor delays one for long.
"""

import logging
import math
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from sentinel.common.clock import Clock
from sentinel.common.errors import StateDamaged, StateError
from sentinel.common.state_dir import state_dir_option
from sentinel.common.text import duration_text
from sentinel.sinks.base import Digest, Notification, Permanent, RefreshingSink, Sink, SinkError
from sentinel.sinks.batching import digest, latest, notification, record_receipt, up_to_date
from sentinel.sinks.budget import Budget, BudgetConfig
from sentinel.sinks.enrichment import completed
from sentinel.sinks.retry import attempt, pause_seconds
from sentinel.sinks.self_alerts import SelfAlerts
from sentinel.sinks.sink_queue import MAX_RETRY_AFTER_SECONDS, SinkQueue
from sentinel.storage.outbox import Outbox, OutboxEntry, Receiver
from sentinel.storage.store import Store
from sentinel.telemetry.counters import DELIVERIES

GIVE_UP_SECONDS = 86400.0
"""A notification is given up when its pauses add up to this: after some 300 tries, or 96 if the receiver
asks for the longest pauses."""
_MAX_WAIT_SECONDS = 30.0  # another process may write to the outbox
_MAX_HOLD_SECONDS = 10.0  # how long a damaged state waits for the threads that have it open
_REFUSAL_SECONDS = 30.0  # before what was refused is tried again; twice as long after each refusal ...
_MAX_REFUSAL_SECONDS = 4 * 3600.0  # ... up to this

_log = logging.getLogger(__name__)


class Delivery:
    """Sends what is due between ``start`` and ``stop``; `with` calls both.

    ``link`` is the template of the links to runs; see `sentinel.sinks.enrichment`. ``budget`` bounds what
    each sink gets a day, and the sinks in ``daily`` get all in one message a day.

    The threads wait in real time for what ``clock`` says. Whoever moves a clock by hand must call ``wake``.
    """

    def __init__(
        self,
        state_dir: Path,
        sinks: Sequence[Sink],
        clock: Clock,
        link: str = "",
        budget: BudgetConfig | None = None,
        daily: Collection[str] = (),
    ) -> None:
        self._state_dir = state_dir
        self._budget = budget
        self._daily = daily
        self._clock = clock
        self._sinks = sinks
        self._link = link
        self._options = state_dir_option(state_dir)
        self._changed = threading.Condition()
        self._stopping = False
        self._queues: dict[str, SinkQueue] = {}
        self._threads: list[threading.Thread] = []
        self._self_alerts = SelfAlerts(sinks, clock)

    def start(self) -> None:
        """Start to send."""
        for sink in self._sinks:
            # Daemons: a sink that hangs must not keep the process from ending.
            thread = threading.Thread(
                target=self._deliver_to_sink, args=(sink,), name=f"sink {sink.name}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def wake(self) -> None:
        """Read the outbox now, because something was committed or the clock was moved."""
        with self._changed:
            self._changed.notify_all()

    def announce(self, problem: str | None) -> None:
        """Send a problem of the watch itself to every sink, or with None that it is over.

        Needs no state directory.
        """
        self._self_alerts.announce(problem)

    def announce_events(self, news: Iterable[str]) -> None:
        """Send what happened to the watch itself to every sink, once."""
        self._self_alerts.announce_events(news)

    def drain(self, seconds: float) -> bool:
        """Wait until everything is sent, at most this long. Return whether it is.

        Does not wait for a receiver that rests for longer.
        """
        deadline = self._clock.monotonic() + seconds
        with Store(self._state_dir) as store, self._changed:
            self._changed.notify_all()
            while True:
                next_due = min((self._next_due(store.outbox, sink) for sink in self._sinks), default=math.inf)
                remaining_seconds = deadline - self._clock.monotonic()
                if next_due >= deadline or remaining_seconds <= 0:
                    return next_due == math.inf
                self._changed.wait(min(remaining_seconds, _MAX_WAIT_SECONDS))

    def stop(self, seconds: float = 0.0) -> None:
        """Send nothing more. Wait at most this long for deliveries that have begun; they may arrive later."""
        self._self_alerts.stop()
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        deadline = self._clock.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - self._clock.monotonic()))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop. A state that proves damaged is set aside next, so the threads first let go of it."""
        self.stop(_MAX_HOLD_SECONDS if isinstance(error, StateDamaged) else 0.0)

    def _deliver_to_sink(self, sink: Sink) -> None:
        while not self._stopping:
            try:
                with Store(self._state_dir) as store:
                    while (entries := self._next(store.outbox, sink)) is not None:
                        self._refresh(store, self._queues[sink.name])
                        if entries:
                            self._deliver(store, self._queues[sink.name], entries)
                        self.wake()
            except StateError as error:
                _log.error("sink %s: %s", sink.name, error)
                with self._changed:
                    self._changed.wait_for(lambda: self._stopping, _MAX_WAIT_SECONDS)

    def _next(self, outbox: Outbox, sink: Sink) -> list[OutboxEntry] | None:
        """Wait for the next notifications that are due, or for the time to refresh; None at the end."""
        with self._changed:  # from before the outbox is read, so that no call of ``wake`` falls in between
            while not self._stopping:
                seconds = self._next_due(outbox, sink) - self._clock.monotonic()
                queue = self._queues[sink.name]
                if seconds <= 0:
                    return queue.next_message(outbox)
                refresh_seconds = queue.refresh_at - self._clock.monotonic()
                if refresh_seconds <= 0:
                    return []
                self._changed.wait(min(seconds, refresh_seconds, _MAX_WAIT_SECONDS))
        return None

    def _next_due(self, outbox: Outbox, sink: Sink) -> float:
        """Return when the sink's next try is due, in time awake; infinity if nothing waits."""
        if sink.name not in self._queues:
            budget = Budget(sink.name, self._budget, self._clock, daily=sink.name in self._daily)
            self._queues[sink.name] = SinkQueue(sink, outbox.receiver(sink.name), self._clock, budget)
        queue = self._queues[sink.name]
        if outbox.waiting(sink.name, queue.refused()):
            return max(queue.rests_until, queue.budget.due(outbox))
        return queue.refused_until() if outbox.waiting(sink.name) else math.inf

    def _refresh(self, store: Store, queue: SinkQueue) -> None:
        """Send what the receiver holds to it again, if that is due and it does not rest."""
        sink = queue.sink
        awake = self._clock.monotonic()
        if awake < queue.refresh_at or not isinstance(sink, RefreshingSink):
            return
        queue.refresh_at = awake + sink.refresh_seconds
        if awake >= queue.rests_until:
            decoded = (notification(body) for body in store.receipts.standing(sink.name))
            readable = [receipt for receipt in decoded if receipt is not None]
            now = self._clock.now()
            _, error = attempt(lambda: sink.refresh(readable, now))
            earlier_error = queue.refresh_error
            queue.refresh_error = str(error) if error else None
            if queue.refresh_error not in (None, earlier_error):
                _log.warning("sink %s: open incidents were not told again: %s", sink.name, error)

    def _deliver(self, store: Store, queue: SinkQueue, entries: Sequence[OutboxEntry]) -> None:
        outbox = store.outbox
        queue.note_try(entry.incident for entry in entries)
        entries = outbox.begin(entries)
        decoded = {entry: notification(entry.body) for entry in entries}
        readable = {entry: each for entry, each in decoded.items() if each is not None}
        if broken := [entry for entry in entries if entry not in readable]:
            error_text = "its row in the state directory cannot be read"
            _give_up(outbox, queue.sink.name, broken, error_text, self._clock.now())
        if readable:
            readable = {entry: up_to_date(each, store) for entry, each in readable.items()}
            message = self._message(store, queue, readable)
            now = self._clock.now()
            thread, error = attempt(lambda: queue.sink.send(message, now))
            if error is None:
                record_receipt(store, queue.sink, message, thread, now)
            self._finish(outbox, queue, [*readable], error)

    def _message(
        self, store: Store, queue: SinkQueue, readable: Mapping[OutboxEntry, Notification]
    ) -> Notification | Digest:
        """Return the notification of the only incident, or a digest of several."""
        if len({entry.incident for entry in readable}) > 1:
            return digest(readable, daily=queue.budget.daily)
        (single,) = latest(readable)
        incident = single.incident
        ids = [incident.id] if isinstance(queue.sink, RefreshingSink) else [incident.trouble, incident.id]
        threads = (store.receipts.thread(id_, queue.sink.name) for id_ in dict.fromkeys(ids))
        thread = next(filter(None, threads), "")
        return replace(completed(single, self._link, self._options), thread=thread)

    def _finish(
        self, outbox: Outbox, queue: SinkQueue, entries: Sequence[OutboxEntry], error: SinkError | None
    ) -> None:
        name = queue.sink.name
        now = self._clock.now()
        if error is None:
            with self._changed:  # or `drain` reads in between, and takes what is tried again for delivered
                outbox.sent(name, entries, now)
                queue.note_delivery()
            DELIVERIES.labels(name, "sent").inc(len(entries))
            return
        if over := [entry for entry in entries if entry.waited_seconds >= GIVE_UP_SECONDS]:
            _give_up(outbox, name, over, str(error), now)
        later = [entry for entry in entries if entry.waited_seconds < GIVE_UP_SECONDS]
        DELIVERIES.labels(name, "postponed").inc(len(later))
        incidents = {entry.incident for entry in entries}
        if isinstance(error, Permanent) and len(incidents) == 1:  # else it says nothing about each part
            self._postpone_refusal(outbox, queue, later, error)
        else:
            self._postpone(outbox, queue, later, error)

    def _postpone_refusal(
        self, outbox: Outbox, queue: SinkQueue, entries: Sequence[OutboxEntry], error: SinkError
    ) -> None:
        name = queue.sink.name
        attempts = max((entry.attempts for entry in entries), default=0)
        pause = min(_REFUSAL_SECONDS * 2.0**attempts, _MAX_REFUSAL_SECONDS)
        if not attempts:
            again = duration_text(pause)
            _log.error("sink %s: %s; what it refused is tried again in %s", name, error, again)
        outbox.postponed(name, entries, str(error), pause, None)
        queue.note_refusal((entry.incident for entry in entries), pause)

    def _postpone(
        self, outbox: Outbox, queue: SinkQueue, entries: Sequence[OutboxEntry], error: SinkError
    ) -> None:
        name = queue.sink.name
        now = self._clock.now()
        retry_after = min(getattr(error, "retry_after_seconds", None) or 0.0, MAX_RETRY_AFTER_SECONDS)
        pause = max(pause_seconds(entries[0].key if entries else "", queue.failures), retry_after)
        why = f"{error} and asked for a pause of {duration_text(retry_after)}" if retry_after else str(error)
        if not queue.failures:
            _log.warning("sink %s: %s; trying again in %s", name, why, duration_text(pause))
        outbox.postponed(name, entries, why, pause, Receiver(queue.failures + 1, now + pause))
        queue.failures += 1
        queue.rests_until = self._clock.monotonic() + pause


def _give_up(outbox: Outbox, sink: str, entries: Sequence[OutboxEntry], error: str, now: float) -> None:
    for entry in entries:
        _log.error("sink %s: notification %s given up: %s", sink, entry.key, error)
    outbox.failed(sink, entries, error, now)
    DELIVERIES.labels(sink, "given-up").inc(len(entries))
