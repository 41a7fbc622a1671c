"""Optimizer steps leave the weights as they were, byte for byte.

## What it catches
At least 99.9 % of the tensors unchanged by a step, in three measurements in a row, at a learning rate above
zero. `sentinel.probe` logs the share as `params/unchanged_after_step`.

## Why it matters
Such a training costs full price and learns nothing.

## What to do
See whether `backward()` comes before `step()` and `zero_grad()` after it, whether the optimizer holds the
weights that the model uses, and whether the scaler skips each step.

## When it is wrong
A scaler that looks for its level skips some steps, but not three measured ones in a row. Weights in half
precision may be too coarse for a tiny step; then the step is lost indeed.

## Source
Catalogue O2, O3, O4 and O10. A step of any optimizer with a gradient changes some bit of most tensors.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import logged
from sentinel.detectors.schema import VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, in_a_row
from sentinel.detectors.verdict import SkipReason, verdicts

IN_A_ROW = 3  # measurements: a scaler may skip the step of one


@detector(
    judges=(Signal.UNCHANGED_SHARE,),
    uses=(Signal.LEARNING_RATE,),
    history=History(recent=IN_A_ROW),
    maturity=Maturity.PREVIEW,
    cause=Cause.NO_GRADIENT,
    inhibits=(Cause.LOSS_SHAPE,),
    evidence=logged(Signal.LEARNING_RATE),
    variants={
        "unchanged": Variant(
            "an optimizer step leaves {value:.0%} of the tensors as they were",
            ("O4", "O2", "O3", "O24"),
            (CRITICAL,),
        )
    },
)
def weights_unchanged(
    points: pl.LazyFrame,
    *,
    nearly_all: Annotated[float, "share of unchanged tensors that is too much"] = 0.999,
) -> pl.LazyFrame:
    rate = pl.col(Signal.LEARNING_RATE).fill_null(1)
    return verdicts(
        points,
        judged={SkipReason.FEW_POINTS: has_points(IN_A_ROW), SkipReason.ZERO_RATE: rate > 0},
        found={"unchanged": in_a_row(pl.col(VALUE) >= nearly_all, IN_A_ROW)},
        above=pl.lit(nearly_all),
    )
