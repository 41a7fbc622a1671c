"""The points of runs as a frame."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import polars as pl

from sentinel.runs.log import RunLog
from sentinel.sources.base import Chunk, Run, flush

_MAX_POINTS = 300_000  # of a poll
_END_OF_TIME = 253_402_300_800.0  # seconds since the epoch: the year 10000, which no calendar holds
_SCHEMA = pl.Schema(
    {
        "run": pl.String(),
        "stream": pl.String(),
        "tag": pl.String(),
        "signal": pl.String(),
        "step": pl.Int64(),
        "time": pl.Datetime("us", "UTC"),
        "value": pl.Float64(),
    }
)


def points(logs: Iterable[RunLog]) -> pl.DataFrame:
    """Return the points of the logs, read from their beginning, in the order of each log."""
    frames = [_frame(log, chunk.flat) for log in logs for chunk in _chunks(log.run)]
    return pl.concat([_SCHEMA.to_frame(), *frames])


def _chunks(run: Run) -> Iterator[Chunk]:
    cursor: Mapping[str, object] = {}
    is_unread = True
    while is_unread:
        batch = run.source.poll(cursor, _MAX_POINTS)
        yield from (chunk for chunk in batch.chunks if chunk.value.size)
        cursor = batch.cursor
        is_unread = batch.more
    yield from flush(run.source, cursor)


def _frame(log: RunLog, chunk: Chunk) -> pl.DataFrame:
    signals = {tag: signal for signal, tags in log.understanding().signals.items() for tag in tags}
    time = np.where((chunk.time >= 0) & (chunk.time < _END_OF_TIME), chunk.time, np.nan)
    names = pl.Series(chunk.tags, dtype=pl.String)
    meanings = pl.Series([signals.get(tag) for tag in chunk.tags], dtype=pl.String)
    return pl.DataFrame(
        {
            "run": pl.repeat(log.name, len(chunk.value), eager=True),
            "stream": pl.repeat(chunk.stream, len(chunk.value), eager=True),
            "tag": names.gather(chunk.tag),
            "signal": meanings.gather(chunk.tag),
            "step": chunk.step,
            "time": (pl.Series(time, nan_to_null=True) * 1e6).cast(pl.Int64).cast(pl.Datetime("us", "UTC")),
            "value": chunk.value,
        },
        schema=_SCHEMA,
    )
