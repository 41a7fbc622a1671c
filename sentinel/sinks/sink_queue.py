"""One sink, the state of its receiver in this process, and what it is sent next."""

import math
from collections.abc import Iterable

from sentinel.common.clock import Clock
from sentinel.sinks.base import RefreshingSink, Sink
from sentinel.sinks.budget import Budget
from sentinel.storage.outbox import Outbox, OutboxEntry, Receiver

MAX_ASKED_SECONDS = 900.0
"""The longest pause that a receiver can ask for with Retry-After."""
PILE = 20
"""If more notifications than these wait for one receiver, it gets digests."""
DIGEST_INCIDENTS = 1500
"""The most incidents in one digest. Each takes some 350 bytes of JSON, and many receivers refuse bodies above
a megabyte."""


class SinkQueue:
    """One sink, and the state of its receiver in this process."""

    def __init__(self, sink: Sink, known: Receiver, clock: Clock, budget: Budget) -> None:
        self.sink = sink
        self.budget = budget
        self._clock = clock
        self.failures = known.failures
        # The machine's clock may have been set since, so the stored pause is limited.
        rest = min(max(known.next_attempt - clock.now(), 0.0), MAX_ASKED_SECONDS)
        self.rests_until = clock.monotonic() + rest
        self.piling = False
        self._refused_until: dict[str, float] = {}  # by incident, time awake; the sink's thread changes it
        self._refused_in_a_row: set[str] = set()  # incidents
        self.not_refreshed: str | None = None  # why the receiver was not told again the last time
        self.refresh_at = clock.monotonic() if isinstance(sink, RefreshingSink) else math.inf

    def next_message(self, outbox: Outbox) -> list[OutboxEntry]:
        """Return the notifications to send next as one message; several make a digest.

        If many wait, the worst one goes first and alone, and the rest follow as digests. A receiver that
        failed must take one notification before it gets the rest.
        """
        name = self.sink.name
        refused = self.refused()
        begun = self.piling
        self.piling = outbox.waiting(name, refused) > (1 if self.piling else PILE)
        if ((begun and self.piling) or self.budget.over) and not self.failures:
            return outbox.worst(name, DIGEST_INCIDENTS, refused)
        entries = outbox.worst(name, 1, refused)
        batch = next((entry.batch for entry in entries if entry.batch), "")
        if self.failures or not batch:
            return entries
        return [entry for entry in outbox.batch(name, batch) if entry.incident not in refused][
            :DIGEST_INCIDENTS
        ]

    def refused(self) -> list[str]:
        """Return the incidents of which the receiver refused the last news, until they are tried again."""
        awake = self._clock.monotonic()
        return [incident for incident, until in self._refused_until.copy().items() if until > awake]

    def refused_until(self) -> float:
        """Return when the first of them is tried again, in time awake; infinity if there is none."""
        awake = self._clock.monotonic()
        return min((u for u in self._refused_until.copy().values() if u > awake), default=math.inf)

    def tries(self, incidents: Iterable[str]) -> None:
        """Note that the news of some incidents are tried now."""
        for incident in incidents:
            self._refused_until.pop(incident, None)

    def refuse(self, incidents: Iterable[str], seconds: float) -> None:
        """Note that the receiver refused the news of some incidents, and when they are tried again."""
        self.failures = 0
        for incident in incidents:
            self._refused_until[incident] = self._clock.monotonic() + seconds
            self._refused_in_a_row.add(incident)

    def took(self) -> None:
        """Note that the receiver took something. If it refused all before, that is over."""
        self.failures = 0
        if len(self._refused_in_a_row) > 1:
            self._refused_until.clear()
        self._refused_in_a_row.clear()
        self.budget.sent()
