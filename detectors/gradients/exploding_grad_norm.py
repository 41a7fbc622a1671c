"""The gradient norm has grown tenfold and the loss gets worse with it.

## What it catches
A median gradient norm over the last ten points that is ten times the median of the hundred points before
them, and half more than the norm that a tenth of those exceed. If the loss has risen above three quarters of
its earlier values at the same time, the run is `diverging`; otherwise the norm has only `grown`.

## Why it matters
Norms that grow together with the loss are how a divergence begins: each step lands further out than the
last one. Clipping bounds the step, not the direction, so a run may go on for a while without learning.

## What to do
Clip by norm between `backward()` and `step()`, at about the 90th percentile of the norms of a healthy
stretch. Halve the learning rate, or lengthen the warm-up. Find the batch at which it began, and go back to
a checkpoint from before it.

## When it is wrong
Norms may grow many times over in a run that learns well, above all in detectors and in models that
become sparse; the loss tells. Single spikes leave the medians alone. Where tasks with norms of different
sizes take turns, ten points in a row may be of the larger one, but so were many of the points before. The
level alone says nothing: sum-reduced losses and scaled gradients have norms in the thousands for ever.

## Source
Catalogue GE and G1. Healthy public runs logged norms from 0.02 to 10^6, so the run's own past is the
measure.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, INFO, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import now_and_then, recent_max, recent_quantile
from sentinel.detectors.strictness import Strictness
from sentinel.detectors.verdict import SkipReason, verdicts

LEVEL_POINTS = 10  # points of the present level
EARLIER_POINTS = 100  # points before those
MIN_EARLIER_POINTS = 20  # points of those that suffice
LOSS_QUANTILE = 0.75  # quantile of the losses before: noise of one point does not reach it
NORM_QUANTILE = 0.9  # quantile of the norms before
MIN_QUANTILE_RATIO = 1.5  # times that quantile: a tenfold growth in 60 points is 1.8


@detector(
    judges=(Signal.GRAD_NORM,),
    uses=(Signal.LOSS,),
    history=History(recent=LEVEL_POINTS + EARLIER_POINTS),
    maturity=Maturity.STABLE,
    cause=Cause.GRADIENT_SIZE,
    inhibits=(Cause.DIVERGENCE, Cause.LOSS_SHAPE),  # steps that large throw the loss out of its level
    evidence={
        "level": Measure("median of the last 10 points", Unit.SAME),
        "before": Measure("median of the 100 points before", Unit.SAME),
        "top": Measure("norm that a tenth of the 100 points before exceed", Unit.SAME),
        "peak": Measure("highest of the last 10 points", Unit.SAME),
        "loss_level": Measure("loss now", Unit.NONE),
        "loss_before": Measure("loss before", Unit.NONE),
        "loss_high": Measure("loss before, upper end of its noise", Unit.NONE),
    },
    variants={
        "diverging": Variant(
            "the gradient norm grew from {before:.3g} to {level:.3g}, and the loss from "
            "{loss_before:.4g} to {loss_level:.4g}",
            ("GE", "G1", "A-rl-grad-norm", "G5"),
            (CRITICAL,),
        ),
        "single": Variant(
            "the gradient norm reached {peak:.4g} at single points; its usual size is {before:.3g}",
            ("A-grad-norm", "GE", "A-sft-spikes", "G1", "A-rl-grad-norm"),
            (INFO,),
        ),
        "grown": Variant(
            "the gradient norm grew from {before:.3g} to {level:.3g}",
            ("GE", "A-rl-grad-norm", "G1", "G5"),
            (INFO,),
        ),
    },
    stricter=Strictness(larger=("growth", "calm")),
)
def exploding_grad_norm(
    points: pl.LazyFrame,
    *,
    growth: Annotated[float, "multiple of the earlier norm that counts as an explosion"] = 10.0,
    calm: Annotated[float, "multiple of the earlier norm below which it is over"] = 5.0,
    single: Annotated[float, "multiple of the earlier norm that is worth a note at a single point"] = 100.0,
) -> pl.LazyFrame:
    level = pl.col("level")
    before = pl.col("before")
    past = {"n": EARLIER_POINTS, "skip": LEVEL_POINTS, "at_least": MIN_EARLIER_POINTS}
    grown = (level > growth * before) & (before > 0) & (level > MIN_QUANTILE_RATIO * pl.col("top"))
    return verdicts(
        points.with_columns(
            **now_and_then(VALUE, LEVEL_POINTS, past=past),
            **now_and_then(Signal.LOSS, LEVEL_POINTS, past=past, at_least=LEVEL_POINTS // 2, of="loss_"),
            peak=recent_max(pl.col(VALUE), LEVEL_POINTS),
            top=recent_quantile(NORM_QUANTILE, VALUE, **past),
            loss_high=recent_quantile(LOSS_QUANTILE, Signal.LOSS, **past),
        ),
        judged={SkipReason.FEW_POINTS: before.is_not_null()},
        found={"diverging": grown & (pl.col("loss_level") > pl.col("loss_high")), "grown": grown}
        | {"single": (pl.col("peak") > single * before) & (before > 0)},
        lasts=level > calm * before,
        above=calm * before,
    )
