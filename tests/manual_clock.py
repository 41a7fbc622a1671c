"""A clock for tests."""

from dataclasses import dataclass


@dataclass
class ManualClock:
    """Stands still until it is moved."""

    seconds: float = 0.0
    awake_seconds: float = 0.0
    worked_seconds: float = 0.0

    def now(self) -> float:
        """The time of day that it was set to."""
        return self.seconds

    def monotonic(self) -> float:
        """The seconds by which it was advanced."""
        return self.awake_seconds

    def cpu_seconds(self) -> float:
        """The seconds that were spent with `work`."""
        return self.worked_seconds

    def work(self, seconds: float) -> None:
        """Use one core for some seconds."""
        self.advance(seconds)
        self.worked_seconds += seconds

    def advance(self, seconds: float) -> None:
        """Let time pass: both times move on."""
        self.seconds += seconds
        self.awake_seconds += seconds

    def jump(self, seconds: float) -> None:
        """Set the time of day forward or back, as a time server does. A suspend looks the same."""
        self.seconds += seconds
