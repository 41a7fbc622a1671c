"""The two clocks. Only the command line makes a clock; everything below takes it as an argument.

The time of day names moments in reports and is compared with logs. A person or a time server may set it, so
no pause and no age is measured with it. Pauses and ages are measured in time awake, which never goes back.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """Gives both times."""

    def now(self) -> float:
        """The time of day in seconds since the epoch. It may jump both ways."""
        ...

    def awake(self) -> float:
        """Seconds since a fixed moment. The value never goes back and stands still during a suspend."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """The time of day in seconds since the epoch."""
        return time.time()

    def awake(self) -> float:
        """Seconds that the machine has been awake since it started."""
        return time.monotonic()
