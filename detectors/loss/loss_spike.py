"""The training loss jumps for a point or two.

## What it catches
A loss of more than twice the median of the 50 points before it, and above that median by more than six times
the distance to their 95th percentile. Where fewer points precede it: more than three times the median of the
last five, and above it by fourteen standard deviations of the noise. A spike is info unless it is the third
within 200 of the first 2000 points (later so few are a moment), or 1000 times the usual loss, and above the
start where the usual loss is below a hundredth of it; so few that stay below a tenth of the start are info,
too. A point behind a spike from which the loss comes down belongs to it. A loss below a hundredth of its
start has no spikes: there single samples and rounding move it.

## Why it matters
A spike that recovers costs little. Repeated ones precede a divergence, and point to a cause that will not
go away: single bad batches, a rate at the edge of what the model bears, half precision at its limits.

## What to do
Find the batch of the spike and look at it. Clip the gradient norm at 1 where it is not clipped. Lower the
learning rate two- to fivefold, or lengthen the warm-up, if the spikes come with a high gradient norm.

## When it is wrong
Another data source, a new epoch or a harder stage lifts single points, and the next fold of a
cross-validation begins anew. Where the accuracy comes back or keeps half of its gain, and no gradient norm
of the last 200 points is more than twice that of before, spikes are info. Batches of one sample have heavy
tails of their own; the distance to the 95th percentile makes room for most of them. Beside rewards the rule
is silent.

## Source
Catalogue A-sft-spikes, L6. Six deviations alone ring on heavy-tailed noise; twice the median and the
run's own upper tail together do not. Distances and deviations are those of the
logarithm of the loss. Single spikes of healthy runs reach eight times the usual loss.
"""

from math import log
from typing import Annotated

import polars as pl

from sentinel.detectors.api import INFO, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.loss.causes_of_rise import MEASURES, clues
from sentinel.detectors.loss.harder_task import COMPANIONS, with_harder_task
from sentinel.detectors.schema import EXCUSED, INDEX, SERIES, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import recent_median, recent_noise, recent_quantile, start_median
from sentinel.detectors.supervised import ELSE, FIRST, is_learned, supervised
from sentinel.detectors.verdict import SkipReason, verdicts

BEFORE = 50  # points that tell what is usual
POSITIVE = 40  # of them that have a logarithm, at least
EARLY = 5  # of the first points
MANY = 200  # points in which spikes are counted
LONG = 2000  # points, of which so many are a moment
COMES_DOWN = 0.8  # of the spike before, in the logarithm
TAIL = 0.95  # quantile: two or three of the points before lie beyond it
SMALL = 0.1  # of the start: a spike below that undoes little of what was learned


@detector(
    judges=(Signal.LOSS,),
    uses=(*ELSE, *COMPANIONS, Signal.LEARNING_RATE),
    history=History(recent=BEFORE + MANY + 1, head=FIRST),
    maturity=Maturity.STABLE,
    hold=1,  # a spike is a single point
    cause=Cause.LOSS_SHAPE,
    needs_consent=True,
    evidence={
        "usual": Measure("usual level", Unit.SAME),
        "spikes": Measure("spikes within 200 points", Unit.COUNT),
    }
    | MEASURES,
    variants={
        "jumped": Variant(
            "loss jumped from {usual:.4g} to {value:.4g}; spikes within 200 points: {spikes}",
            ("A-sft-spikes", "L6", "A-nan-data", "N-silent-corruption", "A-learning-rate"),
            (INFO, WARNING),
        )
    },
)
def loss_spike(
    points: pl.LazyFrame,
    *,
    least_times: Annotated[float, "multiple of the usual loss that is a spike"] = 2.0,
    early_times: Annotated[float, "the same while there are fewer than 50 points before"] = 3.0,
    early_noises: Annotated[float, "standard deviations of the noise that a spike exceeds then"] = 14.0,
    least_tails: Annotated[float, "distances from the usual loss to its 95th percentile"] = 6.0,
    far_times: Annotated[
        float, "multiple of the usual loss from which on a single spike is a warning"
    ] = 1000.0,
    most_spikes: Annotated[int, "spikes within 200 points from which on they are a warning"] = 3,
) -> pl.LazyFrame:
    logs = pl.when(pl.col(VALUE) > 0).then(pl.col(VALUE).log())
    early = pl.col(INDEX) < BEFORE
    middle = {n: recent_median("log", n, skip=1, at_least=n * POSITIVE // BEFORE) for n in (EARLY, BEFORE)}
    measured = (
        with_harder_task(points, norm_rows=MANY)
        .with_columns(log=logs)
        .with_columns(
            middle=pl.when(early).then(middle[EARLY]).otherwise(middle[BEFORE]),
            upper=recent_quantile(TAIL, "log", BEFORE, skip=1, at_least=POSITIVE),
            noise=recent_noise("log", BEFORE),
            **clues(),
        )
        .with_columns(usual=pl.col("middle").exp(), above=pl.col("log") - pl.col("middle"))
    )
    tail = pl.col("upper") - pl.col("middle")
    least = (
        pl.when(early)
        .then(pl.max_horizontal(log(early_times), early_noises * pl.col("noise")))
        .otherwise(pl.max_horizontal(log(least_times), least_tails * tail))
    )
    spike = pl.col("spike")
    last_spike = spike.shift(1, fill_value=False).over(SERIES)
    begins = spike & (~last_spike | (pl.col("above") > COMES_DOWN * pl.col("above").shift(1).over(SERIES)))
    far = (pl.col("above") > least) & ~is_learned(pl.col(VALUE))
    measured = measured.with_columns(spike=far.fill_null(False)).with_columns(
        spikes=begins.cast(pl.Int32).rolling_sum(MANY, min_samples=1).over(SERIES)
    )
    return verdicts(
        measured,
        judged=supervised(pl.col(INDEX) >= EARLY) | {SkipReason.RANGE: pl.col("usual").is_not_null()},
        found={"jumped": pl.col("spike")},
        severities={
            WARNING: (
                ~pl.col(EXCUSED) & (pl.col("spikes") >= most_spikes) & (pl.col(INDEX) < LONG) & ~_is_small()
            )
            | ((pl.col(VALUE) > far_times * pl.col("usual")) & ~_is_of_a_sample())
        },
        above=(pl.col("middle") + least).exp(),
    )


def _is_of_a_sample() -> pl.Expr:
    """Return whether a loss that was learned stands below its start: one answer that is still wrong does."""
    return is_learned(pl.col("usual")) & (pl.col(VALUE) < start_median(VALUE, FIRST))


def _is_small() -> pl.Expr:
    """Return whether a spike undoes little of what was learned since the start."""
    return (pl.col(VALUE) < SMALL * start_median(VALUE, FIRST)).fill_null(value=False)
