"""Expressions that several detectors share. Each is evaluated within a series, over its rows in order.

``recent_*`` look at the last ``n`` rows up to and including the present one, ``skip`` rows further back
if told so, and are null until there are enough rows (``at_least``, all ``n`` unless told otherwise).
``start_*`` look at the first ``n`` rows of the attempt. A verdict may rest on them only at rows from
``n`` on, since before that they see rows yet to come.
"""

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from detectors.schema import INDEX, NEW, SERIES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUNDING = 1e-9
"""Slack in comparisons of running means: how a mean is summed up differs in the last bits between one
pass and many pieces, and a share such as 16 of 20 must not fall on either side of 0.8 for that."""


def recent_median(column: str, n: int, *, skip: int = 0, at_least: int | None = None) -> pl.Expr:
    """Median of the last ``n`` rows."""
    return pl.col(column).shift(skip).rolling_median(n, min_samples=at_least).over(SERIES)


def recent_quantile(q: float, column: str, n: int, *, skip: int = 0, at_least: int | None = None) -> pl.Expr:
    """Quantile of the last ``n`` rows."""
    quantile = pl.col(column).shift(skip).rolling_quantile(q, "linear", n, min_samples=at_least)
    return quantile.over(SERIES)


def recent_mean(column: str, n: int, *, skip: int = 0, at_least: int | None = None) -> pl.Expr:
    """Mean of the last ``n`` rows; only for bounded columns, see ``ROUNDING``."""
    return pl.col(column).shift(skip).rolling_mean(n, min_samples=at_least).over(SERIES)


def start_median(column: str, n: int) -> pl.Expr:
    """Median of the attempt's first ``n`` rows."""
    return pl.col(column).filter(pl.col(INDEX) < n).median().over(SERIES)


def start_quantile(q: float, column: str, n: int) -> pl.Expr:
    """Quantile of the attempt's first ``n`` rows."""
    return pl.col(column).filter(pl.col(INDEX) < n).quantile(q, "linear").over(SERIES)


def wilson_lower(share: pl.Expr, trials: pl.Expr, z: float) -> pl.Expr:
    """Lower end of Wilson's score interval for a share seen in so many trials.

    Unlike the share less ``z`` standard errors it stays below 1 where every trial succeeded.
    """
    squared = z * z / trials
    spread = ((share * (1 - share) + squared / 4) / trials).clip(0).sqrt()
    return (share + squared / 2 - z * spread) / (1 + squared)


def due_rows(frame: pl.DataFrame, every: int, at_least: int) -> pl.DataFrame:
    """The new rows of a WINDOW frame that are judged and have ``at_least`` rows up to them.

    Adds ``row``, their place in the frame, and ``begin``, that of their series' first row. For statistics
    that no expression can say: they are computed from arrays with a row for each of these.
    """
    placed = frame.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64))
    index = pl.col(INDEX) + 1
    return placed.with_columns(begin=pl.col("row").first().over(SERIES)).filter(
        pl.col(NEW), index % every == 0, index >= at_least
    )


def last_values(column: Floats, rows: Ints, n: int) -> Floats:
    """The ``n`` values of ``column`` up to each of ``rows``, newest first: rows x n."""
    found: Floats = column[np.maximum(rows[:, None] - np.arange(n), 0)]
    return found


class Level(NamedTuple):
    """Mean of some points, its standard error if they are an AR(1) process, and their own spread."""

    mean: Floats
    error: Floats
    spread: Floats


def level(values: Floats, sizes: Ints) -> Level:
    """The level of the first ``sizes[i]`` values of row i; at least 4 of them.

    The lag-1 autocorrelation is corrected for its bias in short series (Kendall 1954) and held below
    0.95, above which so few points do not tell how sure their mean is.
    """
    inside = np.arange(values.shape[1]) < sizes[:, None]
    with np.errstate(all="ignore"):
        mean = np.where(inside, values, 0).sum(axis=1) / sizes
        off = np.where(inside, values - mean[:, None], 0)
        squares = (off * off).sum(axis=1)
        neighbours = np.nan_to_num((off[:, 1:] * off[:, :-1]).sum(axis=1) / squares)
        correlation = ((neighbours * sizes + 1) / (sizes - 3)).clip(0, 0.95)
        spread = np.sqrt(squares / (sizes - 1))
        error = spread * np.sqrt((1 + correlation) / (1 - correlation) / sizes)
    return Level(mean, error, spread)


def spearman(one: Floats, other: Floats) -> Floats:
    """Rank correlation of each row of one array with that row of the other."""
    ranks = [values.argsort(axis=1).argsort(axis=1) for values in (one, other)]
    a, b = (r - r.mean(axis=1, keepdims=True) for r in ranks)
    found: Floats = (a * b).sum(axis=1) / np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    return found
