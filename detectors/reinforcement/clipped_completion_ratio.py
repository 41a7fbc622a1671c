"""Too many completions run into the length cap.

## What it catches
A share of cut-off completions above 0.3, or above 0.8, over the last twenty points, by more than its
own scatter. The first ten steps do not count, and a share that was as high from the beginning has a
hundred steps to fall, unless nearly every completion is cut off and it does not fall at all. One that fell
far while the reward rose is info: completions learn to end. It is over below four fifths of the lower
threshold.

## Why it matters
A completion that is cut off has no end and often no answer: its reward says little, or teaches the
policy to ramble, and the longest generations are the ones paid for in vain.

## What to do
High from the start: look whether completions ever end; check that the end-of-sequence token is the one
that the chat template uses and is not masked as padding, then raise the cap. Grown later: read long
completions. If they reason, raise `max_completion_length`; if they repeat themselves, or the reward
grows with length, add a length penalty or mask truncated completions.

## When it is wrong
A base model that takes more than a hundred steps to learn to stop. Long reasoning under a short cap can
be meant.

## Source
Catalogue A-clipped-ratio (healthy below 0.3, red above 0.8), L3 (near 1 from the first step),
A-mean-length and R1 (length that grows into the cap). TRL logs `completions/clipped_ratio` as the share
of completions that do not end in an end-of-sequence token.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, INFO, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import SERIES, STEP, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import (
    ROUNDING,
    has_points,
    recent_mean,
    recent_median,
    recent_quantile,
    start_median,
)
from sentinel.detectors.verdict import SkipReason, verdicts

NOW = 20  # points of the present level, and how few of them will do
LEAST = 10  # also of the start
SURE = 3.5  # standard errors by which the level must exceed a threshold
LASTS = 0.8  # of a threshold: a level that has fallen below it is over
RISEN = 0.15  # above the start: what rose by more does not settle; below it: what fell by more does
STEADY = 0.05  # below the start, at most: what fell by no more never stops
HIGH = 0.75  # quantile of the rewards before: noise of one point does not reach it


@detector(
    judges=(Signal.CLIPPED_COMPLETION_RATIO,),
    uses=(Signal.REWARD,),
    history=History(recent=NOW + LEAST, head=LEAST),
    maturity=Maturity.STABLE,
    cause=Cause.POLICY,
    inhibits=(Cause.REWARD,),  # answers that are cut off before their end all earn the same
    evidence={
        "level": Measure("mean of the last 20 points", Unit.SAME),
        "spread": Measure("standard deviation of the points", Unit.SAME),
        "counted": Measure("judged over", Unit.POINTS),
        "start": Measure("at the start", Unit.SAME),
        "reward_gain": Measure("gain of the reward over what it was before", Unit.NONE),
    },
    variants={
        "never_stops": Variant(
            "{level:.0%} of completions are cut off at the length cap, as from the start ({start:.0%})",
            ("A-clipped-ratio", "L3"),
            (WARNING, CRITICAL),
        ),
        "capped": Variant(
            "{level:.0%} of completions are cut off at the length cap",
            ("A-clipped-ratio", "A-mean-length", "R1"),
            (WARNING, CRITICAL, INFO),
        ),
    },
)
def clipped_completion_ratio(
    points: pl.LazyFrame,
    *,
    warning_ratio: Annotated[float, "share of cut-off completions that is too large"] = 0.3,
    critical_ratio: Annotated[float, "share of cut-off completions that leaves little to learn from"] = 0.8,
    skip_steps: Annotated[int, "first steps that do not count"] = 10,
    settle_steps: Annotated[int, "steps in which a high share may fall to what it should be"] = 100,
) -> pl.LazyFrame:
    """Give a verdict on the level less some standard errors; below a part of a threshold, it is over."""
    level = pl.col("level")
    start = pl.col("start")
    surely = level - SURE * pl.col("spread") / pl.col("counted").sqrt()
    never_stops = (start >= critical_ratio) & (level >= start - STEADY)
    may_settle = (pl.col(STEP) < settle_steps) & (level < start + RISEN) & ~never_stops
    may_settle |= _learns_to_stop().fill_null(False)
    capped = surely > warning_ratio + ROUNDING
    return verdicts(
        _measured(points, skip_steps),
        judged={SkipReason.FEW_POINTS: has_points(LEAST), SkipReason.EARLY: level.is_not_null()},
        found={"never_stops": capped & never_stops, "capped": capped},
        lasts=level > LASTS * warning_ratio,
        above=pl.lit(LASTS * warning_ratio),
        severities={INFO: may_settle, CRITICAL: ~may_settle & (surely > critical_ratio + ROUNDING)},
    )


def _learns_to_stop() -> pl.Expr:
    """Return whether the share stands far below its start, and the reward above its own."""
    return (pl.col("level") < pl.col("start") - RISEN) & (pl.col("reward_now") > pl.col("reward_start"))


def _measured(points: pl.LazyFrame, skip_steps: int) -> pl.LazyFrame:
    """Return the share of cut-off completions now and at the start, its scatter, and the rewards."""
    return (
        points.with_columns(share=pl.when(pl.col(STEP) >= skip_steps).then(pl.col(VALUE).clip(0, 1)))
        .with_columns(counted=pl.col("share").is_not_null().cast(pl.Float64))
        .with_columns(
            level=recent_mean("share", NOW, at_least=LEAST),
            spread=pl.col("share").rolling_std(NOW, min_samples=LEAST).over(SERIES),
            counted=pl.col("counted").rolling_sum(NOW, min_samples=1).over(SERIES),
            start=start_median(VALUE, LEAST),
            reward_now=recent_median(Signal.REWARD, LEAST, at_least=1),
            reward_start=start_median(Signal.REWARD, LEAST),
        )
        .with_columns(
            reward_gain=pl.col("reward_now")
            - recent_quantile(HIGH, Signal.REWARD, NOW, skip=LEAST, at_least=LEAST // 2)
        )
    )
