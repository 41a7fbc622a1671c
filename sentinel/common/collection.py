"""How seldom Python looks for objects that nothing reaches any more."""

import atexit
import gc

_COLLECTION = (200_000, 20, 100)
"""New objects, and young collections, after which Python collects; see `gc.set_threshold`.

A process imports less than that, so that none is held up while it starts."""


def collect_seldom() -> None:
    """Collect less often than by default, and not at all when the process ends.

    What is judged makes few cycles and millions of objects, which each collection would go through. A process
    that ends gives back its memory anyway.
    """
    gc.set_threshold(*_COLLECTION)
    atexit.register(gc.freeze)
