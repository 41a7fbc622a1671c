"""Work of a probe that may hang, interrupted by the system's alarm clock."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

HANG_SECONDS = 5.0
"""How long a set may take: some thousand times what it takes."""

_rings = False


def _raise(_: int, __: FrameType | None) -> None:
    if _rings:
        raise TimeoutError(f"it did not end within {HANG_SECONDS:g} s")


@contextmanager
def deadline() -> Iterator[Callable[[], None]]:
    """Raise TimeoutError within work that takes too long. It gives what starts the time anew.

    It reaches all that returns to Python or waits in a system call, in the main thread of a process that does
    not use SIGALRM itself. Elsewhere, and within another deadline, it does nothing. A thread of its own would
    reach no more, and would have to be left behind with what it holds.
    """
    global _rings  # a process has one alarm clock
    if (
        _rings
        or not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL
    ):
        yield lambda: None
        return
    signal.signal(signal.SIGALRM, _raise)
    _rings = True
    _start()
    try:
        yield _start
    finally:
        _rings = False  # first, so that an alarm that comes now raises nothing
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _start() -> None:
    signal.setitimer(signal.ITIMER_REAL, HANG_SECONDS)
