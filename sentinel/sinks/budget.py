"""What waits for a digest: what a sink asks for once a day, and the least certain of what is too much."""

import logging
import math
from typing import TYPE_CHECKING

from pydantic import Field

from sentinel.common.clock import Clock
from sentinel.common.config_table import ConfigTable
from sentinel.detectors.severity import Severity

if TYPE_CHECKING:
    from sentinel.storage.outbox import Outbox

DIGEST_SECONDS = 3600.0
"""How long messages over the budget are gathered for a digest."""

_DAY_SECONDS = 86400.0  # of which the budget bounds the messages, and which a daily digest waits
_RESERVED_FRACTION = 0.5  # of the budget, which only what is critical may use

_log = logging.getLogger(__name__)


class BudgetConfig(ConfigTable):
    """A bound on the messages to each sink. A digest counts as one; one that all is over does not count."""

    pages_per_run_day: float = Field(
        gt=0,
        description="messages a day for each run that was under watch that day. Half of them are kept for "
        "what is critical",
    )


class Budget:
    """The budget of one sink; without a configuration there is no bound.

    Messages over the budget wait for a digest. It is due when the oldest message has waited for
    `DIGEST_SECONDS`, by the machine's clock or in time awake, whichever comes first, so setting the clock
    delays no message further. If the sink wants a ``daily`` digest, every message waits like this, for a day.
    """

    def __init__(self, sink: str, config: BudgetConfig | None, clock: Clock, *, daily: bool = False) -> None:
        self._sink = sink
        self._config = config
        self._clock = clock
        self.daily = daily
        self._gathers_since: float | None = None  # time awake

    @property
    def over(self) -> bool:
        """Whether what waits is to leave as a digest, as of the last call of `due`."""
        return self._gathers_since is not None

    def due(self, outbox: "Outbox") -> float:
        """Return when what waits may leave, in time awake; minus infinity if at once."""
        if not self.daily and self._allows(outbox):
            self._gathers_since = None
            return -math.inf
        if self._gathers_since is None:
            self._gathers_since = self._clock.monotonic()
            if not self.daily:
                warning = "sink %s: its budget is spent; messages are gathered for up to an hour"
                _log.warning(warning, self._sink)
        seconds = _DAY_SECONDS if self.daily else DIGEST_SECONDS
        waits = self._clock.now() - outbox.oldest(self._sink)
        return self._gathers_since + seconds if 0 <= waits < seconds else -math.inf

    def sent(self) -> None:
        """Note that a message was sent; what waits is gathered anew."""
        self._gathers_since = None

    def _allows(self, outbox: "Outbox") -> bool:
        if self._config is None:
            return True
        urgency = outbox.urgency(self._sink)
        since = self._clock.now() - _DAY_SECONDS
        pages = self._config.pages_per_run_day * outbox.runs(since)
        usable = pages if urgency >= Severity.CRITICAL else pages * (1 - _RESERVED_FRACTION)
        return not urgency or outbox.pages(self._sink, since) < usable
