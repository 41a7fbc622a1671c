"""The scale of the rewards changes by its own size, and the gradients change with it.

## What it catches
A standard deviation of the reward that varies by more than its mean over 50 points, beside a gradient norm
that follows it (a rank correlation above 0.6).

## Why it matters
Advantages that are not normalised scale the gradient. A batch with large rewards then takes a step that is
many times larger than the others, and undoes what they learned.

## What to do
Normalise the advantages (`scale_rewards="group"` in TRL, `normalize_advantage=True` in Stable-Baselines3),
or the rewards (`VecNormalize`). Clip single rewards and the gradient norm.

## When it is wrong
A sparse reward has no spread in most batches and much in some; that is the task and no fault where the
advantages are normalised.

## Source
Catalogue R3: a coefficient of variation above 1 over 50 points, and a correlation above 0.6 between the
logarithms; ranks take their place, because a spread may be 0.
"""

from functools import partial
from typing import Annotated

import numpy as np
import polars as pl

from sentinel.detectors.api import INFO, Cause, History, Variant, detector
from sentinel.detectors.evidence import Measure, Unit, logged
from sentinel.detectors.schema import VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import Floats, has_points, last_values, spearman, with_arrays
from sentinel.detectors.verdict import SkipReason, verdicts

REACH = 50  # points
EVERY = 5  # points between two verdicts


@detector(
    judges=(Signal.REWARD_STD,),
    needs=(Signal.GRAD_NORM,),
    history=History(recent=REACH),
    every=EVERY,
    cause=Cause.REWARD,
    evidence={
        "variation": Measure("standard deviation over mean", Unit.NONE),
        "correlation": Measure("rank correlation with the gradient norm", Unit.NONE),
        **logged(Signal.GRAD_NORM),
    },
    variants={
        "varies": Variant(
            "standard deviation of the reward varies by {variation:.2g} times its mean, "
            "and the gradient norm with it (correlation {correlation:.2f})",
            ("R3", "A-reward-std"),
            (INFO,),
        )
    },
)
def reward_scale_instability(
    points: pl.LazyFrame,
    *,
    most_variation: Annotated[float, "standard deviation over the mean that is too much"] = 1.0,
    least_correlation: Annotated[float, "rank correlation with the gradient norm"] = 0.6,
) -> pl.LazyFrame:
    compare = partial(_compare, least_variation=most_variation / 2)
    measured = with_arrays(points, ("variation", "correlation"), compare, every=EVERY, at_least=REACH)
    variation = pl.col("variation")
    correlation = pl.col("correlation")
    return verdicts(
        measured.fill_nan(None),
        judged={SkipReason.FEW_POINTS: has_points(REACH), SkipReason.RANGE: variation.is_not_null()},
        found={"varies": (variation > most_variation) & (correlation > least_correlation)},
        lasts=(variation > most_variation / 2) & (correlation > least_correlation / 2),
    )


def _compare(frame: pl.DataFrame, due: pl.DataFrame, least_variation: float) -> dict[str, Floats]:
    """Return how much the spread varies; where that is much, how the gradient norm follows it."""
    row = due["row"].to_numpy()
    spread, norm = (last_values(frame[name].to_numpy(), row, REACH) for name in (VALUE, Signal.GRAD_NORM))
    mean = spread.mean(axis=1)
    variation = np.where(mean > 0, spread.std(axis=1) / mean, np.nan)
    correlation = np.full(len(row), np.nan)
    varies = variation > least_variation
    if varies.any():
        correlation[varies] = spearman(spread[varies], norm[varies])
    return {"variation": variation, "correlation": correlation}
