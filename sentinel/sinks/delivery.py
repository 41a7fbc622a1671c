"""Delivers the notifications of the outbox to the sinks. Only this module retries.

Each sink has a thread of its own, so a sink that hangs delays no other. A notification leaves the outbox
only after its sink took it; after a kill in between it is sent again with the same key.

What waits about one incident leaves as one message, which says what is so now. A receiver that fails rests
for growing pauses, and then gets one message at a time. What piled up in the meantime follows as digests. A
notification that the receiver refuses waits by itself, and the others go on; once the receiver, which refused
several in a row, takes one, all are tried again. Pauses are measured in time awake, so a suspend or a clock
that is set neither loses a notification nor holds one up for long.
"""

import logging
import math
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from sentinel.common.clock import Clock
from sentinel.common.errors import StateError
from sentinel.common.state_dir import state_dir_option
from sentinel.common.text import duration_text
from sentinel.sinks.base import Digest, Notification, Permanent, RefreshingSink, Sink, SinkError
from sentinel.sinks.batching import digest, keep, latest, notification
from sentinel.sinks.budget import Budget, BudgetConfig
from sentinel.sinks.enrichment import completed
from sentinel.sinks.retry import attempt, pause_seconds
from sentinel.sinks.self_alerts import SelfAlerts
from sentinel.sinks.sink_queue import MAX_ASKED_SECONDS, SinkQueue
from sentinel.storage.outbox import Outbox, OutboxEntry, Receiver
from sentinel.storage.store import Store
from sentinel.telemetry.counters import DELIVERIES

GIVE_UP_SECONDS = 86400.0
"""A notification is given up when its pauses add up to this: after some 300 tries, or 96 if the receiver
asks for the longest pauses."""
_MAX_WAIT_SECONDS = 30.0  # another process may write to the outbox
_REFUSED_SECONDS = 30.0  # before what was refused is tried again; twice as long after each refusal ...
_MAX_REFUSED_SECONDS = 4 * 3600.0  # ... up to this

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
        self._lanes: dict[str, SinkQueue] = {}
        self._threads: list[threading.Thread] = []
        self._notices = SelfAlerts(sinks, clock)

    def start(self) -> None:
        """Start to send."""
        for sink in self._sinks:
            # Daemons: a sink that hangs must not keep the process from ending.
            thread = threading.Thread(target=self._serve, args=(sink,), name=f"sink {sink.name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def wake(self) -> None:
        """Read the outbox now, because something was committed or the clock was moved."""
        with self._changed:
            self._changed.notify_all()

    def announce(self, trouble: str | None) -> None:
        """Tell every sink of a trouble of the watch itself, or that it is over; needs no state directory."""
        self._notices.announce(trouble)

    def announce_events(self, news: Iterable[str]) -> None:
        """Tell every sink, once, of what happened to the watch itself."""
        self._notices.announce_events(news)

    def drain(self, seconds: float) -> bool:
        """Wait until nothing is left to send, at most this long. Gives whether nothing is left.

        Does not wait for a receiver that rests for longer.
        """
        deadline = self._clock.monotonic() + seconds
        with Store(self._state_dir) as store, self._changed:
            self._changed.notify_all()
            while True:
                due = min((self._next_due(store.outbox, sink) for sink in self._sinks), default=math.inf)
                left = deadline - self._clock.monotonic()
                if due >= deadline or left <= 0:
                    return due == math.inf
                self._changed.wait(min(left, _MAX_WAIT_SECONDS))

    def stop(self, seconds: float = 0.0) -> None:
        """Send nothing more. Wait at most this long for deliveries that have begun; they may arrive later."""
        self._notices.stop()
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
        self.stop()

    def _serve(self, sink: Sink) -> None:
        while not self._stopping:
            try:
                with Store(self._state_dir) as store:
                    while (entries := self._next(store.outbox, sink)) is not None:
                        self._refresh(store, self._lanes[sink.name])
                        if entries:
                            self._deliver(store, self._lanes[sink.name], entries)
                        self.wake()
            except StateError as error:
                _log.error("sink %s: %s", sink.name, error)
                with self._changed:
                    self._changed.wait_for(lambda: self._stopping, _MAX_WAIT_SECONDS)

    def _next(self, outbox: Outbox, sink: Sink) -> list[OutboxEntry] | None:
        """Wait for the next notifications that are due, or for the time to refresh; None at the end."""
        with self._changed:  # held while looking, so that no call of ``wake`` falls in between
            while not self._stopping:
                wait = self._next_due(outbox, sink) - self._clock.monotonic()
                lane = self._lanes[sink.name]
                if wait <= 0:
                    return lane.next_message(outbox)
                if (refresh := lane.refresh_at - self._clock.monotonic()) <= 0:
                    return []
                self._changed.wait(min(wait, refresh, _MAX_WAIT_SECONDS))
        return None

    def _next_due(self, outbox: Outbox, sink: Sink) -> float:
        """Return when the sink's next try is due, in time awake; infinity if nothing waits."""
        if sink.name not in self._lanes:
            budget = Budget(sink.name, self._budget, self._clock, daily=sink.name in self._daily)
            self._lanes[sink.name] = SinkQueue(sink, outbox.receiver(sink.name), self._clock, budget)
        lane = self._lanes[sink.name]
        if outbox.waiting(sink.name, lane.refused()):
            return max(lane.rests_until, lane.budget.due(outbox))
        return lane.refused_until() if outbox.waiting(sink.name) else math.inf

    def _refresh(self, store: Store, lane: SinkQueue) -> None:
        """Tell the receiver again of what it holds, if that is due and it does not rest."""
        sink = lane.sink
        awake = self._clock.monotonic()
        if awake < lane.refresh_at or not isinstance(sink, RefreshingSink):
            return
        lane.refresh_at = awake + sink.refresh_seconds
        if awake >= lane.rests_until:
            standing = (notification(body) for body in store.receipts.standing(sink.name))
            told = [last for last in standing if last is not None]
            now = self._clock.now()
            _, error = attempt(lambda: sink.refresh(told, now))
            before = lane.not_refreshed
            lane.not_refreshed = str(error) if error else None
            if lane.not_refreshed not in (None, before):
                _log.warning("sink %s: open incidents were not told again: %s", sink.name, error)

    def _deliver(self, store: Store, lane: SinkQueue, entries: Sequence[OutboxEntry]) -> None:
        outbox = store.outbox
        lane.tries(entry.incident for entry in entries)
        entries = outbox.begin(entries)
        readable = {entry: told for entry in entries if (told := notification(entry.body)) is not None}
        if broken := [entry for entry in entries if entry not in readable]:
            _give_up(
                outbox,
                lane.sink.name,
                broken,
                "its row in the state directory cannot be read",
                self._clock.now(),
            )
        if readable:
            message = self._message(store, lane, readable)
            now = self._clock.now()
            thread, error = attempt(lambda: lane.sink.send(message, now))
            if error is None:
                keep(store, lane.sink, message, thread, now)
            self._finish(outbox, lane, [*readable], error)

    def _message(
        self, store: Store, lane: SinkQueue, readable: Mapping[OutboxEntry, Notification]
    ) -> Notification | Digest:
        """Return what is so now of the only incident, or a digest of several."""
        if len({entry.incident for entry in readable}) > 1:
            return digest(readable, daily=lane.budget.daily)
        (told,) = latest(readable)
        thread = store.receipts.thread(told.incident.id, lane.sink.name)
        return replace(completed(told, self._link, self._options), thread=thread)

    def _finish(
        self, outbox: Outbox, lane: SinkQueue, entries: Sequence[OutboxEntry], error: SinkError | None
    ) -> None:
        name = lane.sink.name
        now = self._clock.now()
        if error is None:
            with self._changed:  # or `drain` looks in between, and takes what is tried again for settled
                outbox.sent(name, entries, now)
                lane.took()
            DELIVERIES.labels(name, "sent").inc(len(entries))
            return
        if over := [entry for entry in entries if entry.waited_seconds >= GIVE_UP_SECONDS]:
            _give_up(outbox, name, over, str(error), now)
        later = [entry for entry in entries if entry.waited_seconds < GIVE_UP_SECONDS]
        DELIVERIES.labels(name, "postponed").inc(len(later))
        incidents = {entry.incident for entry in entries}
        if isinstance(error, Permanent) and len(incidents) == 1:  # else it says nothing about each part
            self._refused(outbox, lane, later, error)
        else:
            self._postpone(outbox, lane, later, error)

    def _refused(
        self, outbox: Outbox, lane: SinkQueue, entries: Sequence[OutboxEntry], error: SinkError
    ) -> None:
        name = lane.sink.name
        tries = max((entry.attempts for entry in entries), default=0)
        pause = min(_REFUSED_SECONDS * 2.0**tries, _MAX_REFUSED_SECONDS)
        if not tries:
            again = duration_text(pause)
            _log.error("sink %s: %s; what it refused is tried again in %s", name, error, again)
        outbox.postponed(name, entries, str(error), pause, None)
        lane.refuse((entry.incident for entry in entries), pause)

    def _postpone(
        self, outbox: Outbox, lane: SinkQueue, entries: Sequence[OutboxEntry], error: SinkError
    ) -> None:
        name = lane.sink.name
        now = self._clock.now()
        asked = min(getattr(error, "retry_after_seconds", None) or 0.0, MAX_ASKED_SECONDS)
        pause = max(pause_seconds(entries[0].key if entries else "", lane.failures), asked)
        why = f"{error} and asked for a pause of {duration_text(asked)}" if asked else str(error)
        if not lane.failures:
            _log.warning("sink %s: %s; trying again in %s", name, why, duration_text(pause))
        outbox.postponed(name, entries, why, pause, Receiver(lane.failures + 1, now + pause))
        lane.failures += 1
        lane.rests_until = self._clock.monotonic() + pause


def _give_up(outbox: Outbox, sink: str, entries: Sequence[OutboxEntry], error: str, now: float) -> None:
    for entry in entries:
        _log.error("sink %s: notification %s given up: %s", sink, entry.key, error)
    outbox.failed(sink, entries, error, now)
    DELIVERIES.labels(sink, "given-up").inc(len(entries))
