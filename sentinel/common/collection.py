"""Spends little time on objects that nothing reaches: searches for them seldom, and ends without them."""

import atexit
import gc
import os
import sys

_THRESHOLDS = (200_000, 20, 100)
"""New objects, and collections of younger ones, after which Python collects; see `gc.set_threshold`.

A process creates fewer objects while it starts, so no collection delays it."""


def collect_seldom() -> None:
    """Collect less often than by default, and not at all when the process ends.

    The data of runs makes millions of objects and few cycles, and each collection would visit all of them. A
    process that ends gives back its memory anyway.
    """
    gc.set_threshold(*_THRESHOLDS)
    atexit.register(gc.freeze)


class QuickEnd:
    """Ends the process with a status once Python has done what is to be done at its end.

    Python would destroy each object for itself before that, which takes longer than to read a small log. Make
    it before anything else that is to be done at the end, because Python does what was registered last first.
    """

    def __init__(self) -> None:
        self.status: int | None = None
        atexit.register(self._end)

    def _end(self) -> None:
        if self.status is None:
            return
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            return  # which Python says when it flushes them itself
        os._exit(self.status)
