"""Expressions that several detectors share. Each is evaluated within a series, over its rows in order.

``recent_*`` look at the last ``n`` rows up to and including the present one, ``skip`` rows further back
if told so, and are null until there are enough rows (``at_least``, all ``n`` unless told otherwise).
``start_*`` look at the first ``n`` rows of the attempt. A verdict may rest on them only at rows from
``n`` on, since before that they see rows yet to come.
"""

import polars as pl

from detectors.schema import INDEX, SERIES

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
