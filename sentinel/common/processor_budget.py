"""Ends work that takes more of the processor than one run may have, so that it costs itself alone."""

import signal
import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

_AGAIN_SECONDS = 0.1  # after which work that went on all the same is ended again

_R = TypeVar("_R")


class ProcessorTimeExceeded(Exception):
    """A run took more of the processor than it may have at once."""


class Budget(Protocol):
    """What does the work of one run, such as a `ProcessorBudget`."""

    def __call__(self, work: Callable[[], _R], /) -> _R: ...


class ProcessorBudget:
    """Does work that may take ``seconds`` of the processor.

    Only the main thread can be interrupted; work in another one is not limited. Waiting costs nothing.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = float("inf")  # in the time of this thread

    def __call__(self, work: Callable[[], _R]) -> _R:
        """Return the result of the work. Raises ProcessorTimeExceeded in the midst of it."""
        if threading.current_thread() is not threading.main_thread():
            return work()
        earlier_handler = signal.signal(signal.SIGPROF, self._interrupt)
        self._end = time.thread_time() + self._seconds
        signal.setitimer(signal.ITIMER_PROF, self._seconds, _AGAIN_SECONDS)
        try:
            return work()
        finally:
            self._end = float("inf")
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            signal.signal(signal.SIGPROF, earlier_handler)

    def _interrupt(self, *_: object) -> None:
        """End the work, unless it was other threads that took the time of the process."""
        if time.thread_time() >= self._end:
            raise ProcessorTimeExceeded(f"more than {self._seconds:.0f} s of the processor at once")


def unlimited(work: Callable[[], _R]) -> _R:
    """Return the result of the work, however long it takes."""
    return work()
