"""What of the gradient norm and the learning rate tells why a loss rose; a rule that asks uses both."""

import polars as pl

from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import SERIES
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import recent_max, recent_quantile

LATELY = 100
"""Rows within which the gradient norm grew or the rate leapt."""

USUAL = 200
"""Rows that tell the usual gradient norm, those of the rise included."""

LOW = 0.1
"""Quantile of them: a rise of many rows does not reach it."""

MIN_USUAL = 20
"""Rows that suffice."""

PLAN = 20
"""Rows before a leap of the rate; a warm-up begins with leaps."""

MEASURES = {
    "gradient_growth": Measure("largest gradient norm of late, times the usual one", Unit.NONE),
    "rate_leap": Measure("largest leap of the learning rate of late, times", Unit.NONE),
}


def clues() -> dict[str, pl.Expr]:
    """Return how far the gradient norm grew and the learning rate leapt of late; null where not known."""
    norm = pl.col(Signal.GRAD_NORM)
    usual = recent_quantile(LOW, Signal.GRAD_NORM, USUAL, at_least=MIN_USUAL)
    rate = pl.col(Signal.LEARNING_RATE)
    before = recent_max(rate.shift(1).over(SERIES), PLAN, at_least=PLAN)
    return {
        "gradient_growth": pl.when(usual > 0).then(recent_max(norm, LATELY, at_least=MIN_USUAL) / usual),
        "rate_leap": recent_max(pl.when(before > 0).then(rate / before), LATELY, at_least=1),
    }
