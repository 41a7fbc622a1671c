"""Tensors ask for gradients and no optimizer holds them, so they are never trained.

## What it catches
A count of such tensors above zero in two measurements in a row. `sentinel.probe` logs it as
`params/missing_from_optimizer`.

## Why it matters
The loss falls by what the other weights learn, so nothing in it shows that a layer stays as it began.

## What to do
Build the optimizer after the model is whole, placed and wrapped, and hand every optimizer to the probe.
What is meant to rest should not ask for gradients (`requires_grad_(False)`).

## When it is wrong
A second optimizer that the probe does not know; a part that rests although it asks for gradients.

## Source
Catalogue O2. The count is exact, so no noise can make it wrong.
"""

import polars as pl

from sentinel.detectors.api import WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.schema import VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, in_a_row
from sentinel.detectors.verdict import SkipReason, verdicts

IN_A_ROW = 2  # measurements: the first may come before the last layer


@detector(
    judges=(Signal.MISSING_TENSORS,),
    history=History(recent=IN_A_ROW),
    maturity=Maturity.PREVIEW,
    cause=Cause.NO_GRADIENT,
    evidence={},
    variants={
        "missing": Variant(
            "{value:.0f} tensors ask for gradients and are in no optimizer", ("O2", "X1", "O21"), (WARNING,)
        )
    },
)
def weights_left_out(points: pl.LazyFrame) -> pl.LazyFrame:
    missing = in_a_row(pl.col(VALUE) > 0, IN_A_ROW)
    return verdicts(points, judged={SkipReason.FEW_POINTS: has_points(IN_A_ROW)}, found={"missing": missing})
