"""Whether a loss rose because its task became harder, as at the next stage of a curriculum.

The model then learns on: its gradients are no larger than before, and its accuracy comes back, or most of it
is kept. After a divergence that does not last. Where a log lacks one of the two, nothing is excused, unless
an accuracy of held-out data that is measured in nearly every row has kept all of its gain: then the loss has
become another one. A loss that stays high has, too, while that of held-out data reaches a new best; a spike
does that no harm.
"""

import polars as pl

from sentinel.detectors.schema import EXCUSED, SERIES
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import (
    recent_max,
    recent_median,
    recent_noise,
    seen_max,
    seen_min,
    start_median,
    start_quantile,
)

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

HOLDS = 0.9
"""Share of its gain that the accuracy of held-out data has kept where it says enough alone."""

MEASURED = 3
"""Evaluations in the rows of a level that are enough."""

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
    harder = ((norm < CALM_TIMES * usual_norm) & (comes_back | keeps)).fill_null(value=False)
    levels = {"accuracy_level": "accuracy", "held_out_level": Signal.EVAL_ACCURACY}
    bests = {"best_accuracy": "accuracy_level", "best_held_out": "held_out_level"}
    return (
        points.with_columns(accuracy=accuracy)
        .with_columns(**{name: recent_median(of, LEVEL, at_least=LEVEL) for name, of in levels.items()})
        .with_columns(**{name: seen_max(of, 10 * LATELY, 10 * LATELY) for name, of in bests.items()})
        .with_columns(**{EXCUSED: harder | _holds().fill_null(value=False)})
    )


def _holds() -> pl.Expr:
    """Return whether the accuracy of held-out data, measured again and again, has kept all of its gain."""
    accuracy = pl.col(Signal.EVAL_ACCURACY)
    is_measured = (accuracy != accuracy.shift(1).over(SERIES)).cast(pl.Int32)
    first = start_quantile(0.0, Signal.EVAL_ACCURACY, LEVEL)
    gain = pl.col("best_held_out") - first
    is_gain = gain > SURELY * recent_noise(Signal.EVAL_ACCURACY, BEFORE)
    kept = pl.col("held_out_level") - first
    return (is_measured.rolling_sum(LEVEL).over(SERIES) >= MEASURED) & is_gain & (kept > HOLDS * gain)


def generalises_on() -> pl.Expr:
    """Return whether the loss of held-out data was measured lately, and is below all that it was before.

    A rule that asks has to list that loss in ``uses``, too.
    """
    loss = pl.col(Signal.EVAL_LOSS)
    is_measured = (loss != loss.shift(1).over(SERIES)).cast(pl.Int32)
    lowest_before = seen_min(Signal.EVAL_LOSS, 10 * LATELY, 10 * LATELY).shift(LATELY).over(SERIES)
    is_recent = is_measured.rolling_sum(LATELY, min_samples=1).over(SERIES) > 0
    return (is_recent & (loss < lowest_before)).fill_null(value=False)
