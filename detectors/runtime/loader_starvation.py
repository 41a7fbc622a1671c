"""The device waits for data during most of each step.

## What it catches
A median share of the step spent waiting for data above 0.5 over the last 20 points. It is over below 0.4.
Where only the seconds of the wait are logged, their share of the time of a step counts.

## Why it matters
Nothing is wrong with the model, but more than half of the bill is for a device that does nothing.

## What to do
Raise the number of loader workers up to the number of cores, decode and resize once instead of in each epoch,
keep the data on a local disk, and look whether one worker is much slower than the others.

## When it is wrong
The wait of the first steps, in which workers start, does not count. A small model on a fast device may wait
for any loader; then the wait is cheap, and the finding only informs.

## Source
Catalogue N-loader-starved and DP5. torchtitan and OLMo-core log the share, Detectron2 the
seconds. Most public runs wait for less than a fifth of a step; those that waited for more than half waited
for nine tenths.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import INFO, Cause, History, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, is_of, recent_median
from sentinel.detectors.verdict import SkipReason, verdicts

LEVEL_POINTS = 20  # points of the present level


@detector(
    judges=(Signal.DATA_SHARE, Signal.DATA_TIME),
    uses=(Signal.STEP_TIME,),
    history=History(recent=LEVEL_POINTS),
    every=5,
    cause=Cause.SPEED,
    evidence={"share": Measure("of a step, waiting for data", Unit.SHARE)},
    variants={
        "starved": Variant(
            "the device waits for data during {share:.0%} of a step", ("N-loader-starved", "DP5"), (INFO,)
        )
    },
)
def loader_starvation(
    points: pl.LazyFrame,
    *,
    starved: Annotated[float, "share of a step that is too much"] = 0.5,
    recovered: Annotated[float, "share of a step below which it is over"] = 0.4,
) -> pl.LazyFrame:
    share = pl.col("share")
    seconds = recent_median(Signal.STEP_TIME, LEVEL_POINTS, at_least=1)
    step = pl.when(is_of(Signal.DATA_SHARE)).then(1.0).otherwise(seconds)
    measured = points.with_columns(length=step, share=recent_median(VALUE, LEVEL_POINTS) / step)
    return verdicts(
        measured,
        judged={
            SkipReason.FEW_POINTS: has_points(2 * LEVEL_POINTS),
            SkipReason.NOT_COMPARABLE: share.is_not_null(),
            SkipReason.RANGE: share.is_between(0, 1),
        },
        found={"starved": share > starved},
        lasts=share > recovered,
        above=recovered * pl.col("length"),
    )
