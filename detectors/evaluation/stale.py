"""Whether a loss on held-out data rests to the last digit while that of the training falls."""

import polars as pl

from sentinel.detectors.api import Variant
from sentinel.detectors.schema import INDEX, SERIES, VALUE
from sentinel.detectors.stats import PRECISION, moved, resting, start_value

REACH = 8
"""Evaluations that are alike."""

FELL = 0.95
"""Share of the training loss at the first of them that is left at the last, at most."""

DIGITS = 3
"""Digits of a log; one that keeps no more cannot tell a rest."""

ALIKE = 1e-7
"""Fraction by which evaluations of the same weights differ at most, in single precision."""

LEARNED = 0.01
"""Fraction of the first loss; a loss below that cannot tell a rest."""

STALE = {
    "stale": Variant(
        "loss on held-out data rests at {value:.6g} to the last digit while that of the training falls, as "
        "if an old copy of the weights were evaluated",
        ("N-ema-lag", "DF2", "V1", "O5"),
    )
}
"""How that is told."""


def with_stale(points: pl.LazyFrame) -> pl.LazyFrame:
    """Return a frame of losses on held-out data with the condition ``stale``, null while there are too few.

    Needs the context ``Mean(Signal.LOSS)``, and the recent rows and the head that the rest of the rule has.
    """
    value = pl.col(VALUE)
    train = pl.col("loss_mean")
    mark = pl.when(moved(ALIKE).fill_null(True)).then(INDEX).forward_fill().over(SERIES)
    matters = (value - value.round_sig_figs(DIGITS)).abs() > PRECISION * value
    fell = train < FELL * train.shift(REACH - 1).over(SERIES)
    rests = resting(pl.col("mark"), REACH) == REACH
    return points.with_columns(mark=mark).with_columns(
        stale=rests & fell & matters & (value > LEARNED * start_value(VALUE))
    )
