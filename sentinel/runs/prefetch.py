"""Reads the next part of each log while the present one is judged."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock

import msgspec
from msgspec.structs import replace

from sentinel.runs.log import RunLog
from sentinel.sources.base import Cursor, PollResult, Source


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
            result = self._read(cursor, limit)  # most logs are short, and waiting for a thread costs more
        else:
            result = self.pending[1].result()
        self.pending = None
        if result.more:
            self.pending = result.cursor, self.reader.submit(self._read, result.cursor, limit)
        return result

    def _read(self, cursor: Cursor, limit: int) -> PollResult:
        with self.lock:
            return self.source.poll(cursor, limit)
