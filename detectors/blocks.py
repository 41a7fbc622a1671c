"""A series in at most 64 equal blocks, whatever its length: the view for what takes a share of a run.

The blocks of a short series are made of its rows, those of a long one are the coarse history. Both
double their width whenever the series outgrows 64 of them, so a verdict has one form at 20 points and
at a million.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl

from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, SERIES, VALUE
from sentinel.detectors.stats import Floats, Ints, with_arrays

MAX_BLOCKS = 64
"""Blocks into which a series is divided, at most."""

ROWS = 255
"""Recent rows that a detector has to declare beside its coarse history."""

GAIN = {
    "first": Measure("mean of the first quarter", Unit.SAME),
    "gain": Measure("gain since the first quarter", Unit.SAME),
    "error": Measure("standard error of the gain", Unit.SAME),
    "rise": Measure("highest level, in scatters above the first quarter", Unit.NONE),
    "lowest": Measure("lowest so far", Unit.SAME),
    "highest": Measure("highest so far", Unit.SAME),
}
"""What `gain` measures."""


def with_blocks(
    points: pl.LazyFrame,
    names: Sequence[str],
    measure: Callable[[Floats], Mapping[str, Floats]],
    *,
    every: int,
    at_least: int,
) -> pl.LazyFrame:
    """Return the rows that are due, with what ``measure`` makes of the block means of their series so far.

    ``measure`` takes rows x blocks, all with as many blocks, and returns an array for each name. Rows
    beyond the 256th see the blocks of the last checkpoint.
    """

    def columns(frame: pl.DataFrame, due: pl.DataFrame) -> dict[str, Floats]:
        columns = {name: np.full(len(due), np.nan) for name in names}
        for rows, means in by_count(frame, due):
            for name, values in measure(means).items():
                columns[name][rows] = values
        return columns

    return with_arrays(points, names, columns, every=every, at_least=at_least)


def by_count(frame: pl.DataFrame, due: pl.DataFrame) -> list[tuple[Ints, Floats]]:
    """Return the block means of the due rows, those with as many blocks together; one row where all equal."""
    is_short = due[INDEX].to_numpy() <= ROWS
    short = np.flatnonzero(is_short)
    long = np.flatnonzero(~is_short)
    blocks, means = _of_rows(frame, due[short])
    parts = [
        (short[blocks == number], means[blocks == number, :number]) for number in np.unique(blocks).tolist()
    ]
    return [*parts, *_of_coarse(frame, due, long)]


def _of_rows(frame: pl.DataFrame, due: pl.DataFrame) -> tuple[Ints, Floats]:
    """Return how many blocks the rows of short series make up to each due one, and their means.

    What lies behind those blocks is not of the rows up to the due one.
    """
    values = frame[VALUE].to_numpy()
    last = due["row"].to_numpy()
    count = due[INDEX].to_numpy() + 1
    width = np.array([_width(row_count) for row_count in count.tolist()], np.int64)
    means = np.empty((len(due), MAX_BLOCKS))
    for rows_in_block in np.unique(width):
        wide = width == rows_in_block
        begin = (last - count + 1)[wide, None]
        sampled = values[np.minimum(begin + np.arange(MAX_BLOCKS * rows_in_block), len(values) - 1)]
        means[wide] = sampled.reshape(-1, MAX_BLOCKS, rows_in_block).mean(axis=2)
    return count // width, means


def _of_coarse(frame: pl.DataFrame, due: pl.DataFrame, long: Ints) -> list[tuple[Ints, Floats]]:
    """Return the coarse history at the due rows of long series. The rows of a window share one list."""
    series = due[SERIES].to_numpy()
    windows = np.split(long, np.flatnonzero(np.diff(series[long])) + 1) if len(long) else []
    shared = frame.select(SERIES, "coarse_mean").drop_nulls()
    of_series = dict(zip(shared[SERIES], shared["coarse_mean"], strict=True))
    return [(rows, of_series[series[rows[0]]].to_numpy()[None, :]) for rows in windows]


def _width(rows: int) -> int:
    """Return how many rows a block has, so that the series has at most 64 of them."""
    width = 1
    while rows > MAX_BLOCKS * width:
        width *= 2
    return width


def rolling(means: Floats, n: int) -> Floats:
    """Return the means of each ``n`` neighbouring blocks: rows x (blocks - n + 1)."""
    sums = np.zeros((len(means), means.shape[1] + 1))
    means.cumsum(axis=1, out=sums[:, 1:])
    rolled: Floats = (sums[:, n:] - sums[:, :-n]) / n
    return rolled


def gain(means: Floats) -> Mapping[str, Floats]:
    """Return the gain from the first to the last quarter of the blocks, for `with_blocks`, and what it is
    worth.

    The error comes from the scatter of the blocks, which holds the log's own autocorrelation. The highest
    level is a mean over an eighth of the blocks.
    """
    quarter = max(2, means.shape[1] // 4)
    first = means[:, :quarter]
    last = means[:, -quarter:]
    spread = np.sqrt((first.var(axis=1, ddof=1) + last.var(axis=1, ddof=1)) / 2)
    level = first.mean(axis=1)
    levels = rolling(means, max(5, means.shape[1] // 8))
    return {
        "first": level,
        "gain": last.mean(axis=1) - level,
        "error": 2 * spread * np.sqrt(2 / quarter),
        "rise": (levels.max(axis=1) - level) / np.maximum(spread, 1e-12),
        "lowest": means.min(axis=1),
        "highest": means.max(axis=1),
    }
