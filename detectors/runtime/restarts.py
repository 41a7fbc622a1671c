"""A restart: the first points of an attempt beside the attempt before."""

import polars as pl

from sentinel.detectors.schema import INDEX, SERIES, STEP
from sentinel.detectors.stats import start_value

EARLIER_ROWS = 256
"""Rows of the attempt before that a rule has to declare."""

TAIL_ROWS = 20
"""Last rows of the attempt before whose median is the level before the restart, where it has enough."""

TAIL_FRACTION = 0.25
"""Fraction of a short attempt that its last rows may be."""

MIN_TAIL_ROWS = 3
"""Of an attempt of any length."""

RESTART_POINTS = 50
"""Points after a restart that can tell of it."""

MIN_STEPS_FRACTION = 0.1
"""Fraction of the steps before. A restart at fewer is a repetition of the run."""


def with_restart(points: pl.LazyFrame) -> pl.LazyFrame:
    """Return the rows of the attempt before and the first ones of this one, with the step of the restart as
    ``first_step`` and the one at which the attempt before ended as ``last_step``, null where there was none.

    ``in_tail`` holds for the last rows of the attempt before.
    """
    count = is_earlier().sum().over(SERIES)
    tail = (TAIL_FRACTION * count).clip(MIN_TAIL_ROWS, TAIL_ROWS)
    return points.filter(pl.col(INDEX) < RESTART_POINTS).with_columns(
        first_step=start_value(STEP),
        last_step=earlier_value(STEP),
        in_tail=is_earlier() & (pl.col(INDEX) >= -tail),
    )


def is_earlier() -> pl.Expr:
    """Return whether a row is of the attempt before."""
    return pl.col(INDEX) < 0


def earlier_value(column: str) -> pl.Expr:
    """Return the last value of the attempt before."""
    return pl.col(column).filter(is_earlier()).last().over(SERIES)


def goes_on(rows: int = EARLIER_ROWS) -> pl.Expr:
    """Return whether the restart goes on with the steps, rather than repeats the run.

    One that begins no later than the attempt before did repeats it. Where that began is known if it has fewer
    than the ``rows`` that the rule declares of it.
    """
    first_step = pl.col("first_step")
    is_whole = is_earlier().sum().over(SERIES) < rows
    earlier_step = pl.col(STEP).filter(is_earlier()).first().over(SERIES)
    repeats = is_whole & (first_step <= earlier_step)
    return (first_step > MIN_STEPS_FRACTION * pl.col("last_step")) & ~repeats
