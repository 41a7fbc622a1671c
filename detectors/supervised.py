"""What the rules on the loss of supervised training share."""

from collections.abc import Sequence
from math import log

import polars as pl

from sentinel.detectors.schema import VALUE
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.detectors.skip_reason import SkipReason
from sentinel.detectors.stats import nearest, start_median

ELSE = (Signal.REWARD, Signal.POLICY_LOSS, Signal.CLIP_FRACTION, Signal.PREFERENCE_MARGIN)
"""Signals beside which a loss does not say how well the model learns. A rule has to list them in ``uses``.

A critic's loss is not among them: what is named like it may as well be a term of a supervised loss.
"""

CLASSES = 2, 10, 100, 1000
"""Usual numbers of classes."""

SETTLED_BOUND_RATIOS = 0.97, 1.015
"""Times the cost of guessing between which the lower bound lies of a loss that came down to guessing."""

SETTLED_RATIOS = 0.985, 1.03
"""Times the cost of guessing between which such a loss itself lies."""

MAX_START_RATIO = 1.1
"""Times the cost of guessing below which such a loss began, where the number of classes is a guess."""


INFORMED_RATIOS = 0.75, 0.97
"""Times the least that guessing costs between which a loss lies that tells classes apart. A squared error of
guessing lies below 0.72."""

LEARNED_FRACTION = 0.01
"""Fraction of the median of the first losses below which nothing is left to learn."""

FIRST = 5
"""Losses that are the first ones."""


def is_learned(loss: pl.Expr) -> pl.Expr:
    """Return whether a loss is so far below its start that its rises are of rounding and of single samples.

    The rule needs a head of 5 rows.
    """
    return (loss < LEARNED_FRACTION * start_median(VALUE, FIRST)).fill_null(False)


def is_supervised() -> pl.Expr:
    """Return whether none of the signals ``ELSE`` was logged so far."""
    return pl.all_horizontal(pl.col(signal).is_null() for signal in ELSE)


def supervised(enough: pl.Expr) -> dict[SkipReason, pl.Expr]:
    """Return what a rule on the loss of supervised training asks of a row, for `verdicts`: that the
    training is supervised, and that there are ``enough`` points.
    """
    return {SkipReason.NOT_SUPERVISED: is_supervised(), SkipReason.FEW_POINTS: enough}


def cost_of_guessing(loss: pl.Expr, *, near: float, settings: Sequence[Setting] = ()) -> pl.Expr:
    """Return the cross-entropy of guessing among the classes of the settings, in nats.

    Where the settings name none, or none whose cost the loss is ``near`` to, in proportion, it is the
    nearest one of the usual numbers of classes.
    """
    of_settings = pl.min_horizontal(*settings).log()
    usual = nearest(loss, [log(classes) for classes in CLASSES])
    return pl.when((loss / of_settings - 1).abs() < near).then(of_settings).otherwise(usual)


def beats_guessing(loss: pl.Expr, accuracy: pl.Expr) -> pl.Expr:
    """Return whether a cross-entropy is lower than one can be that knows nothing of its input.

    Who answers without a look at the input is right as often as one class is, and pays the entropy of the
    labels at least: no less than that of this class beside all others. A loss far below is none in nats.
    """
    wrong = 1 - accuracy
    least = -accuracy * accuracy.log() - wrong * wrong.log()
    return (loss / least).is_between(*INFORMED_RATIOS).fill_null(False)


def settled_at_guessing(settings: Sequence[Setting]) -> pl.Expr:
    """Return whether a loss that began above the cost of guessing came down to it, and surely not below.

    Guessing is among the classes that the settings state. Else it is between two, and the loss began a little
    above: other costs of guessing are ordinary losses of language models. Reads the columns of
    `thirds.with_fall`.
    """
    classes = pl.min_horizontal(settings)
    cost = classes.fill_null(2).log()
    start, now, low = (pl.col(name) / cost for name in ("start", "now", "low"))
    return (
        low.is_between(*SETTLED_BOUND_RATIOS)
        & now.is_between(*SETTLED_RATIOS)
        & (start > now)
        & (classes.is_not_null() | (start < MAX_START_RATIO))
    )
