"""A number that no rule knows freezes, or leaps for good.

## What it catches
Of the numbers without a meaning for any rule, those that were alive: they moved nearly always, and one time
in four back. *Frozen* is one that then keeps its value to the last digit for a hundred points, neither its
lowest nor its highest. *Leapt* is one that exceeds everything before by a factor of twenty at three points in
a row. A run is told of each once, with the names of the numbers that did so at the same step.

## Why it matters
What nobody named is watched by nobody. A measurement that froze measures nothing any more: a dead worker, an
environment that hangs, a tensor that is not updated. A leap is often the first sign of a change that shows
in the named metrics later.

## What to do
Look what computes the number, and what changed at that step. Map it to a signal in `[signals]` if a rule
should know it, and to `ignore` if it means nothing.

## When it is wrong
A measurement that is taken once an epoch and logged at each step is frozen by right, and so is a statistic of
a part of training that is over. A new phase may lift a number twentyfold. Hence a finding is never more than
info.

## Source
Catalogue A-logging. The numbers are measured on public logs: none of 298 healthy runs is told, nor any other.
"""

import polars as pl

from sentinel.detectors.api import INFO, History, Maturity, Variant, detector
from sentinel.detectors.schema import VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import is_of
from sentinel.detectors.verdict import verdicts


@detector(
    judges=(Signal.FROZEN_METRIC, Signal.LEAPT_METRIC),
    history=History(),
    maturity=Maturity.STABLE,
    hold=1,  # each point tells of many
    variants={
        "frozen": Variant("{tag}: frozen to the last digit for 100 points", ("A-logging",), (INFO,)),
        "leapt": Variant("{tag}: 20 times the former maximum, and stays there", ("A-logging",), (INFO,)),
    },
)
def odd_metric(points: pl.LazyFrame) -> pl.LazyFrame:
    some = pl.col(VALUE) >= 1
    froze = is_of(Signal.FROZEN_METRIC)
    return verdicts(points, found={"frozen": some & froze, "leapt": some & ~froze})
