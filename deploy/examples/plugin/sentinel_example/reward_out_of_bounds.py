"""The reward leaves the bounds that our environment promises.

## What it catches
A mean reward below `least` or above `most`.

## Why it matters
The environment gives rewards between -1 and 1, so that runs can be compared. A reward elsewhere is on another
scale, and neither the learning rate nor the weight of the KL term fits it.

## What to do
Print the reward of one fixed answer. If it changed, look for a wrapper that is gone or for a new bonus.

## When it is wrong
An environment with other bounds has a reward elsewhere from its first step on. Set `least` and `most` for it.

## Source
The documentation of the environment, which promises the bounds.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, Cause, History, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.verdict import SkipReason, verdicts

HISTORY = History(recent=1)


@detector(
    judges=(Signal.REWARD,),
    history=HISTORY,
    cause=Cause.REWARD,
    evidence={"bound": Measure("bound of the environment", Unit.SAME)},
    variants={
        "above": Variant("reward is {value:.4g}, above {bound:.4g}", ("EX1", "R1"), (CRITICAL,)),
        "below": Variant("reward is {value:.4g}, below {bound:.4g}", ("EX1",)),
    },
)
def reward_out_of_bounds(
    points: pl.LazyFrame,
    *,
    least: Annotated[float, "lowest mean reward that the environment can give"] = -1.0,
    most: Annotated[float, "highest mean reward that the environment can give"] = 1.0,
) -> pl.LazyFrame:
    """See the module's page."""
    is_above = pl.col(VALUE) > most
    is_below = pl.col(VALUE) < least
    return verdicts(
        points.with_columns(bound=pl.when(is_below).then(least).otherwise(most)),
        judged={SkipReason.FEW_POINTS: pl.col(VALUE).is_not_null()},
        found={"above": is_above, "below": is_below},
        above=pl.lit(most),
        below=pl.lit(least),
    )
