"""Whether the loss of a critic says that it is lost: it grew or leapt far, and the reward gained nothing.

A critic's loss grows with the square of the returns, so it may grow where the reward does.
"""

import polars as pl

from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.loss.levels import MANY, REACH
from sentinel.detectors.schema import SERIES, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import recent_max, recent_median, seen_max, start_median, start_quantile

START = 10
"""Points at the start."""

GREW = 1000
"""Times its start, or the points before a leap: the loss of a critic that is lost."""

BEYOND = 100
"""Times the square of the largest reward: the same."""

LEAPT = 2
"""Points that stand as far beyond those before: a leap."""

SINCE = 10
"""Points within which it leapt."""

BEFORE = 50
"""Points before a leap."""

MIN_BEFORE = 20
"""How many of them suffice."""

MIN_ORDINARY = 1e-3
"""The least of the largest before: a critic that had nothing to predict leaps at its first reward."""

HIGH = 0.75
"""Quantile of the first rewards: noise of one point does not reach it."""

CRITIC = {
    "start": Measure("at the start", Unit.SAME),
    "before": Measure("largest of the 50 points before a leap", Unit.SAME),
}
"""The columns of `with_critic` that a reader may see."""


def with_critic(points: pl.LazyFrame) -> pl.LazyFrame:
    """Return a frame of losses beside rewards with the columns that `is_lost` and `leapt` read."""
    return points.with_columns(reward_size=pl.col(Signal.REWARD).abs()).with_columns(
        start=start_median(VALUE, START),
        before=recent_max(pl.col(VALUE).shift(SINCE).over(SERIES), BEFORE, at_least=MIN_BEFORE),
        size=seen_max("reward_size", REACH, REACH),
    )


def leapt() -> pl.Expr:
    """Return whether a critic's last losses stand far beyond all before, while the reward does not rise."""
    least = -recent_max(-pl.col(VALUE), LEAPT)
    before = pl.col("before")
    reward_before = recent_max(pl.col(Signal.REWARD).shift(SINCE).over(SERIES), BEFORE, at_least=1)
    gained = recent_max(pl.col(Signal.REWARD), SINCE, at_least=1) > reward_before + reward_before.abs()
    return (least > GREW * before) & (before > MIN_ORDINARY) & (least > 1) & ~gained.fill_null(False)


def is_lost() -> pl.Expr:
    """Return whether a critic's loss, which stands at ``level``, grew beyond its start and its rewards, and
    nothing was gained.
    """
    no_gain = recent_median(Signal.REWARD, MANY, at_least=1) <= start_quantile(HIGH, Signal.REWARD, MANY)
    beyond = pl.col("level") > BEYOND * pl.col("size").clip(1) ** 2
    return (pl.col("level") > GREW * pl.col("start")) & beyond & no_gain
