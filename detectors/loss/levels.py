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
    recent_max,
    recent_median,
    recent_noise,
    recent_quantile,
    seen_min,
)

WINDOWS = {5: 0, 10: 30, 20: 120}
"""Points of a level, and how many points there must be."""

FEW = min(WINDOWS)
MANY = max(WINDOWS)

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

MIN_NOISE = 1e-3
"""Share of the level."""

BUCKETS = 5
"""Neighbouring buckets of the coarse view that hold as many points as the longest level, at four each."""

FIRST = 3
"""Rows of a level of a moving average that starts at 0. Its first rows make three levels."""

STEEP = 1.5
"""Times the first level of such an average that the second one is at least."""

STEEPER = 1.8
"""Times its first row that the third row is at least."""

NO_FASTER = 1.5
"""Times the gain between its first two levels that the next gain is at most.

An average ``s`` of decay ``a`` moves by ``(1 - a) (loss - s)``, so its climb slows down from its first row
on. If it takes long enough to make the best level too low, these ratios are 1.6 and 2.1 to 4 without noise.
Of averages of points with noise of 20 %, one in a hundred is taken for something else.
"""

DIPS = 0.9
"""Fraction of an earlier row below which no row of such an average falls."""

RETURNS = 0.1
"""Share of its rise by which a level falls that comes back to the best one."""

SURELY = 3
"""Standard errors of such a fall: noise alone seldom falls as far."""

RISE = {
    "best": Measure("best level", Unit.SAME),
    "level": Measure("now", Unit.SAME),
    "rise": Measure("rise that four in five points exceed", Unit.SHARE),
    "errors": Measure("rise in standard errors", Unit.NONE),
    "noise": Measure("noise between points", Unit.SHARE),
}


def with_rise(points: pl.LazyFrame) -> pl.LazyFrame:
    """Return a frame with the columns of ``RISE``; needs ``LEVELS`` as history.

    They are null where more than one in five of the last points is not positive. All is measured in
    logarithms. Second differences tell the noise, so neither a trend nor a fall is any.
    """
    apart, enough = APART
    close = recent_noise("log", NOISE, at_least=FEW)
    # A divergence makes points that are apart differ. So the rows before the recent ones tell their noise.
    distant = recent_noise("log", NOISE, apart=apart, at_least=enough).shift(enough).over(SERIES)
    levels = {n: f"level_{n}" for n in WINDOWS}
    before = {n: pl.col(name).shift(n).over(SERIES) for n, name in levels.items()}
    buckets = pl.element().rolling_mean(BUCKETS)
    scatter = recent_noise(levels[MANY], REACH, apart=MANY, at_least=MANY)
    return (
        points.with_columns(log=pl.when(pl.col(VALUE) > 0).then(pl.col(VALUE).log()))
        .with_columns(
            climbs=_climbs_from_zero(),
            noise=pl.max_horizontal(close, distant).clip(MIN_NOISE),
            low=_by_points(
                {n: _of_full(n, recent_quantile(0.2, "log", n, at_least=_most(n))) for n in WINDOWS}
            ),
            **{name: _of_full(n, recent_median("log", n, at_least=_most(n))) for n, name in levels.items()},
        )
        .with_columns(
            scatter=scatter,
            # Of a series that climbs from 0, only a level to which it fell may be the best one.
            **{
                f"before_{n}": pl.when(~pl.col("climbs") | (level < level.shift(n).over(SERIES))).then(level)
                for n, level in before.items()
            },
        )
        .with_columns(
            log_level=_by_points({n: pl.col(name) for n, name in levels.items()}),
            log_best=_no_best_below_zero(
                _by_points({n: seen_min(f"before_{n}", REACH, REACH) for n in WINDOWS}),
                of_buckets(
                    pl.when("climbs")
                    .then(pl.col("coarse_mean").list.eval(buckets.filter(buckets.diff() < 0)).list.min())
                    .otherwise(pl.col("coarse_mean").list.eval(buckets).list.min())
                ),
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
            returns=_returns({n: pl.col(name) for n, name in levels.items()}),
            errors=(pl.col("log_level") - pl.col("log_best")) / pl.col("error"),
        )
    )


def _no_best_below_zero(log_best: pl.Expr, coarse: pl.Expr) -> pl.Expr:
    """Return the logarithm of the best level, also of the coarse ones; null where one of these has none."""
    return pl.when((coarse > 0).fill_null(value=True)).then(pl.min_horizontal(log_best, coarse.log()))


def _climbs_from_zero() -> pl.Expr:
    """Return whether a series begins as a moving average does that starts at 0 without a correction."""
    value = pl.col(VALUE)
    index = pl.col(INDEX)
    level, next_level, last_level = (value.filter(index // FIRST == n).median() for n in range(3))
    row, last_row = (value.filter(index == n).first() for n in (0, FIRST - 1))
    head = value.filter(index.is_between(0, 3 * FIRST, closed="left"))
    steep = (last_row > STEEPER * row) & (next_level > STEEP * level)
    slows = last_level - next_level < NO_FASTER * (next_level - level)
    return (steep & slows & (head >= DIPS * head.cum_max()).all()).over(SERIES).fill_null(False)


def _returns(levels: Mapping[int, pl.Expr]) -> pl.Expr:
    """Return whether the last points come back to the best level, as after a jump or with a new task.

    The newest of them have then fallen below others of them, or all of them below as many points before.
    Noise hides that at single points, so the fewest points of a level must show none of it.
    """
    newest = levels[FEW]
    within = {n: _falls(recent_max(newest, n - FEW + 1), newest, FEW) for n in WINDOWS}
    since = {n: _falls(level.shift(n).over(SERIES), level, n) for n, level in levels.items()}
    since[FEW] = pl.lit(False)  # before so few points the loss may still have come down from its start
    return recent_max(_by_points(within) | _by_points(since), FEW, at_least=1)


def _falls(earlier: pl.Expr, level: pl.Expr, points: int) -> pl.Expr:
    """Return whether a level of so many points, in logarithms, is surely below an earlier one."""
    fall = earlier - level
    seldom = SURELY * pl.col("noise") * (2 / points) ** 0.5
    falls: pl.Expr = (fall > seldom) & (fall > RETURNS * (earlier - pl.col("log_best")))
    return falls.fill_null(False)


def _most(rows: int) -> int:
    """Of so many rows those that must be positive: an exact 0 among them is a masked batch, or rounded."""
    return rows * 4 // 5


def _of_full(rows: int, level: pl.Expr) -> pl.Expr:
    return pl.when(has_points(rows)).then(level)


def _by_points(columns: Mapping[int, pl.Expr]) -> pl.Expr:
    """Return the column of the longest window for which there are enough points."""
    (_, shortest), *longer = columns.items()
    return reduce(
        lambda shorter, level: pl.when(pl.col(INDEX) >= WINDOWS[level[0]]).then(level[1]).otherwise(shorter),
        longer,
        shortest,
    )
