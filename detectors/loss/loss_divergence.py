"""The training loss has left its best level and stays far above it.

## What it catches
A loss whose recent points lie above its best level by more than 30 %, four in five of them, and by more than
15 standard errors of the level. Recent are the last 20 points. With fewer than 120 points they are the last
10, with fewer than 30 the last 5, and the rise is more than 50 % and more than 12 standard errors.

## Why it matters
A run that diverges rarely comes back by itself. What it learned is being lost step by step.

## What to do
Go back to a checkpoint before the onset. Lower the learning rate two- to fivefold, or lengthen the warm-up.
Clip the gradient norm at 1. Look at what changed at the onset: the learning rate after a resume, the data,
the sequence length.

## When it is wrong
A harder stage of a curriculum, another data set, longer sequences or a changed objective lift the loss
without a fault. Beside rewards or value losses the rule is silent, since there the loss follows the policy,
and below a hundredth of the start, where nothing is left to learn.

## Source
Catalogue L6, O19, O9, GE. Thresholds are measured (`FIGURES.md`). The standard error allows for neighbours
that are alike: it counts the noise of points that are two apart, and from 120 points on the scatter of the
level over 20 points. Levels of five points and the noise of neighbours alone rang ten times as often in runs
of 60 to 400 points with noise of 20 % and an autocorrelation of 0.6.
"""

from typing import Annotated

import polars as pl

from detectors.api import CRITICAL, WARNING, Cause, Maturity, Variant, detector
from detectors.levels import LEVELS, MANY, RISE, WINDOWS, with_rise
from detectors.schema import INDEX
from detectors.signals import Signal
from detectors.supervised import ELSE, is_learned, supervised
from detectors.verdict import HeldBack, verdicts

EARLIEST = 10  # points before anything is said


@detector(
    judges=(Signal.LOSS,),
    uses=ELSE,
    history=LEVELS,
    maturity=Maturity.STABLE,
    hold=5,
    cause=Cause.DIVERGENCE,
    # After a loss has diverged, neither its shape nor its gradients say how it learns.
    silences=(Cause.LOSS_SHAPE, Cause.EVALUATION, Cause.GRADIENT_SIZE),
    evidence=RISE,
    variants={
        "diverged": Variant(
            "loss rose from its best of {best:.4g} to {level:.4g} and stays there",
            ("O19", "L6", "O9", "O4", "GE", "G5"),
            (WARNING, CRITICAL),
        )
    },
)
def loss_divergence(
    points: pl.LazyFrame,
    *,
    least_rise: Annotated[float, "share by which four in five recent points exceed the best level"] = 0.3,
    early_rise: Annotated[float, "the same while there are fewer than 120 points"] = 0.5,
    critical_rise: Annotated[float, "the same from which on the run is lost"] = 1.0,
    least_errors: Annotated[float, "rise of the level in its standard errors"] = 15.0,
    early_errors: Annotated[float, "the same while there are fewer than 120 points"] = 12.0,
) -> pl.LazyFrame:
    """See the module's page."""
    rise, early = pl.col("rise"), pl.col(INDEX) < WINDOWS[MANY]
    far = ~is_learned(pl.col("level")) & (rise > pl.when(early).then(early_rise).otherwise(least_rise))
    sure = pl.col("errors") > pl.when(early).then(early_errors).otherwise(least_errors)
    return verdicts(
        with_rise(points),
        judged=supervised(pl.col(INDEX) >= EARLIEST) | {HeldBack.RANGE: rise.is_not_null()},
        found={"diverged": far & sure},
        lasts=rise > least_rise / 2,
        severities={CRITICAL: rise > critical_rise},
        above=pl.max_horizontal((1 + least_rise) * pl.col("best"), (pl.col("best") * pl.col("level")).sqrt()),
    )
