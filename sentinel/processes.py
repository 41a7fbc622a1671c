"""The same work on many things, on all cores."""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_FEWEST = 32  # things a process; a copy of this one costs some milliseconds
_SHARES = 64  # of the work; who is done with one takes the next
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
    shares = [things[i::_SHARES] for i in range(_SHARES)]
    tickets, counter = os.pipe()
    os.write(counter, bytes(range(_SHARES)))
    os.close(counter)
    copies = [_copy(work, shares, tickets) for _ in range(count)]

    def results() -> list[R]:
        found: dict[int, list[R]] = {}
        for copy in copies:
            found.update(_received(copy))
        for number in set(range(_SHARES)) - found.keys():  # of a copy that ended; here its trouble shows
            found[number] = [work(thing) for thing in shares[number]]
        os.close(tickets)
        return [found[i % _SHARES][i // _SHARES] for i in range(len(things))]

    return results


def _copy(work: Callable[[T], R], shares: Sequence[Sequence[T]], tickets: int) -> Connection:
    receiver, sender = multiprocessing.Pipe(duplex=False)
    fork = multiprocessing.get_context("fork")
    fork.Process(target=_send, args=(sender, work, shares, tickets), daemon=True).start()
    sender.close()
    return receiver


def _send(sender: Connection, work: Callable[[T], R], shares: Sequence[Sequence[T]], tickets: int) -> None:
    """Work through shares whose numbers nobody else took."""
    done = []
    while ticket := os.read(tickets, 1):
        done.append((ticket[0], [work(thing) for thing in shares[ticket[0]]]))
    sender.send(done)


def _received(copy: Connection) -> Iterable[tuple[int, list[R]]]:
    """The numbers of the shares that a copy took, with their results; nothing if it ended too early."""
    try:
        shares: list[tuple[int, list[R]]] = copy.recv()
    except EOFError:
        return []
    return shares


def _has_one_thread() -> bool:
    """As far as the system tells."""
    try:
        return len(os.listdir(_THREADS)) == 1
    except OSError:
        return False
