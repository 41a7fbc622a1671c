"""Reads the next part of each log while the present one is judged."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock

from sentinel.runs.log import RunLog
from sentinel.sources.base import Cursor, PollResult, Source


@contextmanager
def reading_ahead(logs: Sequence[RunLog]) -> Iterator[None]:
    """Within this context the logs are read ahead, one at a time, because sources share what they learn."""
    runs = [log.run for log in logs]
    with ThreadPoolExecutor(1) as reader:
        try:
            alone = Lock()
            for log, run in zip(logs, runs, strict=True):
                log.run = replace(run, source=_Ahead(run.source, reader, alone))
            yield
        finally:
            for log, run in zip(logs, runs, strict=True):
                log.run = run


@dataclass
class _Ahead:
    """A source that begins with the next poll as soon as one is done, if the log goes on."""

    source: Source
    reader: ThreadPoolExecutor
    alone: Lock
    begun: tuple[Cursor, Future[PollResult]] | None = None

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """See `Source`. The limit of a poll is that of the one before."""
        if self.begun is None or self.begun[0] != cursor:
            batch = self._read(cursor, limit)  # most logs are short, and waiting for a thread costs more
        else:
            batch = self.begun[1].result()
        self.begun = None
        if batch.more:
            self.begun = batch.cursor, self.reader.submit(self._read, batch.cursor, limit)
        return batch

    def _read(self, cursor: Cursor, limit: int) -> PollResult:
        with self.alone:
            return self.source.poll(cursor, limit)
