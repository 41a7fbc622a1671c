"""Keeps what a watch takes of the machine to a share of a core, however many runs it follows.

To poll a run and to judge what is new costs nearly the same for one new step as for ten. So a watch that
works too much reads less often, and then more at a time. Few runs never come near the share and are read at
once.
"""

from sentinel.common.clock import Clock

CPU_QUOTA = 0.2
"""The part of one core that a watch may use, because the trainings need the machine more."""

PRESSED_SHARE = 1 / 3
"""The part of one core that a watch may use while logs are behind or have waited for long."""

_SAVED_SECONDS = 60.0  # what was not used for so long may be used at once, by a start or a burst of logs
_MAX_SECONDS = 30.0  # after a round that took very long


class Throttle:
    """Says how long to rest, from the CPU time that the process has used."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._cpu_seconds = clock.cpu_seconds()
        self._paid_at = float("-inf")  # time awake at which the share has paid for all work so far

    def pause_seconds(self, share: float = CPU_QUOTA) -> float:
        """Return how long to rest after the work since the last call; 0 if that work stayed within the
        share.
        """
        now = self._clock.monotonic()
        before = self._cpu_seconds
        self._cpu_seconds = self._clock.cpu_seconds()
        begin = max(self._paid_at, now - _SAVED_SECONDS)
        self._paid_at = min(begin + (self._cpu_seconds - before) / share, now + _MAX_SECONDS)
        return max(0.0, self._paid_at - now)
