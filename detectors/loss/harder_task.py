"""Whether a loss rose because its task became harder, as at the next stage of a curriculum.

The model then learns on: its gradients are no larger than before, and its accuracy comes back, or most of it
is kept. After a divergence that does not last. Where a log lacks one of the two, nothing is excused.
"""

import polars as pl

from sentinel.detectors.schema import EXCUSED, SERIES
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import recent_max, recent_median, recent_noise, seen_max, start_median

COMPANIONS = (Signal.ACCURACY, Signal.EVAL_ACCURACY, Signal.GRAD_NORM)
"""What a rule that asks has to list in ``uses``."""

LEVEL = 5
"""Rows of a level."""

LATELY = 20
"""Rows within which a fall of the accuracy must be made good again, and the gradient norm be calm."""

BEFORE = 60
"""Rows before those, of the usual gradient norm."""

CALM_TIMES = 2.0
"""The usual gradient norm, at most."""

COMES_BACK = 0.1
"""Share of the fall of the accuracy that is made good."""

SURELY = 3
"""Standard errors of what is made good: noise alone seldom is as large."""

KEEPS = 0.5
"""Share of the gain of the accuracy that a harder stage leaves, or leaves again."""


def with_harder_task(points: pl.LazyFrame, *, norm_rows: int = LATELY) -> pl.LazyFrame:
    """Return a frame with the column ``EXCUSED``; it needs 85 rows as history.

    ``norm_rows`` are those over which the gradient norm must be calm.
    """
    accuracy = pl.coalesce(Signal.ACCURACY, Signal.EVAL_ACCURACY)
    usual_norm = recent_median(Signal.GRAD_NORM, BEFORE, skip=LATELY, at_least=LEVEL)
    norm = recent_max(pl.col(Signal.GRAD_NORM), norm_rows, at_least=LEVEL)
    level = pl.col("accuracy_level")
    best = pl.col("best_accuracy")
    lowest = level.rolling_min(LATELY, min_samples=1).over(SERIES)
    start = start_median("accuracy", LEVEL)
    rise = level - lowest
    error = recent_noise("accuracy", BEFORE) * (2 / LEVEL) ** 0.5
    comes_back = (best > lowest) & (rise > COMES_BACK * (best - lowest)) & (rise > SURELY * error)
    highest = level.rolling_max(LATELY, min_samples=1).over(SERIES)
    keeps = (best > start) & (highest - start > KEEPS * (best - start))
    return (
        points.with_columns(accuracy=accuracy)
        .with_columns(accuracy_level=recent_median("accuracy", LEVEL, at_least=LEVEL))
        .with_columns(best_accuracy=seen_max("accuracy_level", 10 * LATELY, 10 * LATELY))
        .with_columns(**{EXCUSED: ((norm < CALM_TIMES * usual_norm) & (comes_back | keeps)).fill_null(False)})
    )
