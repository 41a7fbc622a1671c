"""Every step is clipped to one small norm, so the threshold sets the size of all steps.

## What it catches
A logged gradient norm that is the same small number, below 0.1, at 95 % of the last hundred points, or of
at least 50: it was logged after clipping, and each step was clipped. Where the settings name the threshold,
a norm that rests on it, or that is ten times as large at 99 % of a hundred points, is info.

## Why it matters
Clipping is meant for the rare step that is too large. If it meets every step, gradients keep their
direction and lose their size: with SGD the learning rate is in effect the threshold times smaller, and
training is slow for no visible reason.

## What to do
Log the norm before clipping, which is what `clip_grad_norm_` returns, and set `max_grad_norm` to about
the 90th percentile of it. If that is far above 1, ask why: a sum over the batch instead of a mean, or
gradients that are still scaled for fp16.

## When it is wrong
Adam divides by the gradients' own size, so constant clipping often does no harm; a threshold of 1 that
is always reached is usual for language models. That is why only a very small threshold warns.

## Source
Catalogue G10 and G7; a threshold of 0.01 is named as too low, and one below 0.1 as suspect.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import INFO, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import VALUE
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import ROUNDING, recent_max, recent_mean, recent_median
from sentinel.detectors.verdict import SkipReason, verdicts

WINDOW_POINTS = 100  # last points that are judged
MIN_POINTS = 50  # of those that suffice
EQUAL_FRACTION = 1e-3  # share of the norm by which equal ones may differ
NEAR_FRACTION = 10 * EQUAL_FRACTION  # fraction of the threshold: what clips at it rests there
MIN_CLIPPED_FRACTION = 0.99  # of the norms, those above the threshold


@detector(
    judges=(Signal.GRAD_NORM,),
    settings=(Setting.MAX_GRAD_NORM,),
    history=History(recent=2 * WINDOW_POINTS),
    maturity=Maturity.STABLE,
    cause=Cause.GRADIENT_SIZE,
    evidence={
        "share": Measure("points at the largest norm", Unit.SHARE),
        "top": Measure("largest norm", Unit.SAME),
        "level": Measure("median norm", Unit.SAME),
        "threshold": Measure("threshold in the settings", Unit.SAME),
        "share_above": Measure("points far above the threshold", Unit.SHARE),
    },
    variants={
        "pinned": Variant(
            "every step is clipped: the gradient norm is {top:.3g} at {share:.0%} of the last {reach} points",
            ("G10", "G7", "O7"),
            (INFO, WARNING),
        ),
        "far-above": Variant(
            "every step is clipped to a small part of its size: the gradient norm is {level:.3g}, the"
            " threshold {threshold:.3g}",
            ("G10", "G1", "G7"),
            (INFO,),
        ),
    },
)
def saturated_gradient_clipping(
    points: pl.LazyFrame,
    *,
    tight: Annotated[float, "threshold below which clipping every step is too tight"] = 0.1,
    pinned_share: Annotated[float, "share of the norms that must be equal to tell clipping"] = 0.95,
    reach: Annotated[int, "points that are judged together, at most 100"] = WINDOW_POINTS,
    above: Annotated[float, "multiple of the threshold that counts as far above it"] = 10.0,
) -> pl.LazyFrame:
    top = pl.col("top")
    threshold = pl.col("threshold")
    reach = min(reach, WINDOW_POINTS)
    measured = _with_shares(points, reach, above)
    at_threshold = (top / threshold - 1).abs() < NEAR_FRACTION
    # Of norms that only grow, each is the largest so far.
    rests = (pl.col("share") >= pinned_share - ROUNDING) & (pl.col("level") >= (1 - EQUAL_FRACTION) * top)
    pinned = rests & (top > 0) & ((top < tight) | at_threshold)
    far_above = (pl.col("share_above") >= MIN_CLIPPED_FRACTION - ROUNDING) & (threshold > 0)
    return verdicts(
        measured,
        judged={SkipReason.FEW_POINTS: pl.col("share").is_not_null()},
        found={"pinned": pinned, "far-above": far_above},
        severities={WARNING: top < tight},
    )


def _with_shares(points: pl.LazyFrame, reach: int, above: float) -> pl.LazyFrame:
    """Return the largest norm, and which shares of the last norms equal it or lie far above the threshold."""
    value = pl.col(VALUE)
    top = pl.col("top")
    threshold = pl.col("threshold")
    return (
        points.with_columns(top=recent_max(value, reach, at_least=1), threshold=Setting.MAX_GRAD_NORM)
        .with_columns(
            is_top=(value >= (1 - EQUAL_FRACTION) * top).cast(pl.Float64),
            is_above=(value > above * threshold).cast(pl.Float64),
        )
        .with_columns(
            share=recent_mean("is_top", reach, at_least=MIN_POINTS),
            share_above=recent_mean("is_above", reach, at_least=reach),
            level=recent_median(VALUE, reach, at_least=MIN_POINTS),
        )
    )
