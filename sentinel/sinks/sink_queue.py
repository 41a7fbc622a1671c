"""One sink, the state of its receiver in this process, and the next message to it."""

import math
from collections.abc import Iterable

from sentinel.common.clock import Clock
from sentinel.sinks.base import RefreshingSink, Sink
from sentinel.sinks.budget import Budget
from sentinel.storage.outbox import Outbox, OutboxEntry, Receiver

MAX_RETRY_AFTER_SECONDS = 900.0
"""The longest pause that a receiver can request with Retry-After."""
MAX_SINGLE_NOTIFICATIONS = 20
"""If more notifications than these wait for one receiver, it gets digests."""
_MAX_DIGEST_INCIDENTS = 1500  # of 350 bytes of JSON each; many receivers refuse bodies above a megabyte


class SinkQueue:
    """One sink, and the state of its receiver in this process."""

    def __init__(self, sink: Sink, receiver: Receiver, clock: Clock, budget: Budget) -> None:
        self.sink = sink
        self.budget = budget
        self._clock = clock
        self.failures = receiver.failures
        # The machine's clock may have been set since, so the stored pause is limited.
        wait_seconds = min(max(receiver.next_attempt - clock.now(), 0.0), MAX_RETRY_AFTER_SECONDS)
        self.rests_until = clock.monotonic() + wait_seconds
        self._piling = False
        self._refused_until: dict[str, float] = {}  # by incident, time awake; the sink's thread changes it
        self._refused_in_a_row: set[str] = set()  # incidents
        self.refresh_error: str | None = None  # of the last refresh
        self.refresh_at = clock.monotonic() if isinstance(sink, RefreshingSink) else math.inf

    def next_message(self, outbox: Outbox) -> list[OutboxEntry]:
        """Return the notifications to send next as one message; several make a digest.

        If many wait, the worst one goes first and alone, and the rest follow as digests. A receiver that
        failed must take one notification before it gets the rest.
        """
        name = self.sink.name
        refused = self.refused()
        was_piling = self._piling
        limit = 1 if was_piling else MAX_SINGLE_NOTIFICATIONS
        self._piling = outbox.waiting(name, refused) > limit
        makes_digest = (was_piling and self._piling) or self.budget.over
        if makes_digest and not self.failures:
            return outbox.worst(name, _MAX_DIGEST_INCIDENTS, refused)
        entries = outbox.worst(name, 1, refused)
        batch = next((entry.batch for entry in entries if entry.batch), "")
        if self.failures or not batch:
            return entries
        entries = [entry for entry in outbox.batch(name, batch) if entry.incident not in refused]
        return entries[:_MAX_DIGEST_INCIDENTS]

    def refused(self) -> list[str]:
        """Return the incidents whose last notification was refused, until they are tried again."""
        awake = self._clock.monotonic()
        return [incident for incident, until in self._refused_until.copy().items() if until > awake]

    def refused_until(self) -> float:
        """Return when the first of them is tried again, in time awake; infinity if there is none."""
        awake = self._clock.monotonic()
        return min((u for u in self._refused_until.copy().values() if u > awake), default=math.inf)

    def note_try(self, incidents: Iterable[str]) -> None:
        """Note that the notifications of some incidents are tried now."""
        for incident in incidents:
            self._refused_until.pop(incident, None)

    def note_refusal(self, incidents: Iterable[str], seconds: float) -> None:
        """Note that the receiver refused some incidents, and after how long they are tried again."""
        self.failures = 0
        for incident in incidents:
            self._refused_until[incident] = self._clock.monotonic() + seconds
            self._refused_in_a_row.add(incident)

    def note_delivery(self) -> None:
        """Note that the receiver took a message. If it refused several before, these are tried again."""
        self.failures = 0
        if len(self._refused_in_a_row) > 1:
            self._refused_until.clear()
        self._refused_in_a_row.clear()
        self.budget.sent()
