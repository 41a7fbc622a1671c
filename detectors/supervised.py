"""What the rules on the loss of supervised training share."""

from collections.abc import Sequence
from math import log

import polars as pl

from detectors.settings import Setting
from detectors.signals import Signal
from detectors.stats import nearest

ELSE = (Signal.REWARD, Signal.POLICY_LOSS, Signal.VALUE_LOSS, Signal.PREFERENCE_MARGIN)
"""Signals beside which a loss does not say how well the model learns. A rule has to list them in ``uses``."""

CLASSES = 2, 10, 100, 1000
"""Usual numbers of classes."""


def is_supervised() -> pl.Expr:
    """Whether none of the signals ``ELSE`` was logged so far."""
    return pl.all_horizontal(pl.col(signal).is_null() for signal in ELSE)


def cost_of_guessing(loss: pl.Expr, *, near: float, settings: Sequence[Setting] = ()) -> pl.Expr:
    """The cross-entropy of guessing among the classes of the settings, in nats.

    Where the settings name none, or none whose cost the loss is ``near`` to, in proportion, it is the
    nearest one of the usual numbers of classes.
    """
    known = pl.min_horizontal(*settings).log()
    usual = nearest(loss, [log(n) for n in CLASSES])
    return pl.when((loss / known - 1).abs() < near).then(known).otherwise(usual)
