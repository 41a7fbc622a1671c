"""Numbers with known bounds: what a training that is put together rightly never leaves.

Such a number is exact or nearly so, so a rule needs no statistics: it waits for as many points beyond a bound
as chance could bring.
"""

from collections.abc import Mapping
from math import inf
from typing import NamedTuple

import polars as pl

from sentinel.detectors.schema import SIGNAL, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, in_a_row, is_of
from sentinel.detectors.verdict import SkipReason, verdicts


class Bound(NamedTuple):
    """Where a number is right, and how many points beyond it, in a row, chance cannot bring."""

    least: float = -inf
    most: float = inf
    rows: int = 2


def beyond(points: pl.LazyFrame, bounds: Mapping[str, tuple[Signal, Bound]]) -> pl.LazyFrame:
    """Return the verdicts of a rule whose variants are each a bound of a signal.

    Several variants may bound one signal.
    """
    rows: dict[Signal, int] = {}
    for signal, bound in bounds.values():
        rows[signal] = min(rows.get(signal, bound.rows), bound.rows)
    value = pl.col(VALUE)
    return verdicts(
        points,
        judged={SkipReason.FEW_POINTS: has_points(pl.col(SIGNAL).replace_strict(rows))},
        found={
            name: is_of(signal) & in_a_row((value < bound.least) | (value > bound.most), bound.rows)
            for name, (signal, bound) in bounds.items()
        },
    )
