"""The loss is no longer logged, while the learning rate goes on.

## What it catches
A loss that does not change at 50 points of the learning rate in a row, though it changed at nine in ten of
the 50 points before. A loss of 0 is left to others.

## Why it matters
A number that is no longer logged is no longer judged: a NaN that a logger drops, a key that is filtered out,
or a branch of the code that computes no loss all look like a calm run.

## What to do
Print the loss at one of these steps. If it is NaN, go back to the last checkpoint before the first of them.
If it is an ordinary number, look at what writes it, and whether the condition for it still holds.

## When it is wrong
A second stage that logs its loss by another name. Where the loss is still logged and repeats itself,
`repeated-loss` says so, too.

## Source
Catalogue A-logging. A loss of other batches never repeats itself, so 50 equal ones have no probability.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit, logged
from sentinel.detectors.schema import SERIES, STEP
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, recent_max, recent_mean
from sentinel.detectors.verdict import SkipReason, verdicts

POINTS = 50  # of the learning rate, in which the loss rests, and as many before
LIVELY = 0.9  # share of these before at which the loss was another one than at the point before


@detector(
    judges=(Signal.LEARNING_RATE,),
    uses=(Signal.LOSS,),
    history=History(recent=2 * POINTS + 1),
    maturity=Maturity.STABLE,
    hold=1,  # a verdict rests on many points already
    clear=1,
    cause=Cause.LOSS_SHAPE,
    evidence={"since": Measure("last new loss at", Unit.STEP), **logged(Signal.LOSS)},
    variants={
        "rests": Variant(
            "no new loss since step {since:.0f}, while the learning rate is logged at each step: it is no "
            "longer logged, or constant at {loss:.4g}",
            ("A-logging", "A-nan-debug"),
        )
    },
)
def missing_loss(
    points: pl.LazyFrame,
    *,
    lively: Annotated[float, "share of the points before at which the loss changed"] = LIVELY,
) -> pl.LazyFrame:
    loss = pl.col(Signal.LOSS)
    changed = (loss != loss.shift(1).over(SERIES)).fill_null(False)
    measured = points.with_columns(changed=changed.cast(pl.Float64)).with_columns(
        since=recent_max(pl.when(pl.col("changed") > 0).then(STEP), 2 * POINTS, at_least=1),
        changes=recent_max(pl.col("changed"), POINTS),
        before=recent_mean("changed", POINTS, skip=POINTS),
    )
    rests = (pl.col("changes") == 0) & (pl.col("before") >= lively)
    return verdicts(
        measured,
        judged={
            SkipReason.FEW_POINTS: has_points(2 * POINTS + 1),
            SkipReason.NOT_COMPARABLE: loss.is_not_null(),
        },
        found={"rests": rests & (loss != 0)},
        lasts=pl.col("changes") == 0,
        onset=pl.col("since"),
    )
