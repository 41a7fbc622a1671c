"""The gradient norm is exactly zero: nothing reaches the weights.

## What it catches
A gradient norm of exactly 0 in 90 % of the last 20 points while the learning rate is above zero, either
since the run began or in a run whose gradient was alive at its start. A run that is over with fewer
points is judged by those, if they are five at least.

## Why it matters
Not even a model that has learnt everything has a gradient of exactly zero. Steps cost full price and,
weight decay aside, change nothing.

## What to do
Assert right before `backward()` that the loss has a `grad_fn`. Then list the parameters whose `.grad` is
`None` or all zeros after it. Zero from the start: look for `.detach()`, `.item()`, `no_grad()` or a
`zero_grad()` between `backward()` and `step()`, and for adapters that are frozen. Zero later on: look for
units that died or saturated, and for a batch whose labels are all masked.

## When it is wrong
In group-relative reinforcement learning the gradient is rightly zero while all rewards of a group are
equal; `reward-zero-std` tells of that. A loss that has fallen to exactly zero has no gradient either. A
log with two decimals shows small norms as zero: a norm that was never above 0.1 while the loss fell is
taken for that. A loop that logs each micro-batch may log 0 for all but the last one.

## Source
Catalogue O3, O4, O2, O21 and O25. No noise makes a norm exactly zero, so the only chance to be wrong
lies in the cases above.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit, logged
from sentinel.detectors.schema import ENDED, SERIES, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import (
    NOTHING,
    ROUNDING,
    has_points,
    now_and_then,
    recent_mean,
    seen_max,
    start_median,
)
from sentinel.detectors.verdict import SkipReason, verdicts

WINDOW_POINTS = 20  # last points that are judged
LOSS_POINTS = 10  # first losses, and last ones: those of a run of 20 points are not the same
MIN_POINTS_AT_END = 5  # points that suffice once the run is over
ZERO_RATE = 1e-12  # learning rate that moves no weights
ZERO_STD = 1e-6  # standard deviation of rewards that are all equal
ROUNDED_NORM = 0.1  # a norm below this may be logged as 0.0
FALLEN_LOSS_FRACTION = 0.9  # of the loss at the start, below which it fell
MAX_GROUPS_WITHOUT_ADVANTAGE = 0.5  # fraction of the groups: with more, no gradient is right


@detector(
    judges=(Signal.GRAD_NORM,),
    uses=(Signal.LEARNING_RATE, Signal.LOSS, Signal.FRAC_REWARD_ZERO_STD, Signal.REWARD_STD),
    history=History(recent=2 * WINDOW_POINTS, head=WINDOW_POINTS),
    at_end=True,
    maturity=Maturity.STABLE,
    cause=Cause.NO_GRADIENT,
    inhibits=(Cause.LOSS_SHAPE, Cause.EVALUATION),
    evidence={
        "share": Measure("zeros in the last 20 points", Unit.SHARE),
        "start": Measure("at the start", Unit.SAME),
        "peak": Measure("highest", Unit.SAME),
        "loss_level": Measure("loss now", Unit.NONE),
        "loss_start": Measure("loss at the start", Unit.NONE),
        **logged(Signal.LEARNING_RATE),
    },
    variants={
        "zero": Variant(
            "the gradient norm is exactly 0 in {share:.0%} of the last points; it began at {start:.3g}",
            ("O21", "O3", "O4", "O2", "O25", "GV"),
            (CRITICAL,),
        )
    },
)
def zero_gradient(
    points: pl.LazyFrame,
    *,
    zero_share: Annotated[float, "share of zeros among the last 20 points that is too much"] = 0.9,
) -> pl.LazyFrame:
    peak = pl.col("peak")
    start = pl.col("start")
    measured = points.with_columns(
        is_zero=(pl.col(VALUE) == 0).cast(pl.Float64),
        no_spread=(pl.col(Signal.REWARD_STD) <= ZERO_STD).cast(pl.Float64),
    ).with_columns(
        share=recent_mean("is_zero", WINDOW_POINTS, at_least=MIN_POINTS_AT_END),
        start=start_median(VALUE, WINDOW_POINTS),
        peak=seen_max(VALUE, WINDOW_POINTS, 2 * WINDOW_POINTS),
        no_advantage=pl.coalesce(Signal.FRAC_REWARD_ZERO_STD, "no_spread")
        .rolling_mean(WINDOW_POINTS, min_samples=1)
        .over(SERIES),
        **now_and_then(Signal.LOSS, LOSS_POINTS, start=LOSS_POINTS, at_least=1, of="loss_"),
    )
    gone = pl.col("share") >= zero_share - ROUNDING
    return verdicts(
        measured,
        judged={
            SkipReason.FEW_POINTS: has_points(WINDOW_POINTS)
            | (pl.col(ENDED) & has_points(MIN_POINTS_AT_END)),
            SkipReason.ZERO_RATE: pl.col(Signal.LEARNING_RATE).fill_null(1) > ZERO_RATE,
            SkipReason.EXPLAINED: ~_is_harmless().fill_null(False),
        },
        found={"zero": gone & ((peak == 0) | (start > 0))},
        below=pl.lit(NOTHING),
    )


def _is_harmless() -> pl.Expr:
    """Return whether there is nothing to learn, nothing left to learn, or a log that rounds small norms."""
    loss = pl.col("loss_level")
    loss_start = pl.col("loss_start")
    without_advantage = pl.col("no_advantage") > MAX_GROUPS_WITHOUT_ADVANTAGE
    solved = (loss == 0) & (loss_start > 0)
    rounded = (pl.col("peak") < ROUNDED_NORM) & (loss < FALLEN_LOSS_FRACTION * loss_start)
    return without_advantage | solved | rounded
