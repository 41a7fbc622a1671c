"""What a wrong sample costs a classifier in training, and whether that is what a probability of 0 costs."""

from math import log

import polars as pl

from sentinel.detectors.api import Variant
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import SERIES, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import nearest, recent_median, recent_quantile

CUT = (-log(1e-7), 15.9424, 100.0)
"""Nats of a probability of 0 in Keras, of 1 less that in float32, and in PyTorch."""

NEAR = 0.03
"""Fraction by which a cost may miss one of these."""

MIN_WRONG = 0.1
"""Fraction of wrong samples below which few of them decide."""

VARIES = 0.25
"""Fraction by which a cost varies that never changes."""

FEW = 5
"""Points that tell it."""

COSTS = {"pays": Measure("median loss for each wrong sample, over the points", Unit.SAME)}

CONSTANT = {
    "constant": Variant(
        "each wrong sample costs {pays:.3g} nats, whatever the model learns: probabilities have rounded to 0 "
        "and 1",
        ("O13", "DP12", "O12", "O19"),
    )
}
"""How a constant cost is told."""


def with_costs(points: pl.LazyFrame, *, reach: int) -> pl.LazyFrame:
    """Return a frame of losses with ``pays``, the median cost of a wrong sample over the last ``reach`` rows,
    and a condition ``constant``: it is that of a probability of 0, all the time.

    Another constant cost says nothing: one of a loss that is summed over a batch is as large, and no less
    constant than that of the mean.

    Needs the context ``Signal.ACCURACY``, which is that of the row before.
    """
    wrong = 1 - pl.col(Signal.ACCURACY)
    loss = pl.col(VALUE).shift(1).over(SERIES)
    counts = (wrong >= MIN_WRONG) & (wrong <= 1) & (loss > 0)
    costed = points.with_columns(cost=pl.when(counts).then(loss / wrong))
    pays = recent_median("cost", reach, at_least=FEW)
    is_cut = (pays / nearest(pays, CUT) - 1).abs() < NEAR
    return costed.with_columns(pays=pays, constant=is_cut & (_spread("cost", reach) < VARIES))


def _spread(column: str, reach: int) -> pl.Expr:
    """Range of the middle four fifths of a column, as a share of its median."""
    low, mid, high = (recent_quantile(quantile, column, reach, at_least=FEW) for quantile in (0.1, 0.5, 0.9))
    return (high - low) / mid
