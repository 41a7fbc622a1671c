"""Logits that grow without end, in attention or in the output."""

import polars as pl

from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import VALUE
from sentinel.detectors.stats import now_and_then, recent_median

LEVEL_POINTS = 20
"""Points of a level; as many of the first are the start."""

EARLIER_POINTS = 100
"""Points between a level and the earlier one that it is compared with."""

MIN_GROWTH = 1.02
"""Times the earlier level; a level below that stands still."""

LEVELS = {
    "level": Measure("median of the last 20 points", Unit.SAME),
    "start": Measure("at the start", Unit.SAME),
    "before": Measure("100 points ago", Unit.SAME),
}
"""What `with_levels` measures."""


def with_levels(points: pl.LazyFrame) -> pl.LazyFrame:
    """Return the rows with the levels of now, of the start and of before; before that, the start's."""
    measured = points.with_columns(
        **now_and_then(VALUE, LEVEL_POINTS, start=LEVEL_POINTS),
        before=recent_median(VALUE, LEVEL_POINTS, skip=EARLIER_POINTS, at_least=1),
    )
    return measured.with_columns(before=pl.col("before").fill_null(pl.col("start")))


def grows(bound: float, growth: float) -> pl.Expr:
    """Return whether a level lies above a bound and above a multiple of the first one, and still rises."""
    level = pl.col("level")
    return (level > bound) & (level > growth * pl.col("start")) & (level > MIN_GROWTH * pl.col("before"))
