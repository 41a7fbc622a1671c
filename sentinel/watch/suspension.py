"""Keeps a suspension of the watch from counting as inactivity of its runs.

SIGSTOP, `docker pause` and a frozen virtual machine suspend the watch, and mostly its trainings with it. Then
time awake goes on, unlike when the machine sleeps, and every run would seem to be inactive.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sentinel.common.clock import Clock
from sentinel.watch.watched import WatchedRun

_MIN_SUSPENSION_SECONDS = 60.0  # by which a wait on a busy machine never ends too late


@contextmanager
def ignore_suspension(runs: Iterable[WatchedRun], clock: Clock, seconds: float) -> Iterator[None]:
    """Surround a wait of at most ``seconds``. If it takes much longer, no run was inactive in that time."""
    until = clock.monotonic() + seconds
    yield
    suspension_seconds = clock.monotonic() - until
    if suspension_seconds > _MIN_SUSPENSION_SECONDS:
        for watched in runs:
            watched.arrived_at += suspension_seconds
