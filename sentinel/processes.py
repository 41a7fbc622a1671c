"""The same work on many things, on all cores."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_FEWEST = 32  # things a process; a copy of this one costs some milliseconds
_THREADS = Path("/proc/self/task")


def begin_with(work: Callable[[T], R], things: Sequence[T]) -> Callable[[], list[R]]:
    """Begin with the work on all things; what is returned gives the results, in their order.

    Copies of this process do it, one for each core, and send the results, which must be picklable. A copy
    has none of the other threads and may wait for them for ever, so a process that has some does it all by
    itself, as soon as it is asked for the results; so does one that has little to do.
    """
    cores = len(os.sched_getaffinity(0)) if _has_one_thread() else 1
    count = min(cores, len(things) // _FEWEST)
    if count < 2:
        return lambda: [work(thing) for thing in things]
    shares = [things[i::count] for i in range(count)]
    copies = [_copy(work, share) for share in shares]

    def results() -> list[R]:
        found = [_received(copy, work, share) for copy, share in zip(copies, shares, strict=True)]
        return [found[i % count][i // count] for i in range(len(things))]

    return results


def _copy(work: Callable[[T], R], share: Sequence[T]) -> Connection:
    receiver, sender = multiprocessing.Pipe(duplex=False)
    fork = multiprocessing.get_context("fork")
    fork.Process(target=_send, args=(sender, work, share), daemon=True).start()
    sender.close()
    return receiver


def _send(sender: Connection, work: Callable[[T], R], share: Sequence[T]) -> None:
    sender.send([work(thing) for thing in share])


def _received(copy: Connection, work: Callable[[T], R], share: Sequence[T]) -> list[R]:
    """What the copy sent; without a word from it, the work is done here, where its trouble shows."""
    try:
        results: list[R] = copy.recv()
    except EOFError:
        return [work(thing) for thing in share]
    return results


def _has_one_thread() -> bool:
    """As far as the system tells."""
    try:
        return len(os.listdir(_THREADS)) == 1
    except OSError:
        return False
