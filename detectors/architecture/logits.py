"""Logits that grow without end, in attention or in the output."""

import polars as pl

from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import VALUE
from sentinel.detectors.stats import now_and_then, recent_median

NOW = 20
"""Points of a level, and of the start."""

AGO = 100
"""Points back to which a level is compared."""

RISES = 1.02
"""Times the level of then, below which it stands still."""

LEVELS = {
    "level": Measure("median of the last 20 points", Unit.SAME),
    "start": Measure("at the start", Unit.SAME),
    "before": Measure("100 points ago", Unit.SAME),
}
"""What `with_levels` measures."""


def with_levels(points: pl.LazyFrame) -> pl.LazyFrame:
    """Return the rows with the levels of now, of the start and of before; before that, the start's."""
    measured = points.with_columns(
        **now_and_then(VALUE, NOW, start=NOW),
        before=recent_median(VALUE, NOW, skip=AGO, at_least=1),
    )
    return measured.with_columns(before=pl.col("before").fill_null(pl.col("start")))


def grows(bound: float, growth: float) -> pl.Expr:
    """Return whether a level lies above a bound and above a multiple of the first one, and still rises."""
    level = pl.col("level")
    return (level > bound) & (level > growth * pl.col("start")) & (level > RISES * pl.col("before"))
