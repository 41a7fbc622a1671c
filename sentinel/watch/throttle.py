"""Keeps what a watch takes of the machine to a part of a core, however many runs it follows.

To poll a run and to judge what is new costs nearly the same for one new step as for ten. So a watch that
works too much reads less often, and then more at a time. Few runs never come near the quota and are read at
once.
"""

from sentinel.common.clock import Clock

CPU_QUOTA = 0.2
"""The part of one core that a watch may use, because the trainings need the machine more."""

PRESSING_CPU_QUOTA = 1 / 3
"""The part of one core that a watch may use while logs lag or have waited for long."""

_BURST_SECONDS = 60.0  # what was not used for so long may be used at once, by a start or a burst of logs
_MAX_PAUSE_SECONDS = 30.0  # after a round that took very long


class Throttle:
    """Says how long to rest, from the CPU time that the process has used."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._cpu_seconds = clock.cpu_seconds()
        self._paid_at = float("-inf")  # time awake at which the quota has paid for all work so far

    def pause_seconds(self, quota: float = CPU_QUOTA) -> float:
        """Return how long to rest after the work since the last call; 0 if it stayed within the quota."""
        now = self._clock.monotonic()
        before = self._cpu_seconds
        self._cpu_seconds = self._clock.cpu_seconds()
        begin = max(self._paid_at, now - _BURST_SECONDS)
        self._paid_at = min(begin + (self._cpu_seconds - before) / quota, now + _MAX_PAUSE_SECONDS)
        return max(0.0, self._paid_at - now)
