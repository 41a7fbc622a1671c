"""Where the time comes from. Only the command line asks; everything below it is told."""

import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Seconds since the epoch."""

    def now(self) -> float:
        """The time at this moment."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """The time at this moment."""
        return time.time()


@dataclass
class ManualClock:
    """Stands still until it is moved, for tests and for reading a log at the log's own pace."""

    seconds: float = 0.0

    def now(self) -> float:
        """The time it was set to."""
        return self.seconds

    def advance(self, seconds: float) -> None:
        """Move it on."""
        self.seconds += seconds
