"""Makes Python search seldom for objects that nothing reaches any more."""

import atexit
import gc

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
