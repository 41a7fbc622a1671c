"""The learning rate does not fit the run: at its end too early or twice, rising too long, or constant.

## What it catches
A learning rate of zero although training goes on: from the first step, for a third of the run so far, or with
more than a fifth of the planned steps to go. A smooth decay that stopped below 1 % of its peak with as much
to go. A first warm-up, line or staircase, that is longer than half the plan or twice the planned warm-up. A
rate that never moves although the settings name a schedule, or a warm-up that the log should show. Where the
settings name a line, a cosine or a polynomial: a rate that stands still on its way down, or at a floor, with
half of the plan to go, and one that comes up again. A run of 100 points or more that is over while its rate
still rose, unless it was stopped early in its plan. Without a plan a smooth rise is info, because a run that
was stopped in its warm-up looks the same.

## Why it matters
Steps at a learning rate of zero cost full price and change nothing, and those on the first rungs of a warm-up
next to nothing. The usual cause is a schedule that counts something else than optimizer steps: micro-batches,
ranks or epochs. A logged rate that is the configured number hides all of this.

## What to do
Step the scheduler once after each optimizer step, and give it their number over the whole run: batches x
epochs / accumulation steps, per rank. In Lightning say `"interval": "step"`. Log what `get_last_lr()`
returns. If the plan is a whole multiple of the step at which the schedule ended, that multiple is often the
number of accumulation steps or ranks. After a resume check that the plan was not the old one.

## When it is wrong
Warm restarts, steps, plateaus, exponential decay, warmup-stable-decay and constant rates stay quiet. A rate
that comes up again counts only where the settings name a schedule that does not. Without a plan only zeros
tell anything. A log that rounds small rates to zero is known by its smallest rate, or by a falling loss.
Where gradients are accumulated, steps may be micro-batches. A deliberately long warm-up is flagged, as info
where the loss has fallen by a quarter all the same.

## Source
Catalogue O8, O23, A-learning-rate, G-acc-sched: below 1 % of the peak with over 20 % of the steps left;
constant over 20 % of the plan. The cosine of transformers goes on beyond its end, so one that is stepped for
each of N processes comes down and up again N / 2 times. OneCycleLR warms up for 30 % of the run; 50 % is the
longest in common use.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, INFO, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.schedules import (
    COMING_DOWN,
    HISTORY_ROWS,
    MIN_RESTING_ROWS,
    PLANS,
    SCHEDULE,
    ZERO_RATE,
    with_schedule,
)
from sentinel.detectors.schema import ENDED, INDEX, STEP, VALUE
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import PRECISION, has_points, recent_median, start_median
from sentinel.detectors.verdict import SkipReason, verdicts

DECAYED_FRACTION = 0.2  # of the peak, with a plan: a log that rounds jumps to its end from above
DECAYED_FRACTION_WITHOUT_PLAN = 0.1  # of the peak
MIN_UNTRAINED_STEPS = 100  # at zero from the first; gradients of fewer are accumulated for one update
MIN_UNTRAINED_ROWS = 20  # that many tell whether the loss falls
MAX_LOSS_FRACTION = 0.98  # of its start: a loss below that learns
WELL_LEARNED = 0.75  # of its start: beside a loss below that a long warm-up does little harm
LATELY = 5  # rows of a loss that tell whether it fell so far: of few rows, ten are most of a warm-up
MAX_MISSED_WARM_UP = 0.1  # fraction of the warm-up that the log may lack at its beginning
MAX_LEFT = 0.5  # fraction of the plan; with more left, a rate at zero is critical, and one that rests is odd
MIN_STANDING_ROWS = 20  # rows that a rate must rest above its floor
MIN_STANDING_FRACTION = 0.05  # of the plan, likewise
TOP = 0.99  # of the peak: a rate above that has not begun to come down
AGAIN_FRACTION = 0.2  # of the peak, by which a rate came up again
RATE = "the learning rate "  # how most messages begin
# causes of a schedule that is shorter or longer than the training
TOO_SHORT = ("O8", "G-acc-sched", "A-learning-rate")
TOO_LONG = ("O8", "A-learning-rate", "G-acc-sched")


@detector(
    judges=(Signal.LEARNING_RATE,),
    settings=PLANS,
    uses=(Signal.TOTAL_STEPS, Signal.WARMUP_STEPS, Signal.LOSS, Signal.LEARNING_RATE),
    history=History(recent=HISTORY_ROWS + MIN_RESTING_ROWS, head=MIN_RESTING_ROWS, coarse=True),
    every=5,
    at_end=True,
    maturity=Maturity.STABLE,
    cause=Cause.SCHEDULE,
    inhibits=(Cause.LOSS_SHAPE, Cause.EVALUATION),  # a learning rate near zero moves no weights
    evidence=SCHEDULE,
    variants={
        "never-above-zero": Variant(RATE + "has been zero for all {trained} steps", TOO_LONG, (CRITICAL,)),
        "ended": Variant(
            RATE + "rests at {value:.2g} since step {since}: its schedule is over, the training is not",
            TOO_SHORT,
            (WARNING, CRITICAL),
        ),
        "zero": Variant(
            RATE + "has been zero for {zero_share:.0%} of the run: its schedule is over, the training is not",
            TOO_SHORT,
        ),
        "warm-up": Variant(
            RATE + "still rises at step {step}, from {start:.2g} at the start to {value:.2g}",
            TOO_LONG,
            (WARNING, INFO),
        ),
        "stands": Variant(
            RATE
            + "has stood at {value:.3g}, {of_peak:.2g} of its peak, since step {since} of {planned:.0f}: "
            "its schedule no longer moves",
            TOO_SHORT,
        ),
        "again": Variant(
            RATE + "came up again to {value:.2g} after it had come down to {bottom:.2g}, which its schedule "
            "never does: it is stepped too often, or a resume lost its place",
            ("G-acc-sched", "R4", "O8", "A-learning-rate"),
        ),
        "constant": Variant(
            RATE + "has been {value:.3g} from the start, though the settings name a schedule", ("O23", "O8")
        ),
    },
)
def lr_schedule_mismatch(
    points: pl.LazyFrame,
    *,
    steps_left: Annotated[float, "share of the planned steps that must be left"] = 0.2,
    zero_share_of_run: Annotated[
        float, "share of the run at a rate of zero that is too much where no plan is known"
    ] = 1 / 3,
    near_zero: Annotated[float, "share of the peak below which a floor trains next to nothing"] = 0.01,
    longest_warmup: Annotated[float, "longest warm-up, as a share of the planned steps"] = 0.5,
    constant_share: Annotated[float, "share of the planned steps without a change that is too much"] = 0.2,
    unfinished_points: Annotated[int, "points after which the warm-up should be over"] = 100,
    constant_points: Annotated[int, "points without a change that are too many"] = 50,
) -> pl.LazyFrame:
    rows = pl.col(INDEX) + 1
    step = pl.col(STEP)
    planned = pl.col("planned")
    left = pl.col("left")
    at_zero = pl.col(VALUE) <= ZERO_RATE
    rests = pl.col("still") >= MIN_RESTING_ROWS
    smooth = pl.col("smooth")
    at_floor = pl.col("of_peak") < near_zero
    least_of_peak = pl.col("least_of_peak")
    # The rate came down to where it rests, rather than jumped there.
    decayed = pl.when(at_zero).then(least_of_peak < DECAYED_FRACTION).otherwise(at_floor & smooth)
    decayed_without_plan = planned.is_null() & (least_of_peak < DECAYED_FRACTION_WITHOUT_PLAN)
    end = pl.col("end")
    saw_warm_up_begin = pl.col("start_step") <= MAX_MISSED_WARM_UP * end
    too_long = pl.col("rising") & (step > end) & saw_warm_up_begin
    never_above_zero = _was_never_above_zero() & ~_learns(MAX_LOSS_FRACTION, MIN_RESTING_ROWS)
    stopped_early = (step < (1 - steps_left) * planned).fill_null(False)
    ended_rising = pl.col(ENDED) & pl.col("only_rose") & ~stopped_early
    warms_up = too_long | (ended_rising & (rows >= unfinished_points))
    return verdicts(
        with_schedule(points, longest_warmup=longest_warmup),
        judged={SkipReason.FEW_POINTS: rows >= MIN_RESTING_ROWS},
        found={
            "never-above-zero": never_above_zero,
            "ended": rests & decayed & (left > steps_left),
            "zero": rests & at_zero & decayed_without_plan & (pl.col("zero_share") >= zero_share_of_run),
            "warm-up": warms_up,
            "stands": _stands(near_zero),
            "again": _came_again(),
            "constant": pl.col("should_move")
            & _is_constant(constant_points)
            & (step >= constant_share * planned.fill_null(0)),
        },
        lasts=at_floor,
        severities={
            CRITICAL: at_zero & (left > MAX_LEFT),
            INFO: (planned.is_null() & smooth & ~too_long.fill_null(False))
            | (warms_up.fill_null(False) & _learns(WELL_LEARNED, LATELY)),
        },
        onset=pl.when(never_above_zero).then("start_step").when(rests).then("since"),
    )


def _was_never_above_zero() -> pl.Expr:
    """Return whether the learning rate was always zero, and the first group's, too: others may be frozen."""
    first_group = pl.col(Signal.LEARNING_RATE).fill_null(0)
    long = (pl.col("trained") >= MIN_UNTRAINED_STEPS) & has_points(MIN_UNTRAINED_ROWS)
    return long & (pl.max_horizontal("peak", first_group) <= ZERO_RATE)


def _learns(fraction: float, rows: int) -> pl.Expr:
    """Return whether the last rows of the loss lie below a fraction of its first ones, which they do not at a
    rate of zero.
    """
    now = recent_median(Signal.LOSS, rows)
    start = start_median(Signal.LOSS, rows)
    return (now < fraction * start).fill_null(False)


def _stands(near_zero: float) -> pl.Expr:
    """Return whether a rate that was on its way down by the settings' schedule has stopped above zero."""
    planned_end = pl.coalesce(Setting.SCHEDULE_STEPS, "planned")
    is_long = (pl.col("still") >= MIN_STANDING_ROWS) & (
        pl.col("rested") >= MIN_STANDING_FRACTION * planned_end
    )
    is_between = pl.col("of_peak").is_between(near_zero, TOP)
    left_share = 1 - pl.col("since") / planned_end
    return (
        pl.col(Setting.SCHEDULER).is_in(COMING_DOWN)
        & pl.col("smooth")
        & is_long
        & is_between
        & (left_share > MAX_LEFT)
    )


def _came_again() -> pl.Expr:
    """Return whether a rate that had come down rises again, which the settings' schedule never does."""
    risen = pl.col(VALUE) - pl.col("bottom") > AGAIN_FRACTION * pl.col("peak")
    return pl.col(Setting.SCHEDULER).is_in(COMING_DOWN) & risen


def _is_constant(points: int) -> pl.Expr:
    """Return whether a rate above zero has never moved in so many points.

    The first points of a long cosine are all but constant, but each of them is the lowest so far.
    """
    rate = pl.col(VALUE)
    peak = pl.col("peak")
    lowest = pl.col("lowest")
    falls = (rate == lowest) & (lowest < peak)
    return (rate > ZERO_RATE) & ~falls & (peak - lowest <= PRECISION * peak) & has_points(points)
