"""The clocks. Only the command line makes a clock; everything below takes it as an argument.

The time of day names moments in reports and is compared with logs. A person or a time server may set it, so
no pause and no age is measured with it. Pauses and ages are measured in time awake, which never goes back.
CPU time says how much of the machine was used.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """Gives these times."""

    def now(self) -> float:
        """Return the time of day in seconds since the epoch. It may jump both ways."""
        ...

    def monotonic(self) -> float:
        """Return seconds since a fixed moment. The value never goes back and stands still during a
        suspend.
        """
        ...

    def cpu_seconds(self) -> float:
        """Return seconds for which this process has used a core, over all its threads."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Return the time of day in seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that the machine has been awake since it started."""
        return time.monotonic()

    def cpu_seconds(self) -> float:
        """Return seconds for which this process has used a core, over all its threads."""
        return time.process_time()
