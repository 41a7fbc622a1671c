"""The model trains in evaluation mode: dropout is off, and BatchNorm's statistics stand still.

## What it catches
No module in training mode at a step, in three measurements in a row. `sentinel.probe` logs the share of
modules in training mode as `model/training`.

## Why it matters
The loss even looks better without dropout, and the model overfits or normalises by statistics of another
time.

## What to do
Call `model.train()` at the start of each epoch, after each evaluation and after loading.

## When it is wrong
A fine-tuning that keeps the whole model in evaluation mode on purpose.

## Source
Catalogue O5. The share is exact, so no noise can make it wrong.
"""

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.schema import VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import NOTHING, has_points, in_a_row
from sentinel.detectors.verdict import SkipReason, verdicts

IN_A_ROW = 3  # measurements, so that one within an evaluation is not enough


@detector(
    judges=(Signal.TRAINING_SHARE,),
    history=History(recent=IN_A_ROW),
    maturity=Maturity.PREVIEW,
    cause=Cause.LOSS_SHAPE,
    evidence={},
    variants={"evaluates": Variant("the model trains in evaluation mode", ("O5", "O18"))},
)
def evaluation_mode(points: pl.LazyFrame) -> pl.LazyFrame:
    evaluates = in_a_row(pl.col(VALUE) == 0, IN_A_ROW)
    return verdicts(
        points,
        judged={SkipReason.FEW_POINTS: has_points(IN_A_ROW)},
        found={"evaluates": evaluates},
        below=pl.lit(NOTHING),
    )
