"""The training loss has left its best level and stays far above it.

## What it catches
A loss whose recent points (the last 20; the last 5 while there are fewer than 60) lie above its best level
by more than 30 % (50 % while there are fewer than 60), four in five of them, and by more than 18 standard
errors of the level (12).

## Why it matters
A run that diverges rarely comes back by itself. What it learned is being lost step by step.

## What to do
Go back to a checkpoint before the onset. Lower the learning rate two- to fivefold, or lengthen the warm-up.
Clip the gradient norm at 1. Look at what changed at the onset: the learning rate after a resume, the data,
the sequence length.

## When it is wrong
A harder stage of a curriculum, another data set, longer sequences or a changed objective lift the loss
without a fault. Beside rewards or value losses the rule is silent, since there the loss follows the policy.

## Source
Catalogue L6, O19, O9, GE. Thresholds are measured (`FIGURES.md`). Second differences tell the noise, so the
fall of a healthy loss is none. They count neighbours as independent; hence from 60 points on, the scatter of
the level over 20 points counts as well. Without that, noise of 20 % with autocorrelation of 0.6 rang eight
times in a million points.
"""

from typing import Annotated

import polars as pl

from detectors.api import Cause, History, Maturity, Severity, Variant, detector
from detectors.evidence import Measure, Unit
from detectors.schema import INDEX, SERIES, STEP, VALUE
from detectors.signals import Signal
from detectors.stats import recent_median, recent_noise, recent_quantile, seen_min
from detectors.supervised import ELSE, supervised
from detectors.verdict import HeldBack, verdicts

FEW, MANY = 5, 20  # points whose level is compared
MANY_FROM = 60
EARLIEST = 10  # points before anything is said
REACH = 200  # points at the start and at the end in which the best level is looked for
NOISE = 40  # points whose differences tell the noise
WANDERS = 0.8  # standard errors that the scatter of the level itself counts as
LEAST_NOISE = 1e-3  # share of the level


@detector(
    judges=(Signal.LOSS,),
    uses=ELSE,
    history=History(recent=REACH + 3 * MANY + 1, head=REACH, coarse=True),
    maturity=Maturity.STABLE,
    hold=5,
    cause=Cause.DIVERGENCE,
    # After a loss has diverged, neither its shape nor its gradients say how it learns.
    silences=(Cause.LOSS_SHAPE, Cause.EVALUATION, Cause.GRADIENT_SIZE),
    evidence={
        "best": Measure("best level", Unit.SAME),
        "level": Measure("now", Unit.SAME),
        "rise": Measure("rise that four in five points exceed", Unit.SHARE),
        "errors": Measure("rise in standard errors", Unit.NONE),
        "noise": Measure("noise between points", Unit.SHARE),
    },
    variants={
        "diverged": Variant(
            "loss rose from its best of {best:.4g} to {level:.4g} and stays there",
            ("O19", "L6", "O9", "O4", "GE"),
        )
    },
)
def loss_divergence(
    points: pl.LazyFrame,
    *,
    least_rise: Annotated[float, "share by which four in five recent points exceed the best level"] = 0.3,
    early_rise: Annotated[float, "the same while there are fewer than 60 points"] = 0.5,
    critical_rise: Annotated[float, "the same from which on the run is lost"] = 1.0,
    least_errors: Annotated[float, "rise of the level in its standard errors"] = 18.0,
    early_errors: Annotated[float, "the same while there are fewer than 60 points"] = 12.0,
) -> pl.LazyFrame:
    """See the module's page."""
    logs = pl.when(pl.col(VALUE) > 0).then(pl.col(VALUE).log())
    few = pl.col(INDEX) < MANY_FROM
    low = {"few": recent_quantile(0.2, "log", FEW), "many": recent_quantile(0.2, "log", MANY)}
    levels = (
        points.with_columns(log=logs)
        .with_columns(
            middle_few=recent_median("log", FEW),
            middle_many=recent_median("log", MANY),
            low=pl.when(few).then(low["few"]).otherwise(low["many"]),
            noise=recent_noise("log", NOISE, at_least=FEW).clip(LEAST_NOISE),
        )
        .with_columns(
            before_few=pl.col("middle_few").shift(FEW).over(SERIES),
            before_many=pl.col("middle_many").shift(MANY).over(SERIES),
            wander=recent_noise("middle_many", REACH, apart=MANY, at_least=MANY).fill_null(0),
        )
    )
    best = (
        pl.when(few)
        .then(seen_min("before_few", REACH, REACH))
        .otherwise(
            pl.min_horizontal(seen_min("before_many", REACH, REACH), pl.col("coarse_mean").list.min().log())
        )
    )
    level = pl.when(few).then("middle_few").otherwise("middle_many")
    count = pl.when(few).then(FEW).otherwise(MANY)
    measured = levels.with_columns(log_best=best, log_level=level).with_columns(
        best=pl.col("log_best").exp(),
        level=pl.col("log_level").exp(),
        rise=(pl.col("low") - pl.col("log_best")).exp() - 1,
        errors=(pl.col("log_level") - pl.col("log_best"))
        / pl.max_horizontal(pl.col("noise") * (2 / count).sqrt(), WANDERS * pl.col("wander")),
    )
    rise = pl.col("rise")
    least = pl.when(few).then(early_rise).otherwise(least_rise)
    return verdicts(
        measured,
        judged=supervised(pl.col(INDEX) >= EARLIEST) | {HeldBack.RANGE: rise.is_not_null()},
        found={
            "diverged": (rise > least)
            & (pl.col("errors") > pl.when(few).then(early_errors).otherwise(least_errors))
        },
        lasts=rise > least_rise / 2,
        severities={Severity.CRITICAL: rise > critical_rise},
        onset=pl.col(STEP).shift(FEW).over(SERIES),
    )
