"""Reads the next part of each log while the present one is judged."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock

import msgspec
from msgspec.structs import replace

from sentinel.runs.log import RunLog
from sentinel.sources.base import Chunk, Cursor, PollResult, Source, flush


@contextmanager
def reading_ahead(logs: Sequence[RunLog]) -> Iterator[None]:
    """Read the logs ahead within this context, one at a time, because sources share what they learn."""
    runs = [log.run for log in logs]
    with ThreadPoolExecutor(1) as reader:
        try:
            lock = Lock()
            for log, run in zip(logs, runs, strict=True):
                log.run = replace(run, source=_PrefetchingSource(run.source, reader, lock))
            yield
        finally:
            for log, run in zip(logs, runs, strict=True):
                log.run = run


class _PrefetchingSource(msgspec.Struct):
    """A source that begins with the next poll as soon as one is done, if the log goes on."""

    source: Source
    reader: ThreadPoolExecutor
    lock: Lock
    pending: tuple[Cursor, Future[PollResult]] | None = None

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Poll as `Source` does, with the limit of the poll before if the answer was read ahead."""
        if self.pending is None or self.pending[0] != cursor:
            # Most logs are short, and waiting for a thread costs more.
            poll_result = self._poll_source(cursor, limit)
        else:
            poll_result = self.pending[1].result()
        self.pending = None
        if poll_result.more:
            following = self.reader.submit(self._poll_source, poll_result.cursor, limit)
            self.pending = poll_result.cursor, following
        return poll_result

    def flush(self, cursor: Cursor) -> Sequence[Chunk]:
        """Return what only the end of the log makes sure, see `Flushable`."""
        return flush(self.source, cursor)

    def _poll_source(self, cursor: Cursor, limit: int) -> PollResult:
        with self.lock:
            return self.source.poll(cursor, limit)
