"""Runs the parts of an archive somewhere: the contract of an engine, and the one for this machine."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import connection
from typing import Protocol

from sentinel.archives.parts import Part
from sentinel.archives.record import failed, packed_record

Work = Callable[[Part], list[bytes]]
Result = list[bytes] | str
"""The packed records of a part, or why there are none."""

_SECONDS = 600.0  # for a part, and
_SECONDS_A_RUN = 60.0  # for each of its runs
_WAITING = 2  # parts for each worker that are handed out, so that none is idle
_DIED = "the process that judged it died, for want of memory, of a signal or after its time limit"
_THREADS = ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


class Engine(Protocol):
    """Gives the results of parts in any order. A part whose process dies is a result, too."""

    def results(self, work: Work, parts: Iterable[Part]) -> Iterator[tuple[Part, Result]]:
        """The result of each part."""
        ...


class Local:
    """Processes on this machine."""

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or len(os.sched_getaffinity(0))

    def results(self, work: Work, parts: Iterable[Part]) -> Iterator[tuple[Part, Result]]:
        """The result of each part.

        If a process dies, all parts that were handed out have no result: which one killed it is not known.
        """
        left = iter(parts)
        while first := [*islice(left, _WAITING * self._workers)]:
            yield from self._until_one_dies(work, first, left)

    def _until_one_dies(
        self, work: Work, first: Sequence[Part], left: Iterator[Part]
    ) -> Iterator[tuple[Part, Result]]:
        os.environ.update(dict.fromkeys(_THREADS, "1"))  # a process for each core is enough
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(self._workers, len(first)), spawn, _end_with_the_driver) as pool:
            waiting: dict[Future[list[bytes]], Part] = {
                pool.submit(_limited, work, part): part for part in first
            }
            whole = True
            while waiting:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for one in done:
                    part = waiting.pop(one)
                    found = _result(one)
                    whole = whole and not isinstance(one.exception(), BrokenProcessPool)
                    yield part, found
                    if whole and (following := next(left, None)) is not None:
                        try:
                            waiting[pool.submit(_limited, work, following)] = following
                        except BrokenProcessPool:  # a process died since
                            whole = False
                            yield following, _DIED


def isolated(engine: Engine, work: Work, parts: Iterable[Part]) -> Iterator[tuple[Part, list[bytes]]]:
    """The records of all parts. A part without a result is tried again alone, then in halves.

    So a run that no process survives costs no other run its verdict; its record says why it has none.
    """
    without: list[Part] = []
    for part, found in engine.results(work, parts):
        if isinstance(found, str):
            without.append(part)
        else:
            yield part, found
    for part in without:
        yield part, _alone(engine, work, part)


def _alone(engine: Engine, work: Work, part: Part) -> list[bytes]:
    [(_, found)] = engine.results(work, [part])
    if not isinstance(found, str):
        return found
    if len(part.runs) == 1:
        return [packed_record(failed(part.runs[0], found))]
    return [record for half in part.halves() for record in _alone(engine, work, half)]


def _end_with_the_driver() -> None:
    """Make this process end when the one that hands out the parts is gone, however it went."""
    driver = multiprocessing.parent_process()
    if driver is not None:
        threading.Thread(target=_outlive, args=(driver.sentinel,), daemon=True).start()


def _outlive(driver: int) -> None:
    connection.wait([driver])
    os._exit(1)


def _limited(work: Work, part: Part) -> list[bytes]:
    """Do the work in this process, which ends if that takes far too long."""
    signal.setitimer(signal.ITIMER_REAL, _SECONDS + _SECONDS_A_RUN * len(part.runs))
    try:
        return work(part)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _result(done: "Future[list[bytes]]") -> Result:
    error = done.exception()
    if error is None:
        return done.result()
    if isinstance(error, BrokenProcessPool):
        return _DIED
    return f"judging it failed ({type(error).__name__}); please report it"
