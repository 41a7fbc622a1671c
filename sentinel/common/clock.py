"""The clocks. Only the command line makes a clock; everything below takes it as an argument.

The time of day names moments in reports and is compared with logs. A person or a time server may set it, so
no pause and no age is measured with it. Pauses and ages are measured in time awake, which never goes back.
CPU time says how much of the machine was used.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """The source of all times."""

    def now(self) -> float:
        """Return the time of day in seconds since the epoch. It may jump both ways."""
        ...

    def monotonic(self) -> float:
        """Return seconds awake since a fixed moment. They never go back, and stand still in a suspension."""
        ...

    def cpu_seconds(self) -> float:
        """Return seconds for which this process has used a core, over all its threads."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Read the clock of the machine."""
        return time.time()

    def monotonic(self) -> float:
        """Count from the start of the machine."""
        return time.monotonic()

    def cpu_seconds(self) -> float:
        """Count from the start of the process."""
        return time.process_time()
