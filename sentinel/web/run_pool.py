"""The runs that somebody looks at. Each is read and drawn by a thread of a pool, one slice at a time.

A slice is some hundred thousand points, so a log of gigabytes shows its beginning at once and then grows.
Other runs take their turns in between. A log on a file system that hangs holds up one thread, and no page but
its own.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from sentinel.common.clock import Clock
from sentinel.common.errors import StateError
from sentinel.config.file import Config
from sentinel.pipeline import Pipeline
from sentinel.web.run_session import RunSession
from sentinel.web.views import StateView, WebPage, page_of_run

_log = logging.getLogger(__name__)

_THREADS = 4  # so that a few logs that hang leave some for the others
_MAX_IDLE_SECONDS = 60.0  # after which a run that no page shows is closed
_MAX_OPEN_RUNS = 64  # then the one that was not requested for longest is closed

_R = TypeVar("_R")


class RunPool:
    """The pages of the open runs. Its methods belong to the thread of an event loop.

    ``views`` belong to the thread of ``worker``. ``changed`` is called whenever a page changed.
    """

    def __init__(
        self, config: Config, clock: Clock, views: StateView, worker: Executor, changed: Callable[[], None]
    ) -> None:
        self._pipeline = Pipeline(config.enabled_detectors, config.parameters, config.signals)
        self._forms = config.forms
        self._clock = clock
        self._views = views
        self._worker = worker
        self._changed = changed
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="reader")
        self._open: dict[str, RunSession] = {}
        self._requested_at: dict[str, float] = {}  # when each run was last requested, in time awake
        self._pages: dict[str, WebPage] = {}
        self._page_keys: dict[str, object] = {}  # what the state said when each page was made
        self._reading: dict[str, asyncio.Task[None]] = {}

    async def page(self, key: str) -> WebPage | None:
        """Return the page of a run, which stays open from now on; None if there is none.

        Raises StateError.
        """
        self._requested_at[key] = self._clock.monotonic()
        for _ in range(2):  # what was under way may have begun before the state changed
            if key in self._pages and self._page_keys[key] == self._views.page_key(key, self._clock.now()):
                break
            await asyncio.shield(self._read_run(key))
        return self._pages.get(key)

    def version(self, key: str) -> int | None:
        """Return the version of the page of a run; None as long as there is none."""
        return self._pages[key].version if key in self._pages else None

    def refresh(self, watched: Collection[str]) -> None:
        """Begin to read what is new in all open runs.

        ``watched`` are the keys of the runs that browsers show. Other runs are closed after a while.
        """
        awake = self._clock.monotonic()
        self._requested_at.update(dict.fromkeys(watched, awake))
        for key, requested_at in [*self._requested_at.items()]:
            if awake - requested_at > _MAX_IDLE_SECONDS and key not in self._reading:
                self._close(key)
            else:
                self._read_run(key)

    def close(self) -> None:
        """Stop reading."""
        for task in self._reading.values():
            task.cancel()
        self._pool.shutdown(cancel_futures=True)

    def _read_run(self, key: str) -> "asyncio.Task[None]":
        """Start to read and draw the next slice of a run, unless that is under way. Return the task."""
        task = self._reading.get(key)
        if task is None or task.done():  # a task stays here for a moment after its end
            task = self._reading[key] = asyncio.create_task(self._advance(key))
            task.add_done_callback(partial(self._has_read, key))
        return task

    def _has_read(self, key: str, task: "asyncio.Task[None]") -> None:
        if self._reading[key] is task:
            del self._reading[key]
        if task.cancelled() or task.exception():
            return  # who waits for the page gets the error; otherwise the next refresh tries again
        if key in self._open and self._open[key].reads_more:
            self._read_run(key)

    async def _advance(self, key: str) -> None:
        """Read the next slice of a run, and draw its page if anything changed. Raises StateError."""
        try:
            if key not in self._open and not await self._open_run(key):
                return
            session = self._open[key]
            now = self._clock.now()
            # The state before the log, so that a page never counts as newer than it is.
            page_key = self._views.page_key(key, now)
            grew = await self._in(self._pool, session.grow)
            if page_key is None:
                self._close(key)
            elif grew or self._page_keys.get(key) != page_key:
                watch_records = await self._in(self._worker, partial(self._views.records, key))
                version = (self.version(key) or 0) + 1
                draw = partial(page_of_run, session, watch_records, key, version, now)
                self._pages[key] = await self._in(self._pool, draw)
                self._page_keys[key] = page_key
                self._changed()
        except StateError:
            raise
        except Exception:  # noqa: BLE001  whatever a log holds must not cost the pages of other runs
            run = self._views.fleet.runs.get(key)
            _log.exception("the page of %s cannot be made", run and self._views.fleet.names[run.row.id])
            self._close(key)

    async def _open_run(self, key: str) -> bool:
        """Open a run, and close another one if too many are open. Return False if no run has this key."""
        open_run = partial(self._views.open, key, self._pipeline, self._forms)
        opening = await self._in(self._worker, open_run)
        if opening is None:
            self._close(key)
            return False
        idle = [key for key in self._open if key not in self._reading]
        if len(self._open) >= _MAX_OPEN_RUNS and idle:
            self._close(min(idle, key=self._requested_at.__getitem__))
        self._open[key] = await self._in(self._pool, opening)
        return True

    def _close(self, key: str) -> None:
        for by_key in (self._requested_at, self._open, self._pages, self._page_keys):
            by_key.pop(key, None)

    @staticmethod
    async def _in(executor: Executor, work: Callable[[], _R]) -> _R:
        return await asyncio.get_running_loop().run_in_executor(executor, work)
