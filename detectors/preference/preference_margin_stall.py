"""Preference training does not tell the chosen answer from the rejected one.

## What it catches
Reward margins of exactly 0 at the last ten points or more, although the learning rate no longer rises.
Margins that are still all below 0.01 after twenty points, or below 0.05 after a hundred, while the loss rests
at ln 2, which is what guessing costs. And a margin that is clearly negative while fewer than 45 % of the
pairs are ranked as labelled.

## Why it matters
In DPO and its kin the margin is what is trained. The first one is 0, because the policy still is the
reference; the first update that moves a weight ends that. If it does not grow by then the policy is still the
reference, and the run buys nothing. If it grows the wrong way the policy learns what was rejected.

## What to do
Where the margin is exactly 0, no weight has moved: look whether the adapter was loaded frozen, is the
reference itself, or is absent from the optimizer. Else look first at the learning rate: about 1e-6 for full
fine-tuning and 1e-5 for LoRA, at a `beta` of 0.1. Then whether any weight is trained. Print one batch as the
trainer sees it: chosen and rejected must differ after truncation and the chat template, and must not be
swapped.

## When it is wrong
A warm-up is waited for: nothing is said while the learning rate still rises. A margin of 0 beside pairs that
are mostly ranked as labelled is a small one that was rounded. A tiny `beta` makes all margins small. Losses
that do not start at ln 2 (ORPO, SimPO, IPO) are judged for swapped labels only.

## Source
Catalogue L9, L8, O21. The scatter of margins grows with the distance from the reference, so that of a policy
that does not move is tiny as well. In public and own runs that learn, the margin passed 0.05 within
twenty points.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit, logged
from sentinel.detectors.schema import INDEX, SERIES, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, recent_max, recent_median, resting
from sentinel.detectors.verdict import SkipReason, verdicts

LEVEL_POINTS = 20  # points of the present level
MIN_EXACT_POINTS = 10  # points with a margin of exactly 0 that suffice
RANKED = 0.6  # share of the pairs ranked as labelled, above which a margin of 0 is one that was rounded
LATER_POINTS = 100  # points after which a small margin is not enough
GUESSING_NATS = 0.693147  # ln 2, the loss of guessing
AT_GUESSING_NATS = 0.01  # distance from guessing within which a loss is at it
AROUND_GUESSING_NATS = 0.05  # the same later in the run
MIN_RATE_GROWTH = 1.001  # times the learning rate before: less is rounding


@detector(
    judges=(Signal.PREFERENCE_MARGIN,),
    uses=(Signal.PREFERENCE_LOSS, Signal.PREFERENCE_ACCURACY, Signal.LEARNING_RATE),
    history=History(recent=2 * LEVEL_POINTS),
    maturity=Maturity.STABLE,
    cause=Cause.LOSS_SHAPE,
    evidence={
        "level": Measure("median margin", Unit.SAME),
        "largest": Measure("largest margin", Unit.SAME),
        "loss_level": Measure("loss now", Unit.NONE),
        "accuracy": Measure("pairs ranked as labelled", Unit.SHARE),
        "points": Measure("judged over", Unit.POINTS),
        "zeros": Measure("margins of exactly 0", Unit.POINTS),
        **logged(Signal.LEARNING_RATE),
    },
    variants={
        "untouched": Variant(
            "the reward margin was exactly 0 at the last {zeros} points: the policy still is the reference",
            ("O21", "O2", "O3", "O7", "L8"),
        ),
        "stalled": Variant(
            "after {points} points the reward margin is still {level:.2g} and the loss "
            "{loss_level:.4f}, as by guessing",
            ("L9", "O7", "O21", "L8"),
        ),
        "reversed": Variant(
            "the rejected answer is preferred: the reward margin is {level:.3g} and {accuracy:.0%} of the "
            "pairs "
            "are ranked as labelled",
            ("L8", "L9"),
            (CRITICAL,),
        ),
    },
)
def preference_margin_stall(
    points: pl.LazyFrame,
    *,
    no_margin: Annotated[float, "below this after 20 points there is no margin"] = 0.01,
    small_margin: Annotated[float, "below this after 100 points there is no margin"] = 0.05,
    swapped: Annotated[float, "share of pairs ranked as labelled, below which labels are swapped"] = 0.45,
) -> pl.LazyFrame:
    level = pl.col("level")
    index = pl.col(INDEX)
    rate = pl.col(Signal.LEARNING_RATE)
    measured = points.with_columns(
        level=recent_median(VALUE, LEVEL_POINTS),
        largest=recent_max(pl.col(VALUE).abs(), LEVEL_POINTS),
        loss_level=recent_median(Signal.PREFERENCE_LOSS, LEVEL_POINTS, at_least=LEVEL_POINTS // 2),
        accuracy=recent_median(Signal.PREFERENCE_ACCURACY, LEVEL_POINTS, at_least=LEVEL_POINTS // 2),
        ranked=recent_median(Signal.PREFERENCE_ACCURACY, MIN_EXACT_POINTS, at_least=1),
        points=index + 1,
        zeros=resting(pl.col(VALUE), 2 * LEVEL_POINTS),
    )
    guesses = (pl.col("loss_level") / GUESSING_NATS - 1).abs()
    still_none = (pl.col("largest") < no_margin) & (guesses < AT_GUESSING_NATS)
    still_small = (
        (pl.col("largest") < small_margin) & (guesses < AROUND_GUESSING_NATS) & (index >= LATER_POINTS - 1)
    )
    learns = (pl.col("ranked") > RANKED).fill_null(False)
    untouched = (pl.col(VALUE) == 0) & (pl.col("zeros") >= MIN_EXACT_POINTS) & ~learns
    warms_up = (rate > MIN_RATE_GROWTH * rate.shift(LEVEL_POINTS // 2).over(SERIES)).fill_null(False)
    wrong_way = (level < -small_margin) & (pl.col("accuracy") < swapped)
    return verdicts(
        measured,
        judged={SkipReason.FEW_POINTS: has_points(MIN_EXACT_POINTS), SkipReason.WARM_UP: ~warms_up},
        found={"reversed": wrong_way, "untouched": untouched, "stalled": still_none | still_small},
    )
