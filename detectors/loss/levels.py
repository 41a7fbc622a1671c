"""The level of a series and how far it lies above its best one.

A level is the median of the last points: the more points there are, the more of them it takes. So a few low
points in a row do not make the best level, and a short series can be judged, too.
"""

from collections.abc import Mapping
from functools import reduce

import polars as pl

from sentinel.detectors.api import History
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, SERIES, VALUE
from sentinel.detectors.stats import (
    has_points,
    of_buckets,
    recent_median,
    recent_noise,
    recent_quantile,
    seen_min,
)

WINDOWS = {5: 0, 10: 30, 20: 120}
"""Points of a level, and how many points there must be."""

FEW, MANY = min(WINDOWS), max(WINDOWS)

REACH = 200
"""Points at the start and at the end in which the best level is looked for."""

NOISE = 100
"""Points whose differences tell the noise."""

APART = 2, 10
"""Steps between points that are less alike than neighbours, and how many of them tell their noise."""

LEVELS = History(recent=REACH + 4 * MANY + 1, head=REACH, coarse=True)
"""What a rule that compares levels looks back at."""

WANDERS = 0.8
"""Standard errors that the scatter of the level itself counts as."""

LEAST_NOISE = 1e-3
"""Share of the level."""

BUCKETS = 5
"""Neighbouring buckets of the coarse view that hold as many points as the longest level, at four each."""

RISE = {
    "best": Measure("best level", Unit.SAME),
    "level": Measure("now", Unit.SAME),
    "rise": Measure("rise that four in five points exceed", Unit.SHARE),
    "errors": Measure("rise in standard errors", Unit.NONE),
    "noise": Measure("noise between points", Unit.SHARE),
}


def with_rise(points: pl.LazyFrame) -> pl.LazyFrame:
    """A frame with the columns of ``RISE``; needs ``LEVELS`` as history.

    They are null where more than one in five of the last points is not positive. All is measured in
    logarithms. Second differences tell the noise, so neither a trend nor a fall is any.
    """
    apart, enough = APART
    alike = recent_noise("log", NOISE, at_least=FEW)
    # A divergence makes points that are apart differ. So the rows before the recent ones tell their noise.
    unlike = recent_noise("log", NOISE, apart=apart, at_least=enough).shift(enough).over(SERIES)
    levels = {n: f"level_{n}" for n in WINDOWS}
    scatter = recent_noise(levels[MANY], REACH, apart=MANY, at_least=MANY)
    return (
        points.with_columns(log=pl.when(pl.col(VALUE) > 0).then(pl.col(VALUE).log()))
        .with_columns(
            noise=pl.max_horizontal(alike, unlike).clip(LEAST_NOISE),
            low=_by_points(
                {n: _of_full(n, recent_quantile(0.2, "log", n, at_least=_most(n))) for n in WINDOWS}
            ),
            **{name: _of_full(n, recent_median("log", n, at_least=_most(n))) for n, name in levels.items()},
        )
        .with_columns(
            scatter=scatter,
            **{f"before_{n}": pl.col(name).shift(n).over(SERIES) for n, name in levels.items()},
        )
        .with_columns(
            log_level=_by_points({n: pl.col(name) for n, name in levels.items()}),
            log_best=pl.min_horizontal(
                _by_points({n: seen_min(f"before_{n}", REACH, REACH) for n in WINDOWS}),
                of_buckets(
                    pl.col("coarse_mean").list.eval(pl.element().rolling_mean(BUCKETS)).list.min()
                ).log(),
            ),
            error=pl.max_horizontal(
                pl.col("noise") * _by_points({n: pl.lit((2 / n) ** 0.5) for n in WINDOWS}),
                WANDERS * pl.col("scatter").shift(MANY).over(SERIES),
            ),
        )
        .with_columns(
            best=pl.col("log_best").exp(),
            level=pl.col("log_level").exp(),
            rise=(pl.col("low") - pl.col("log_best")).exp() - 1,
            errors=(pl.col("log_level") - pl.col("log_best")) / pl.col("error"),
        )
    )


def _most(rows: int) -> int:
    """Of so many rows those that must be positive: an exact 0 among them is a masked batch, or rounded."""
    return rows * 4 // 5


def _of_full(rows: int, level: pl.Expr) -> pl.Expr:
    return pl.when(has_points(rows)).then(level)


def _by_points(columns: Mapping[int, pl.Expr]) -> pl.Expr:
    """The column of the longest window for which there are enough points."""
    (_, shortest), *longer = columns.items()
    return reduce(
        lambda shorter, level: pl.when(pl.col(INDEX) >= WINDOWS[level[0]]).then(level[1]).otherwise(shorter),
        longer,
        shortest,
    )
