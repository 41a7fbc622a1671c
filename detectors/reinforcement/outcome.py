"""Asks the reward before an inner signal may page: what serves the outcome is no trouble."""

import polars as pl

from sentinel.detectors.reading.standing import AT_BEST
from sentinel.detectors.schema import Standing
from sentinel.detectors.signals import Signal

STANDINGS = Standing(Signal.REWARD), Standing(Signal.EVAL_REWARD)
"""What a rule has to list in ``uses`` for `is_at_best`."""


KEEPS = 0.67
"""Share of its gain that an outcome has which lost less than a third of it."""


def is_at_best() -> pl.Expr:
    """Return whether the reward has risen surely and stands at its best; false where none is known."""
    return _stands(AT_BEST)


def keeps_gain() -> pl.Expr:
    """Return whether the reward has risen surely and kept two thirds of that; false where none is known."""
    return _stands(KEEPS)


def _stands(least: float) -> pl.Expr:
    return (pl.coalesce(use.column for use in STANDINGS) >= least).fill_null(False)
