"""The optimizer's steps are far too small, or too large, for the weights that they move.

## What it catches
A median ratio of step norm to weight norm over twenty points that is below 10^-5 while it is near its own
highest level and does not rise, or above 10^-1 for fifty points.

## Why it matters
About 10^-3 is what a healthy optimizer step amounts to. A hundred times less and a whole run moves the
weights by a few percent: the loss looks like noise about its start. A hundred times more and each step
replaces a tenth of the weights.

## What to do
Change the learning rate of that group by the factor that is missing. If only one group is off, look for
a group of its own (frozen parts, layer-wise decay) or for an initialisation whose scale does not fit.

## When it is wrong
The ratio follows the learning rate. A ratio that is half again as high as that of the first ten points
rises in a warm-up and is not judged as too small. Nor is one in the tail of a schedule, nor one of a
resumed run, whose highest level is not known. Weights that begin at zero (LoRA's B, biases, new scales)
have huge ratios at first; fifty points are waited for. Fine-tuning by reinforcement learning at a rate of
10^-7 may mean to step that little. The healthy runs that it was seen on were trained for it.

## Source
Catalogue O22: 10^-3 is the usual aim, and a hundred times off on either side is out of band.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import (
    has_points,
    of_buckets,
    recent_max,
    recent_median,
    start_median,
    was_resumed,
)
from sentinel.detectors.verdict import SkipReason, verdicts

LEVEL_POINTS = 20  # points of the present level
EARLY_POINTS = 10  # first points, above whose median the ratio of a warm-up rises
MIN_WARM_UP_RISE = 1.5  # times that median
WARM_UP_POINTS = 30  # points from which on a warm-up has risen that far
SETTLED_POINTS = 50  # points after which weights that began at zero no longer explain a large ratio
ANNEALED_FRACTION = 0.1  # of the peak, below which a schedule has lowered the ratio


@detector(
    judges=(Signal.UPDATE_RATIO,),
    history=History(recent=2 * SETTLED_POINTS, head=EARLY_POINTS, coarse=True),
    maturity=Maturity.STABLE,
    cause=Cause.GRADIENT_SIZE,
    inhibits=(Cause.LOSS_SHAPE,),  # steps that small leave the loss where it is
    evidence={
        "level": Measure("median of the last 20 points", Unit.SAME),
        "peak": Measure("highest so far", Unit.SAME),
    },
    variants={
        "small": Variant(
            "optimizer steps move these weights by {level:.2g} of their norm, next to nothing; about "
            "1e-3 is usual",
            ("O22", "O7"),
        ),
        "large": Variant(
            "optimizer steps move these weights by {level:.2g} of their norm, above {most:g}; about "
            "1e-3 is usual",
            ("O22", "GE"),
        ),
    },
)
def update_ratio_out_of_band(
    points: pl.LazyFrame,
    *,
    least: Annotated[float, "ratio below which steps do next to nothing"] = 1e-5,
    most: Annotated[float, "ratio above which steps are too large"] = 0.1,
) -> pl.LazyFrame:
    level = pl.col("level")
    highest = of_buckets(pl.col("coarse_mean").list.max())
    peak = pl.max_horizontal(recent_max(pl.col("level"), SETTLED_POINTS, at_least=1), highest)
    measured = points.with_columns(
        level=recent_median(VALUE, LEVEL_POINTS), early=start_median(VALUE, EARLY_POINTS)
    )
    rests = (level > ANNEALED_FRACTION * pl.col("peak")) & (level < MIN_WARM_UP_RISE * pl.col("early"))
    return verdicts(
        measured.with_columns(peak=peak, resumed=was_resumed()),
        judged={SkipReason.FEW_POINTS: has_points(WARM_UP_POINTS)},
        found={
            "small": (level < least) & rests & ~pl.col("resumed").fill_null(False),
            "large": (level > most) & has_points(SETTLED_POINTS),
        },
        above=pl.when(level > most).then(most),
    )
