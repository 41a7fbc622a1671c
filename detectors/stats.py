"""Expressions that several detectors share. Each is evaluated within a series, over its rows in order.

``recent_*`` look at the last ``n`` rows up to and including the present one, ``skip`` rows further back
if told so, and are null until there are enough rows (``at_least``, all ``n`` unless told otherwise). Where
a detector asks for rows of an earlier attempt, they look at those, too.
``start_*`` look at the first ``n`` rows of the attempt. A verdict may rest on them only at rows from
``n`` on, since before that they see rows yet to come.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sentinel.detectors.schema import CONTINUES, EARLY_ROWS, ENDED, INDEX, NEW, SERIES, SIGNAL, STEP, VALUE
from sentinel.detectors.signals import Signal

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_ROWS_AT_ONCE = 4096
"""Rows whose histories `with_arrays` holds in memory at once."""

ROUNDING = 1e-9
"""Slack in comparisons of running means: how a mean is summed up differs in the last bits between one
pass and many pieces, and a share such as 16 of 20 must not fall on either side of 0.8 for that."""

NOTHING = math.ulp(0.0)
"""A value that is not negative and below this is 0."""

MAD = 1.4826
"""Return the standard deviation of normal noise over its median absolute deviation."""

FIRST_INTERVALS = 3
"""Intervals between the first rows by which a log is found to begin late."""

LATE_INTERVALS = 2
"""A log that begins later than so many of its first intervals is the log of a resumed run."""

LATE_UNEVEN_INTERVALS = 10
"""The same where the intervals differ. Off-policy training logs nothing until it has data, and then at the
ends of episodes, which differ in length: five of twelve public projects whose logs begin late, at uneven
steps, begin within ten."""

FIRST_COUNT = 1
"""The step with which a log begins that counts from 0 or 1."""

PRECISION = 1e-5
"""Share of a logged number: no change of it is known better."""

FINE = 0.002
"""Fraction of a value; digits that are coarser hide that it moves, as two decimals do of ln 2."""

MOST_DECIMALS = 6
"""Decimals of a log that rounds, at most."""

OFF_GRAIN = 1e-4
"""Share of the last decimal by which a rounded number may be off, as it is in single precision."""


def first_true(cases: Mapping[Any, pl.Expr]) -> pl.Expr:
    """Return the key of the first case that holds, such as a variant; null if none. Null does not hold."""
    return pl.coalesce(*(pl.when(case).then(pl.lit(key)) for key, case in cases.items()), pl.lit(None))


def metric_name() -> pl.Expr:
    """Return the judged signal as a sentence names a held-out metric: "accuracy" for `eval_accuracy`."""
    return pl.col(SIGNAL).str.replace("eval_", "").str.replace_all("_", " ")


def nearest(value: pl.Expr, levels: Sequence[float]) -> pl.Expr:
    """Return the level that a value is nearest to, in proportion."""
    off = {level: (value / level - 1).abs() for level in levels}
    least = pl.min_horizontal(off.values())
    return first_true({level: away == least for level, away in off.items()})


def is_of(signal: Signal) -> pl.Expr:
    """Return whether a row is of this judged signal."""
    return pl.col(SIGNAL) == signal


def has_points(count: "int | pl.Expr") -> pl.Expr:
    """Return whether a row is at least the ``count``-th of its series."""
    return pl.col(INDEX) >= count - 1


def recent_median(column: str, n: int, *, skip: int = 0, at_least: int | None = None) -> pl.Expr:
    """Return the median of the last ``n`` rows."""
    # Shifted last, because a shift brings nulls, and rolling medians take three times as long on those.
    return pl.col(column).rolling_median(n, min_samples=at_least).shift(skip).over(SERIES)


def recent_quantile(q: float, column: str, n: int, *, skip: int = 0, at_least: int | None = None) -> pl.Expr:
    """Quantile of the last ``n`` rows."""
    quantile = pl.col(column).rolling_quantile(q, "linear", n, min_samples=at_least)
    return quantile.shift(skip).over(SERIES)


def recent_mean(column: str, n: int, *, skip: int = 0, at_least: int | None = None) -> pl.Expr:
    """Return the mean of the last ``n`` rows; only for bounded columns, see ``ROUNDING``."""
    return pl.col(column).rolling_mean(n, min_samples=at_least).shift(skip).over(SERIES)


def recent_max(values: pl.Expr, n: int, *, at_least: int | None = None) -> pl.Expr:
    """Return the largest value of the last ``n`` rows."""
    return values.rolling_max(n, min_samples=at_least).over(SERIES)


def recent_noise(column: str, n: int, *, apart: int = 1, at_least: int = 2) -> pl.Expr:
    """Return the standard deviation of rows that are ``apart`` from each other, about the line through them.

    It comes from the median of the last ``n`` second differences, so neither a trend nor a few outliers move
    it. Autocorrelation makes it too small; rows that are further apart have less of it.
    """
    values = pl.col(column)
    bends = (values.shift(apart) - (values.shift(2 * apart) + values) / 2).abs() * (MAD / sqrt(1.5))
    return bends.rolling_median(n, min_samples=at_least).over(SERIES)


def in_a_row(condition: pl.Expr, rows: int) -> pl.Expr:
    """Return whether a condition held in so many successive rows, up to the present one."""
    holds = condition.fill_null(False).cast(pl.Int32).rolling_sum(rows).over(SERIES)
    return (holds == rows).fill_null(False)


def resting(values: pl.Expr, n: int) -> pl.Expr:
    """For how many rows a value has rested, the present one included; at most ``n``."""
    index = pl.col(INDEX)
    changed = values != values.shift(1)
    last_change = recent_max(pl.when(changed).then(index), n, at_least=1)
    return (index - last_change).fill_null(pl.min_horizontal(index, n - 1)) + 1


def moved(precision: float = PRECISION) -> pl.Expr:
    """Return whether a value differs from the one before by more than rounding; null in the first row."""
    value = pl.col(VALUE)
    before = pl.col(VALUE).shift(1).over(SERIES)
    return (value - before).abs() > precision * pl.max_horizontal(value.abs(), before.abs())


def seen_min(column: str, first: int, last: int) -> pl.Expr:
    """Return the smallest value so far among the attempt's ``first`` rows and the ``last`` ones."""
    return -_seen_max(-pl.col(column), first, last)


def seen_max(column: str, first: int, last: int) -> pl.Expr:
    """Return the largest value so far among the attempt's ``first`` rows and the ``last`` ones."""
    return _seen_max(pl.col(column), first, last)


def seen_grain(column: str, first: int, last: int) -> pl.Expr:
    """Return the power of ten of which all values so far are multiples, among the rows of `seen_max`.

    A log that rounds tells nothing finer than that. At least 1e-6.
    """
    value = pl.col(column)
    rounded = (value.round(decimals) for decimals in range(MOST_DECIMALS))
    decimals = pl.sum_horizontal(
        (value - near).abs() > OFF_GRAIN * 10.0**-decimals for decimals, near in enumerate(rounded)
    )
    return 10.0 ** -_seen_max(decimals.cast(pl.Float64), first, last)


def _seen_max(values: pl.Expr, first: int, last: int) -> pl.Expr:
    at_start = pl.when(_is_among_first(first)).then(values).cum_max().forward_fill()
    return pl.max_horizontal(at_start, values.rolling_max(last, min_samples=1)).over(SERIES)


def _is_among_first(n: int) -> pl.Expr:
    return pl.col(INDEX).is_between(0, n, closed="left")


def of_buckets(measured: pl.Expr) -> pl.Expr:
    """Return what was measured of a coarse column, which one row of a series holds, for all its rows."""
    return measured.drop_nulls().first().over(SERIES)


def start_value(column: str) -> pl.Expr:
    """Return the attempt's first value."""
    return pl.col(column).filter(pl.col(INDEX) == 0).first().over(SERIES)


def was_resumed() -> pl.Expr:
    """Return whether the attempt goes on with a training: with a loss that had fallen, or later than a log
    begins, by the steps between its first rows. One that counts from 0 or 1 does not begin late, as where
    the rows of batches name their epoch alone.
    """
    intervals = pl.col(STEP).filter(_is_among_first(FIRST_INTERVALS + 1)).diff()
    even = (intervals.max() == intervals.min()).over(SERIES)
    late = pl.when(even).then(LATE_INTERVALS).otherwise(LATE_UNEVEN_INTERVALS)
    latest = (late * intervals.mean().over(SERIES)).clip(FIRST_COUNT)
    return pl.col(CONTINUES) | (start_value(STEP) > latest)


def first_of_mostly(bad: NDArray[np.bool_]) -> int | None:
    """Return the index of the first of the points that are mostly bad and end with the last one.

    Going back from there, each bad point adds one to a count, and each other point takes two away. The first
    point is where the count is highest before it falls to zero. So one good point does not hide what precedes
    it, but several do. None if the last point is not bad.
    """
    count = np.where(bad[::-1], 1, -2).cumsum()
    used_up = np.flatnonzero(count <= 0)
    count = count[: used_up[0]] if len(used_up) else count
    return len(bad) - 1 - int(count.argmax()) if len(count) else None


def start_median(column: str, n: int) -> pl.Expr:
    """Return the median of the attempt's first ``n`` rows."""
    return pl.col(column).filter(_is_among_first(n)).median().over(SERIES)


def now_and_then(
    column: str,
    now: int,
    *,
    start: int = 0,
    past: Mapping[str, int] | None = None,
    at_least: int | None = None,
    of: str = "",
) -> dict[str, pl.Expr]:
    """Return the median of the last ``now`` rows, as the column ``level``, and that with which it is
    compared.

    That is the median of the attempt's first ``start`` rows, as ``start``; or, of rows ``past`` as
    `recent_median` takes them, ``before``. Names begin with ``of``. Of the last rows ``at_least`` so many
    have to be known, by default all.
    """
    columns = {"before": recent_median(column, **past)} if past else {"start": start_median(column, start)}
    medians = {"level": recent_median(column, now, at_least=at_least)} | columns
    return {of + name: median for name, median in medians.items()}


def start_quantile(q: float, column: str, n: int) -> pl.Expr:
    """Quantile of the attempt's first ``n`` rows."""
    return pl.col(column).filter(_is_among_first(n)).quantile(q, "linear").over(SERIES)


def wilson_lower(share: pl.Expr, trials: pl.Expr, z: float) -> pl.Expr:
    """Lower end of Wilson's score interval for a share seen in so many trials.

    Unlike the share less ``z`` standard errors it stays below 1 where every trial succeeded.
    """
    squared = z * z / trials
    spread = ((share * (1 - share) + squared / 4) / trials).clip(0).sqrt()
    return (share + squared / 2 - z * spread) / (1 + squared)


Columns = Callable[[pl.DataFrame, pl.DataFrame], Mapping[str, Floats]]


def with_arrays(
    points: pl.LazyFrame, names: Sequence[str], columns: Columns, *, every: int, at_least: int
) -> pl.LazyFrame:
    """Return the rows of a WINDOW frame that are due, with more columns.

    For statistics that no expression can say. ``columns`` takes the frame and those of its due rows that have
    ``at_least`` rows up to them, and returns an array with a value for each of those by name; the columns of
    the other due rows are null. It finds in the due rows ``row``, their index in the frame, and ``begin``,
    that of their series' first row. Divisions by zero need not trouble it. Where the detector is asked at the
    end, the last row of a run that is over is due, too.
    """

    def due_rows(frame: pl.DataFrame) -> pl.DataFrame:
        placed = frame.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64))
        placed = placed.with_columns(begin=pl.col("row").first().over(SERIES))
        count = pl.col(INDEX) + 1
        last = pl.col(ENDED) if ENDED in frame.columns else pl.lit(False)
        due = placed.filter(pl.col(NEW), (count % every == 0) | (count <= EARLY_ROWS) | last)
        is_enough = due[INDEX] + 1 >= at_least
        enough = due.filter(is_enough)
        with np.errstate(all="ignore"):
            parts = [
                columns(frame, enough[i : i + MAX_ROWS_AT_ONCE])
                for i in range(0, len(enough), MAX_ROWS_AT_ONCE)
            ]
        measured = {n: np.concatenate([np.empty(0), *(part[n] for part in parts)]) for n in names}
        at = pl.when(is_enough).then(is_enough.cum_sum() - 1)
        values = (pl.lit(pl.Series(n, measured[n], pl.Float64)).gather(at).alias(n) for n in names)
        return due.select(*frame.columns, *values)

    schema = {**points.collect_schema(), **dict.fromkeys(names, pl.Float64())}
    return points.map_batches(due_rows, schema=schema)


def last_values(column: Floats, rows: Ints, n: int) -> Floats:
    """Return the ``n`` values of ``column`` up to each of ``rows``, newest first: rows x n."""
    latest: Floats = column[np.maximum(rows[:, None] - np.arange(n), 0)]
    return latest


def row_quantile(values: Floats, q: float) -> Floats:
    """Quantile of each row, NaN left out; NumPy's own takes the rows one by one."""
    return next(row_quantiles(values, q))


def row_quantiles(values: Floats, *quantiles: float) -> Iterator[Floats]:
    """Several of them, of rows that are sorted once."""
    ordered = np.sort(values, axis=1)
    rows = np.arange(len(values))
    last = values.shape[1] - 1
    last_index = np.maximum(np.isfinite(values).sum(axis=1) - 1, 0)
    for q in quantiles:
        rank = q * last_index
        below = rank.astype(int)
        low = ordered[rows, below]
        high = ordered[rows, np.minimum(below + 1, last)]
        share = rank - below
        yield np.where(share > 0, low + share * (high - low), low)


def row_median(values: Floats) -> Floats:
    """Return the median of each row, NaN where it has one, as `numpy.median` does; of few rows sooner."""
    ordered = np.sort(values, axis=1)
    count = values.shape[1]
    middle: Floats = ordered[:, (count - 1) // 2 : count // 2 + 1].mean(axis=1)
    return np.where(np.isnan(ordered[:, -1]), np.nan, middle)


def spearman(first: Floats, other: Floats) -> Floats:
    """Rank correlation of each row of one array with that row of the other; equal values share a rank."""
    a, b = (r - r.mean(axis=1, keepdims=True) for r in map(_ranks, (first, other)))
    coefficients: Floats = (a * b).sum(axis=1) / np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    return coefficients


def _ranks(values: Floats) -> Floats:
    """Return the rank of each value in its row, from 0 on. Equal values have the mean of their ranks.

    All ranks of a row with a NaN are NaN. `scipy.stats.rankdata` gives the same and takes a second to import.
    """
    order = values.argsort(axis=1)
    ascending = np.take_along_axis(values, order, axis=1)
    rank = np.arange(values.shape[1])
    differs = ascending[:, 1:] != ascending[:, :-1]
    begin = np.maximum.accumulate(np.where(np.insert(differs, 0, True, axis=1), rank, 0), axis=1)
    end = np.where(np.insert(differs, differs.shape[1], True, axis=1), rank, rank.size)
    end = np.minimum.accumulate(end[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty_like(values)
    np.put_along_axis(ranks, order, (begin + end) / 2, axis=1)
    ranks[np.isnan(values).any(axis=1)] = np.nan
    return ranks
