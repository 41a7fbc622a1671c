"""Silence counts only while the watch goes on.

SIGSTOP, `docker pause` and a frozen virtual machine hold the watch, and mostly its trainings with it. Then
time awake goes on, unlike in a suspend, and every run would seem to be silent.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sentinel.common.clock import Clock
from sentinel.watch.watched import WatchedRun

_LATE_SECONDS = 60.0  # by which a wait on a busy machine never ends too late


@contextmanager
def freezes_forgiven(runs: Iterable[WatchedRun], clock: Clock, seconds: float) -> Iterator[None]:
    """Surround a wait of at most ``seconds``. If it takes much longer, no run was silent in that time."""
    until = clock.monotonic() + seconds
    yield
    late = clock.monotonic() - until
    if late > _LATE_SECONDS:
        for watched in runs:
            watched.arrived_at += late
