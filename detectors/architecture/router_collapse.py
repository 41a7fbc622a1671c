"""The router of a mixture of experts sends more and more tokens to few of them.

## What it catches
A median balancing loss over the last 20 points of one and a half times its lowest level so far. A median
violation, the load of the fullest expert over the mean load less 1, that is twice its lowest level and has
risen by 1. Twice the balancing loss, or a violation that has risen by 3, is critical.

## Why it matters
Whoever gets tokens learns, and gets more of them. The experts that get none do not learn any more: the model
is as good as a smaller one and pays for the larger one, tokens beyond an expert's capacity are dropped, and
the rank with the full expert holds up all others.

## What to do
Raise the weight of the balancing loss (`router_aux_loss_coef`, `moe_aux_loss_coeff`; 0.01 is usual) or the
rate of the bias (0.001), check that the loss is added to the total, compute the router in float32, and
balance over the whole batch rather than over single micro-batches.

## When it is wrong
Pretrained experts are specialised: a fine-tuning on one subject may load few of them by right. Units differ
between libraries, so only growth above the run's own best counts, and a router that was never balanced is not
seen.

## Source
Catalogue N-router-collapse. The balancing loss is smallest where all experts get alike, 1 in Megatron and the
number of experts per token in transformers, and the number of experts times that where one gets all
(arXiv:2101.03961). The violation is that of arXiv:2408.15664, where balanced runs stay below 1.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, WARNING, Cause, History, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, is_of, recent_median, seen_min
from sentinel.detectors.verdict import SkipReason, verdicts

LEVEL_POINTS = 20  # points of a level
HISTORY_POINTS = 500  # points among whose levels the lowest is sought


@detector(
    judges=(Signal.MOE_AUXILIARY_LOSS, Signal.MOE_MAX_VIOLATION),
    history=History(recent=LEVEL_POINTS + HISTORY_POINTS, head=2 * LEVEL_POINTS),
    cause=Cause.LOSS_SHAPE,
    evidence={
        "level": Measure("median of the last 20 points", Unit.SAME),
        "lowest": Measure("lowest level so far", Unit.SAME),
    },
    variants={
        "unbalanced": Variant(
            "the balancing loss of the experts rose from {lowest:.3g} to {level:.3g}: few of them get most "
            "tokens",
            ("N-router-collapse", "N-dead-experts", "N-expert-norm"),
            (WARNING, CRITICAL),
        ),
        "overloaded": Variant(
            "the fullest expert gets {level:.2g} mean loads too much, {lowest:.2g} at best",
            ("N-router-collapse", "N-dead-experts", "N-expert-norm"),
            (WARNING, CRITICAL),
        ),
    },
)
def router_collapse(
    points: pl.LazyFrame,
    *,
    growth: Annotated[float, "multiple of its lowest level that a balancing loss may reach"] = 1.5,
    critical_growth: Annotated[
        float, "multiple of its lowest level beyond which the router has collapsed"
    ] = 2.0,
    violation: Annotated[float, "how far the load of the fullest expert may rise, in mean loads"] = 1.0,
    critical_violation: Annotated[float, "such a rise at which the router has collapsed"] = 3.0,
) -> pl.LazyFrame:
    level = pl.col("level")
    lowest = pl.col("lowest")
    loss = is_of(Signal.MOE_AUXILIARY_LOSS)
    measured = points.with_columns(level=recent_median(VALUE, LEVEL_POINTS)).with_columns(
        lowest=seen_min("level", 2 * LEVEL_POINTS, HISTORY_POINTS)
    )
    fuller = (level > 2 * lowest) & (level > lowest + violation)
    return verdicts(
        measured,
        judged={SkipReason.FEW_POINTS: has_points(2 * LEVEL_POINTS), SkipReason.RANGE: lowest > 0},
        found={"unbalanced": loss & (level > growth * lowest), "overloaded": ~loss & fuller},
        severities={
            CRITICAL: pl.when(loss)
            .then(level > critical_growth * lowest)
            .otherwise(level > lowest + critical_violation)
        },
        above=pl.when(loss).then(growth**0.5 * lowest).otherwise(lowest + violation / 2),
    )
