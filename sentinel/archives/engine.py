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
from sentinel.common.collection import collect_seldom
from sentinel.common.errors import SentinelError

Work = Callable[[Part], list[bytes]]
Result = list[bytes] | str
"""The packed records of a part, or why there are none."""

_PART_SECONDS = 600.0  # that the work on a part may take, and
_FILE_SECONDS = 30.0  # for each of its files
_QUEUED_PER_WORKER = 2  # parts that are handed out, so that no worker is idle
DIED = "the process that judged it died, for want of memory, of a signal or after its time limit"
THREADS = ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


class Engine(Protocol):
    """Gives the results of parts in any order. A part whose process dies is a result, too."""

    def results(self, work: Work, archive_parts: Iterable[Part]) -> Iterator[tuple[Part, Result]]:
        """Return the result of each part."""
        ...


class Local:
    """Processes on this machine."""

    def __init__(self, workers: int | None = None, seconds: float | None = None) -> None:
        self._workers = workers or len(os.sched_getaffinity(0))
        self._seconds = seconds

    def results(self, work: Work, archive_parts: Iterable[Part]) -> Iterator[tuple[Part, Result]]:
        """Yield the result of each part.

        If a process dies, all parts that were handed out have no result: which one killed it is not known.
        The others go to a new pool.
        """
        os.environ.update(dict.fromkeys(THREADS, "1"))  # a process for each core is enough
        remaining = iter(archive_parts)
        while chunk_of_parts := [*islice(remaining, _QUEUED_PER_WORKER * self._workers)]:
            yield from self._pool_results(work, chunk_of_parts, remaining)

    def _pool_results(
        self, work: Work, chunk_of_parts: Sequence[Part], remaining: Iterator[Part]
    ) -> Iterator[tuple[Part, Result]]:
        """Yield the results of one pool: of the first parts, then of others until a process dies."""
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(self._workers, len(chunk_of_parts)), spawn, _begin_worker) as pool:
            waiting = {self._submit(pool, work, part): part for part in chunk_of_parts}
            broken = False
            try:
                while waiting:
                    finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in finished:
                        part = waiting.pop(future)
                        broken = broken or isinstance(future.exception(), BrokenProcessPool)
                        yield part, _part_result(future)
                        following = None if broken else next(remaining, None)
                        if following is None:
                            continue
                        try:
                            waiting[self._submit(pool, work, following)] = following
                        except BrokenProcessPool:  # a process died since
                            broken = True
                            yield following, DIED
            except (KeyboardInterrupt, GeneratorExit):  # nobody waits for what is under way
                for process in multiprocessing.active_children():
                    process.kill()
                raise

    def _submit(self, pool: ProcessPoolExecutor, work: Work, part: Part) -> "Future[list[bytes]]":
        return pool.submit(limited, work, part, self._seconds or seconds_for(part))


def _begin_worker() -> None:
    """Let this process collect seldom, and end when the one that hands out the parts is gone, not before."""
    collect_seldom()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    driver = multiprocessing.parent_process()
    if driver is not None:
        threading.Thread(target=_outlive, args=(driver.sentinel,), daemon=True).start()


def _outlive(driver: int) -> None:
    connection.wait([driver])
    os._exit(1)


def seconds_for(part: Part) -> float:
    """Return how long the work on a part may take, which is far longer than it does."""
    return _PART_SECONDS + _FILE_SECONDS * part.files


def limited(work: Work, part: Part, seconds: float) -> list[bytes]:
    """Do the work in this process, which ends if that takes longer."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return work(part)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def reason(error: BaseException) -> str:
    """Return why a part has no result."""
    if isinstance(error, SentinelError):
        return str(error)
    return f"judging it failed ({type(error).__name__}); please report it"


def _part_result(future: "Future[list[bytes]]") -> Result:
    error = future.exception()
    if error is None:
        return future.result()
    return DIED if isinstance(error, BrokenProcessPool) else reason(error)
