"""The loss repeats one number to the last digit, though it had moved before.

## What it catches
A training loss that is exactly the same at 20 points in a row, or an evaluation loss at 6 evaluations, after
it had moved from point to point. Where it had paused before, it must rest ten times as long as ever. A
training loss that rests above its best level is left to `loss-plateau`, which tells of it sooner; but not
beside a reward or a preference margin, where `loss-plateau` does not judge.

## Why it matters
Batches differ, so a loss that depends on its input never repeats itself. Either the model's output has
become a constant, or the number is an old one. In both cases nothing is learned, or nothing is measured.

## What to do
Print the loss of two different batches. If they differ, the logged number is stale: look at what fills it.
If they agree, look at the activations: dead units, a clamp, or an overflow that a mask hides. An evaluation
loss that repeats itself belongs to weights that no longer change, or to another model than the one in
training: an average (EMA) that is not updated, or adapters that were not loaded.

## When it is wrong
A training on one full batch repeats itself once its learning rate is zero. One that converges moves less and
less before it rests, so the noise just before must be 0.01 % of the loss. A loss that is logged with five
digits or fewer repeats itself when its changes become smaller than the last digit, so its noise must have
been 20 times the smallest change that was seen, and not both of its last two changes as small as that.

## Source
Catalogue O25, O3, O2, O20. A repeat by chance has a probability of less than 1/20, so 20 of them have none.
Loops that log a loss more often than they compute it are told by their earlier pauses.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, SERIES, STEP, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import is_of, recent_noise, resting, seen_max, seen_min
from sentinel.detectors.supervised import ELSE, is_supervised
from sentinel.detectors.verdict import SkipReason, verdicts

REACH = 100  # points in which pauses and changes are looked for, at the start and at the end
PAUSES = 10  # times the longest pause before: a loss that is computed seldom pauses alike
DIGITS = 1e4  # of a loss of one digit before the point: with more than five, equal numbers are the same ones
LEVELS = 20  # smallest changes that the noise must span otherwise
MIN_NOISE = 1e-4  # of the loss, just before it rests
DIGIT = 1.5  # smallest changes: both of the last ones before a rest by rounding are smaller
ABOVE = 1 / 0.99  # times the best level, from which on `loss-plateau` tells of a loss that rests
NOISE = 10  # points that tell the noise
ROUNDED = 1e-6  # how far a number of few digits may be from a whole one
MOVED = 5  # points before a rest
TEN = 10  # of the decimal system


@detector(
    judges=(Signal.LOSS, Signal.EVAL_LOSS),
    uses=ELSE,
    history=History(recent=2 * REACH, head=REACH),
    maturity=Maturity.STABLE,
    hold=1,  # a verdict rests on many points already
    clear=1,
    cause=Cause.LOSS_SHAPE,
    evidence={"still": Measure("unchanged for", Unit.POINTS)},
    variants={
        "training": Variant(
            "the loss has been exactly {value:.6g} for {still} points", ("O25", "O3", "O2", "O24")
        ),
        "evaluation": Variant(
            "the loss on held-out data has been exactly {value:.6g} for {still} evaluations",
            ("O2", "O20", "O21", "O24"),
        ),
    },
)
def repeated_loss(
    points: pl.LazyFrame,
    *,
    rest: Annotated[int, "points in a row that are exactly alike"] = 20,
    evaluations: Annotated[int, "evaluations in a row that are exactly alike"] = 6,
) -> pl.LazyFrame:
    value = pl.col(VALUE)
    still = pl.col("still")
    is_training = is_of(Signal.LOSS)
    change = value.diff().abs().over(SERIES)
    moves = still == 1
    measured = (
        points.with_columns(
            still=resting(value, REACH),
            change=pl.when(change > 0).then(change),
            noise=recent_noise(VALUE, NOISE, at_least=MOVED),
            fine=_has_many_digits().cast(pl.Int8),
        )
        .with_columns(
            pause=pl.when(moves).then(still.shift(1)).over(SERIES),
            moving=pl.when(moves).then("noise").forward_fill(REACH).over(SERIES),
            begun=pl.when(moves).then(STEP).forward_fill(REACH).over(SERIES),
            moved=pl.when(moves)
            .then(pl.max_horizontal("change", pl.col("change").shift(1)))
            .forward_fill(REACH)
            .over(SERIES),
        )
        .with_columns(
            pauses=seen_max("pause", REACH, REACH),
            smallest=seen_min("change", REACH, REACH),
            best=seen_min(VALUE, REACH, REACH),
            fine=seen_max("fine", REACH, REACH) > 0,
        )
    )
    long = _rests_long(pl.when(is_training).then(rest).otherwise(evaluations))
    # Before a loss that converged or was rounded rests, its noise is small.
    least_noise = pl.when("fine").then(MIN_NOISE * value.abs()).otherwise(LEVELS * pl.col("smallest"))
    best = pl.col("best")
    is_left_to_loss_plateau = is_supervised() & (best > 0) & (value > ABOVE * best)
    return verdicts(
        measured,
        judged={
            SkipReason.FEW_POINTS: pl.col(INDEX) >= MOVED,
            SkipReason.VARIATION: (pl.col("moving") > least_noise)
            & (pl.col("fine") | (pl.col("moved") > DIGIT * pl.col("smallest"))),
        },
        found={"training": is_training & long & ~is_left_to_loss_plateau, "evaluation": ~is_training & long},
        onset=pl.col("begun"),
    )


def _has_many_digits() -> pl.Expr:
    """Return whether a number has more than five digits, so that two of them are hardly equal by chance."""
    value = pl.col(VALUE)
    five = DIGITS * value / TEN ** value.abs().log10().floor()
    return (value != 0) & ((five - five.round()).abs() > ROUNDED)


def _rests_long(least: pl.Expr) -> pl.Expr:
    """Return whether the loss rests for so many points, and much longer than it had ever paused."""
    value = pl.col(VALUE)
    still = pl.col("still")
    return (value != 0) & (still >= least) & (still > PAUSES * (pl.col("pauses") - 1))
