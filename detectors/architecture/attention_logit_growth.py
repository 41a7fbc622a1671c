"""The largest attention logit grows without end: a softmax over such numbers picks one token.

## What it catches
A median over the last 20 points above 100 that is twice the median of the first 20 and still higher than 100
points ago. Above 1,000 it is critical. It is over once it stands below 100, or no longer rises.

## Why it matters
Nothing in the loss keeps queries and keys small. The loss looks healthy for thousands of steps, then it
spikes or becomes NaN, the sooner the lower the precision: bfloat16 keeps steps of half a unit at 100.

## What to do
Clip the query and key weights of the heads that pass a bound (QK-Clip; Megatron's `qk_clip`), or normalise
queries and keys. Give them less learning rate or more weight decay in the meantime. If the loss has spiked
already, go back to a checkpoint from before.

## When it is wrong
A model that caps its logits by a tanh, or is pretrained with large ones, stands above 100 for good; only
growth counts. A largest value over all layers grows with the batch.

## Source
Catalogue N-attention-logits. Kimi K2 clipped at 100 and saw logits beyond 1,000 without (arXiv:2507.20534).
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, WARNING, Cause, History, Variant, detector
from sentinel.detectors.architecture.logits import EARLIER_POINTS, LEVEL_POINTS, LEVELS, grows, with_levels
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points
from sentinel.detectors.verdict import SkipReason, verdicts


@detector(
    judges=(Signal.MAX_ATTENTION_LOGIT,),
    history=History(recent=LEVEL_POINTS + EARLIER_POINTS, head=LEVEL_POINTS),
    cause=Cause.GRADIENT_SIZE,
    evidence=LEVELS,
    variants={
        "grows": Variant(
            "the largest attention logit grew from {start:.3g} to {level:.3g} and goes on growing",
            ("N-attention-logits", "N-muon-scale"),
            (WARNING, CRITICAL),
        )
    },
)
def attention_logit_growth(
    points: pl.LazyFrame,
    *,
    bound: Annotated[float, "largest attention logit that is healthy"] = 100.0,
    critical_bound: Annotated[float, "attention logit above which a collapse is near"] = 1000.0,
    growth: Annotated[float, "multiple of the first level that counts as growth"] = 2.0,
) -> pl.LazyFrame:
    return verdicts(
        with_levels(points),
        judged={SkipReason.FEW_POINTS: has_points(2 * LEVEL_POINTS)},
        found={"grows": grows(bound, growth)},
        severities={CRITICAL: pl.col("level") > critical_bound},
        above=pl.lit(bound),
    )
