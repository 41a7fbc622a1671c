"""Decides when to search the watched paths for new runs."""

import os
from collections.abc import Collection
from pathlib import Path

from sentinel.common.clock import Clock
from sentinel.watch.watched import WatchedRuns

_SEARCH_SECONDS = 5.0  # new runs are searched for this often if files changed that may become one ...
_SEARCH_SHARE = 0.05  # ... and for at most this share of the time
_MAX_SEEN = 1 << 16  # changed files that are remembered; then each causes one more search


class DiscoverySchedule:
    """Remembers which changes an earlier search has seen."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: set[Path] = set()
        self._next_at = float("-inf")
        self._promising = False  # a file changed that may become a run or hold another one

    def is_due(self, changed: Collection[Path], runs: WatchedRuns) -> bool:
        """Return whether to search because of these changes: at once at a new path, after some seconds at a
        known one.
        """
        self._promising = self._promising or any(map(runs.may_grow_by, changed))
        new = not self._seen.issuperset(changed)
        self._seen.update(changed)
        self._seen.difference_update([path for path in changed if not os.path.lexists(path)])
        return new or (self._promising and self._clock.monotonic() >= self._next_at)

    def done(self, begun: float) -> None:
        """Note that a search that began at this time awake is done."""
        ended = self._clock.monotonic()
        if len(self._seen) > _MAX_SEEN:
            self._seen.clear()
        self._next_at = ended + max(_SEARCH_SECONDS, (ended - begun) / _SEARCH_SHARE)
        self._promising = False
