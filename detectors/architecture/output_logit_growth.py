"""The logits of the output drift upwards without end, and their precision goes with it.

## What it catches
A median over the last 20 points of the largest logit, or of log Z, above 100 that is twice the median of the
first 20 and still higher than 100 points ago. Above 1,000 it is critical. It is over once it stands below
100, or no longer rises.

## Why it matters
The softmax takes no notice of what all logits have in common, so nothing in the loss keeps them small. In
bfloat16 numbers beyond 64 lie half a unit apart, which changes a probability by a fifth or more. Later the
loss spikes, or becomes NaN.

## What to do
Add a z-loss of 1e-4, or cap the logits. Compute logits and their softmax in float32. Give the head less
learning rate or more weight decay.

## When it is wrong
A classifier without weight decay that learns its samples by heart lets its logits grow, more slowly from
point to point. A loss with a fixed large scale in front of its logits begins above 100; only growth counts.

## Source
Catalogue L6 and A-nan-logsoftmax. PaLM holds log Z near 0 by a z-loss of 1e-4 (arXiv:2204.02311).
arXiv:2309.14322 shows how output logits diverge without.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.architecture.logits import EARLIER_POINTS, LEVEL_POINTS, LEVELS, grows, with_levels
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, is_of
from sentinel.detectors.verdict import SkipReason, verdicts


@detector(
    judges=(Signal.MAX_OUTPUT_LOGIT, Signal.LOG_PARTITION),
    history=History(recent=LEVEL_POINTS + EARLIER_POINTS, head=LEVEL_POINTS),
    maturity=Maturity.PREVIEW,
    cause=Cause.GRADIENT_SIZE,
    evidence=LEVELS,
    variants={
        "largest": Variant(
            "the largest logit of the output grew from {start:.3g} to {level:.3g} and goes on growing",
            ("A-nan-logsoftmax", "L6"),
            (WARNING, CRITICAL),
        ),
        "log-z": Variant(
            "log Z of the output grew from {start:.3g} to {level:.3g} and goes on growing",
            ("L6", "A-nan-logsoftmax"),
            (WARNING, CRITICAL),
        ),
    },
)
def output_logit_growth(
    points: pl.LazyFrame,
    *,
    bound: Annotated[float, "largest logit, or log Z, that is healthy"] = 100.0,
    critical_bound: Annotated[float, "logit above which an overflow is near"] = 1000.0,
    growth: Annotated[float, "multiple of the first level that counts as growth"] = 2.0,
) -> pl.LazyFrame:
    grown = grows(bound, growth)
    return verdicts(
        with_levels(points),
        judged={SkipReason.FEW_POINTS: has_points(2 * LEVEL_POINTS)},
        found={
            "largest": is_of(Signal.MAX_OUTPUT_LOGIT) & grown,
            "log-z": is_of(Signal.LOG_PARTITION) & grown,
        },
        severities={CRITICAL: pl.col("level") > critical_bound},
        above=pl.lit(bound),
    )
