"""Decides when to search the watched paths for new runs."""

import os
from collections.abc import Collection
from pathlib import Path

from sentinel.common.clock import Clock
from sentinel.watch.watched import WatchedRuns

_SEARCH_SECONDS = 5.0  # new runs are searched for this often if files changed that may become one ...
_MAX_SEARCH_FRACTION = 0.05  # ... and for at most this part of the time
_MAX_PATHS = 1 << 16  # that are remembered; beyond that each causes one more search


class DiscoverySchedule:
    """Remembers the changed files of earlier searches."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._paths: set[Path] = set()
        self._next_at = float("-inf")
        self._promising = False  # a file changed that may become a run or hold another one

    def is_due(self, changed: Collection[Path], runs: WatchedRuns) -> bool:
        """Return whether to search now: at once after changes at a new path, later at a known one."""
        self._promising = self._promising or any(map(runs.may_grow_by, changed))
        is_new = not self._paths.issuperset(changed)
        self._paths.update(changed)
        self._paths.difference_update([path for path in changed if not os.path.lexists(path)])
        return is_new or (self._promising and self._clock.monotonic() >= self._next_at)

    def note_search(self, started_at: float) -> None:
        """Note that a search that began at this time awake is done."""
        now = self._clock.monotonic()
        if len(self._paths) > _MAX_PATHS:
            self._paths.clear()
        self._next_at = now + max(_SEARCH_SECONDS, (now - started_at) / _MAX_SEARCH_FRACTION)
        self._promising = False
