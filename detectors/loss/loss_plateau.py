"""The training loss fell and then stands still while the learning rate is high.

## What it catches
A loss whose last third stands where the third before it stood, and where the second sixth of the run stood,
within 1.25 % and without a certain fall, after it had fallen at the start. And a loss that is the same in all
digits for ten points, above its best: a network that died. Less than a tenth above its best it is a running
mean or logged in few digits, if before these points more than one in ten was like the one before; if every
second one was, the log repeats each value.

## Why it matters
Where a run stops learning far above what its task allows, the rest of the budget buys nothing.

## What to do
Compare the level with what is known for the task. Look for a floor: two softmaxes in a row, labels that
contradict each other, a target that is averaged. Raise the learning rate two- to fivefold, or check that it
is not clipped away. If the loss repeats itself, look for units that died and outputs that saturate.

## When it is wrong
A task that is learned is at rest, too. So a plateau below half of the loss at the start is info, as is one of
few points, before half of the plan is done (without a plan, before the end), or with a sure fall by more than
0.3 % since the second sixth. Slow learning in noise looks flat: if the
comparison allows for a fall above 1.25 %, nothing is said, nor in a resumed run whose start is not logged.

## Source
Catalogue A-sft-plateau, O7, O12, O25. The bounds come from healthy runs, real and simulated ones.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import INFO, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.loss.thirds import REST, SURELY, with_rest
from sentinel.detectors.schedules import planned_steps
from sentinel.detectors.schema import ENDED, INDEX, SERIES, STEP, VALUE
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import (
    FINE,
    has_points,
    of_buckets,
    resting,
    seen_grain,
    seen_max,
    seen_min,
    start_value,
)
from sentinel.detectors.supervised import ELSE, supervised
from sentinel.detectors.verdict import SkipReason, verdicts

EVERY = 5  # points between two verdicts
MOST = 200  # points of a third of the run, at most
COARSE = 0.05  # share of the present loss; a slide hides in coarser digits
STUCK = 10  # points that are equal in so many digits
DIGITS = 5  # a rest takes twice as many at least
MAX_TIES = 0.1  # share of the points before a rest that were like the one before
FAR = 0.9  # times the present loss: with a best one below that so many ties say nothing
REPEATS = 0.5  # share of the points before a rest from which on the log repeats each value
UNSURE = 36  # points at which the error of the change is doubled
FELL = 1.05  # times the present loss: a start above that was another level
BETTER = 0.99  # times the present loss: a best one below that was another level
STILL = 8  # the allowed change is divided by this for a rest without noise
SLOPE = 4  # the same for a slide


@detector(
    judges=(Signal.LOSS,),
    uses=(Signal.LEARNING_RATE, Signal.TOTAL_STEPS, Signal.EPOCH, *ELSE),
    settings=(Setting.EPOCHS,),
    history=History(recent=2 * MOST, head=MOST, coarse=True),
    every=EVERY,
    at_end=True,
    maturity=Maturity.STABLE,
    cause=Cause.LOSS_SHAPE,
    evidence={
        **REST,
        "share": Measure("share of the start that is left", Unit.SHARE),
        "rate_share": Measure("learning rate, of its peak", Unit.SHARE),
        "best": Measure("best so far", Unit.SAME),
        "rows": Measure("points with the very same value", Unit.COUNT),
    },
    variants={
        "stuck": Variant(
            "loss has been {value:.4g} to the last digit for {rows} points; its best was {best:.4g}",
            ("O25", "GV", "O3"),
        ),
        "rests": Variant(
            "loss has stood at {now:.4g} since step {since}, {share:.0%} of its start",
            ("A-sft-plateau", "O7", "O12", "O19", "O25"),
            (INFO, WARNING),
        ),
    },
)
def loss_plateau(
    points: pl.LazyFrame,
    *,
    least_points: Annotated[int, "points needed before a finding"] = 40,
    most_change: Annotated[float, "a loss that changes by a smaller share of itself stands still"] = 0.0125,
    least_rate: Annotated[float, "share of its peak that the learning rate must have"] = 0.2,
    least_share: Annotated[float, "share of the loss at the start above which a plateau is a warning"] = 0.5,
    least_progress: Annotated[float, "share of the plan before a plateau is a warning"] = 0.5,
) -> pl.LazyFrame:
    start = pl.col("start")
    now = pl.col("now")
    share_of_peak = pl.col("rate_share").fill_null(1)
    digits = pl.col(VALUE).round_sig_figs(DIGITS)
    context = points.with_columns(
        best=pl.min_horizontal(seen_min(VALUE, MOST, MOST), of_buckets(pl.col("coarse_low").list.min())),
        grain=seen_grain(VALUE, MOST, MOST),
        rows=resting(digits, STUCK),
        ties=_ties_before_rest(digits),
        rate_share=pl.col(Signal.LEARNING_RATE) / seen_max(Signal.LEARNING_RATE, MOST, MOST),
        done=(pl.col(STEP) - start_value(STEP)) / planned_steps() >= least_progress,
    )
    measured = with_rest(context, most=MOST, every=EVERY, at_least=2 * STUCK)
    fell = start > FELL * now
    moves = pl.col("change").abs() >= 2 * most_change
    waited = has_points(least_points + 1) | pl.col(ENDED)
    shows_slides = pl.col("grain") < COARSE * now
    rests = fell & shows_slides & _stands(most_change) & waited & (share_of_peak >= least_rate)
    best = pl.col("best")
    stuck = (pl.col("rows") == STUCK) & (best < BETTER * pl.col(VALUE)) & (best > 0)
    stuck &= pl.col("grain") < FINE * pl.col(VALUE).abs()
    is_far = best < FAR * pl.col(VALUE)
    ties = pl.col("ties")
    stuck &= (ties <= MAX_TIES).fill_null(True) | (is_far & (ties < REPEATS))
    is_high = (now > least_share * start) & pl.col("done").fill_null(pl.col(ENDED))
    return verdicts(
        measured.with_columns(share=now / start),
        judged=supervised(has_points(2 * STUCK))
        | {
            SkipReason.RESUMED: start.is_not_null() | stuck | moves,
            SkipReason.RANGE: (start > 0).fill_null(True),
        },
        found={"stuck": stuck, "rests": rests},
        severities={WARNING: is_high & _is_certain(most_change)},
        lasts=fell & ~moves,
        onset=pl.when(~stuck).then("since"),
    )


def _ties_before_rest(digits: pl.Expr) -> pl.Expr:
    """Return which share of the points before the present rest were like the one before."""
    tied = (digits == digits.shift(1)).cast(pl.Float64)
    share = tied.shift(1).rolling_mean(MOST, min_samples=1)
    return pl.when(tied == 0).then(share).forward_fill().over(SERIES)


def _stands(most_change: float) -> pl.Expr:
    """Return whether the last third is surely where the one before was, and the second sixth of the run."""
    change = pl.col("change").abs()
    error = pl.col("error")
    is_unchanged = (change < error.clip(most_change / STILL)) & (change + SURELY * error < most_change)
    alike_before = (pl.col("earlier") / pl.col("now") - 1).abs() < most_change
    return is_unchanged & alike_before.fill_null(True)


def _is_certain(most_change: float) -> pl.Expr:
    """Return whether enough points tell that the loss stands, and it has not slid since the second sixth."""
    rows = pl.col(INDEX) + 1
    change = pl.col("change").abs()
    error = pl.col("error")
    slides = pl.col("slide") > (SURELY * pl.col("slide_error")).clip(most_change / SLOPE)
    return ~slides & (change + SURELY * error * (1 + UNSURE / rows) < most_change)
