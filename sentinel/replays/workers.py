"""Runs work in forked copies of this process, to use all cores."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")

_MIN_ITEMS = 32  # for each copy, because a fork costs some milliseconds
_MAX_COPIES = 8  # since each needs some memory
_SHARES = 64  # parts of the work; a copy that has done one takes the next
_THREADS = Path("/proc/self/task")


def begin(work: Callable[[], _R]) -> Callable[[], _R]:
    """Start the work in a copy of this process. The returned function waits for the result.

    The result must be picklable. A copy has none of the other threads and could wait for them forever, so a
    process with several threads does the work itself when the result is asked for. It also does so if no
    copy can be made, or if the copy ended without a result: an error then shows here.
    """
    if not _has_one_thread():
        return cache(work)
    receiver, sender = multiprocessing.Pipe(duplex=False)
    fork = multiprocessing.get_context("fork")
    try:
        fork.Process(target=_send, args=(sender, work), daemon=True).start()
    except OSError:  # there may be too many processes, or too little memory
        return cache(work)
    finally:
        sender.close()

    @cache
    def result() -> _R:
        try:
            result: _R = receiver.recv()
        except (EOFError, OSError):  # the copy may have ended in the middle of its answer
            return work()
        return result

    return result


def _send(sender: Connection, work: Callable[[], object]) -> None:
    with suppress(Exception, KeyboardInterrupt):
        sender.send(work())


def in_turn(work: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    """Return the results of the work on all items."""
    return [work(item) for item in items]


def in_copies(work: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    """Return the results of the work on all items, done in several copies of this process.

    A process that has little to do does it itself.
    """
    cores = len(os.sched_getaffinity(0)) if _has_one_thread() else 1
    count = min(cores, len(items) // _MIN_ITEMS, _MAX_COPIES)
    if count < 2:
        return in_turn(work, items)
    shares = [items[i::_SHARES] for i in range(_SHARES)]
    tickets, counter = os.pipe()
    os.write(counter, bytes(range(_SHARES)))
    os.close(counter)

    def free_shares() -> list[tuple[int, list[_R]]]:
        """Return the shares that no other copy took, by number, with their results."""
        numbers = (ticket[0] for ticket in iter(lambda: os.read(tickets, 1), b""))
        return [(number, in_turn(work, shares[number])) for number in numbers]

    copies = [begin(free_shares) for _ in range(count)]
    results = dict(chain.from_iterable(copy() for copy in copies))
    os.close(tickets)
    for number in set(range(_SHARES)) - results.keys():  # a copy took it and ended without a result
        results[number] = in_turn(work, shares[number])
    return [results[i % _SHARES][i // _SHARES] for i in range(len(items))]


def _has_one_thread() -> bool:
    """Return whether this process has one thread; false if the system does not say."""
    try:
        return len(os.listdir(_THREADS)) == 1
    except OSError:
        return False
