"""Asks the reward before an inner signal may page: what serves the outcome is no trouble."""

import polars as pl

from sentinel.detectors.reading.standing import AT_BEST
from sentinel.detectors.schema import Standing
from sentinel.detectors.signals import Signal

STANDINGS = Standing(Signal.REWARD), Standing(Signal.EVAL_REWARD)
"""What a rule has to list in ``uses`` to ask how the reward stands."""

LOST = 0.5
"""Share of its gain that an outcome has left which lost much of it."""

KEEPS = 0.67
"""Share of its gain that an outcome has which lost less than a third of it."""


def is_at_best() -> pl.Expr:
    """Return whether the reward has risen surely and stands at its best; false where none is known."""
    return _stands(AT_BEST)


def keeps_gain() -> pl.Expr:
    """Return whether the reward has risen surely and kept two thirds of that; false where none is known."""
    return _stands(KEEPS)


def has_fallen() -> pl.Expr:
    """Return whether the reward gained something surely and lost half of it; false where none is known."""
    return ((_standing() < LOST) & (_standing() != 0)).fill_null(False)


def _stands(least: float) -> pl.Expr:
    return (_standing() >= least).fill_null(False)


def _standing() -> pl.Expr:
    return pl.coalesce(use.column for use in STANDINGS)
