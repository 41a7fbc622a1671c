"""A restart: the first points of an attempt beside the attempt before."""

import polars as pl

from sentinel.detectors.schema import INDEX, SERIES, STEP
from sentinel.detectors.stats import start_value

EARLIER_ROWS = 256
"""Rows of the attempt before that a rule has to declare."""

TAIL_ROWS = 20
"""Last rows of the attempt before whose median is the level before the restart."""

RESTART_POINTS = 50
"""Points after a restart that can tell of it."""

MIN_STEPS_FRACTION = 0.1
"""Fraction of the steps before. A restart at fewer is a repetition of the run."""


def with_restart(points: pl.LazyFrame) -> pl.LazyFrame:
    """Return the rows of the attempt before and the first ones of this one, with the step of the restart as
    ``first_step`` and the one at which the attempt before ended as ``last_step``, null where there was none.
    """
    return points.filter(pl.col(INDEX) < RESTART_POINTS).with_columns(
        first_step=start_value(STEP), last_step=earlier_value(STEP)
    )


def earlier_value(column: str) -> pl.Expr:
    """Return the last value of the attempt before."""
    return pl.col(column).filter(pl.col(INDEX) < 0).last().over(SERIES)


def goes_on() -> pl.Expr:
    """Return whether the restart goes on with the steps, rather than repeats the run."""
    return pl.col("first_step") > MIN_STEPS_FRACTION * pl.col("last_step")
