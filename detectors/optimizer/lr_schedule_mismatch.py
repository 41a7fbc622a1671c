"""The learning rate does not fit the run: zero or at its floor too early, rising too long, or constant.

## What it catches
A learning rate of zero although training goes on: from the first step, for a tenth of the run so far,
or with more than a fifth of the planned steps to go. A smooth decay that stopped below 1 % of its peak
with as much to go. A first warm-up that is longer than half the plan, or twice the planned warm-up, and
one that climbs in rare rungs and is far below the configured peak by then. A rate that never moves
although the settings name a schedule, or a warm-up that the log should show. A run of 100 points or more
that is over while its rate still rose, line or staircase, unless it was stopped early in its plan. Without
a plan a smooth rise is only worth knowing: a run that was stopped in its warm-up looks the same.

## Why it matters
Steps at a learning rate of zero cost full price and change nothing, and those on the first rungs of a
warm-up next to nothing. The usual cause is a schedule that counts something else than optimizer steps:
micro-batches, ranks or epochs. A logged rate that is the configured number hides all of this.

## What to do
Step the scheduler once after each optimizer step, and give it their number over the whole run: batches x
epochs / accumulation steps, per rank. In Lightning say `"interval": "step"`. After a resume check that
the plan was not the old one. Log what `get_last_lr()` returns. If the plan is a whole multiple of the
step at which the schedule ended, that multiple is often the number of accumulation steps or ranks.

## When it is wrong
Warm restarts, steps, plateaus, exponential decay, warmup-stable-decay and constant rates stay quiet, and
so does a cosine that comes up again after zero: that may be meant. Without a plan only zeros tell
anything, without settings nobody knows that a constant rate should have moved. A log that rounds small
rates to zero is known by its smallest rate, or by a falling loss. Where gradients are accumulated, steps
may be micro-batches, so a warm-up may take as many times longer. A deliberately long warm-up is flagged.

## Source
Catalogue O8, O23, A-learning-rate, G-acc-sched: below 1 % of the peak with over 20 % of the steps left;
constant over 20 % of the plan. Warm-up: OneCycleLR's default is 30 % of the run and 50 % the longest in
common use, hence half.
"""

from typing import Annotated

import polars as pl

from detectors.api import Cause, History, Maturity, Severity, Variant, detector
from detectors.evidence import Measure, Unit
from detectors.schema import ENDED, INDEX, SERIES, STEP, VALUE, VARIANT
from detectors.settings import Setting
from detectors.signals import Signal
from detectors.stats import PRECISION, recent_max, recent_median, resting, start_median, start_value
from detectors.verdict import verdicts

ZERO = 1e-12  # moves no weights; cosines end at 1e-20 rather than at zero
REACH = 250  # points looked back at
LEAST = 10  # points that a rate must rest, and over which it must rise
SMOOTH = 8, 0.5  # changes that make a decay smooth, and their share of the points before it rested
DECAYED = 0.2, 0.1  # of the peak, with a plan and without: a log that rounds jumps to zero from above
LOW = 0.5  # of the configured peak, below which a warm-up that ought to be over has not got far
LATELY = 0.2  # of the run, in which a warm-up that goes on has risen
MOVING = ("linear", "cosine", "restarts", "polynomial", "exponential", "one-cycle", "inverse-sqrt")
UNTRAINED = 200, 0.98  # steps at zero from the first, and the share of its start that the loss keeps
TO_GO = "step {since} of {planned:.0f} planned, with {left:.0%} to go"
TOO_SHORT = ("O8", "G-acc-sched", "A-learning-rate")


@detector(
    judges=(Signal.LEARNING_RATE,),
    settings=(
        *(Setting.SCHEDULER, Setting.PEAK_LEARNING_RATE, Setting.WARMUP_RATIO),
        Setting.ACCUMULATION_STEPS,
    ),
    uses=(Signal.TOTAL_STEPS, Signal.WARMUP_STEPS, Signal.LOSS, Signal.LEARNING_RATE),
    history=History(recent=REACH + LEAST, head=LEAST, coarse=True),
    every=5,
    at_end=True,
    maturity=Maturity.STABLE,
    cause=Cause.SCHEDULE,
    silences=(Cause.LOSS_SHAPE,),  # a learning rate near zero moves no weights
    evidence={
        "peak": Measure("highest rate so far", Unit.SAME),
        "of_peak": Measure("rate, of its peak", Unit.SHARE),
        "still": Measure("unchanged for", Unit.POINTS),
        "since": Measure("unchanged since", Unit.STEP),
        "zero_share": Measure("share of the run at zero", Unit.SHARE),
        "trained": Measure("trained for", Unit.STEPS),
        "planned": Measure("planned", Unit.STEPS),
        "left": Measure("share of the plan that is left", Unit.SHARE),
        "end": Measure("warm-up should end by", Unit.STEP),
        "planned_peak": Measure("peak in the settings", Unit.SAME),
        "start": Measure("at the start", Unit.SAME),
    },
    variants={
        "never-above-zero": Variant(
            "the learning rate has been zero since the run began, {trained} steps ago",
            ("O8", "A-learning-rate"),
        ),
        "ended-before-plan": Variant("the learning rate has been zero since " + TO_GO, TOO_SHORT),
        "ended": Variant(
            "the learning rate has been zero for {still} points, {zero_share:.0%} of the run, and "
            "training goes on",
            TOO_SHORT,
        ),
        "floor-before-plan": Variant(
            "the learning rate has rested at {value:.2g}, {of_peak:.2%} of its peak, since " + TO_GO,
            TOO_SHORT,
        ),
        "warm-up-too-long": Variant(
            "the learning rate still rises at step {step}; its warm-up should have ended by step {end:.0f}",
            ("O8", "A-learning-rate"),
        ),
        "warm-up-unfinished": Variant(
            "the run ended at step {step} while the learning rate still rose, from {start:.2g} to "
            "{value:.2g}: "
            "its warm-up never ended",
            ("O8", "A-learning-rate"),
        ),
        "warm-up-in-rungs": Variant(
            "the learning rate has climbed to {value:.2g} of {planned_peak:.2g} in rare rungs by step "
            "{step}; its warm-up should have ended by step {end:.0f}",
            ("O8", "A-learning-rate", "G-acc-sched"),
        ),
        "constant": Variant(
            "the learning rate has been {value:.3g} since the run began, {trained} steps ago, although the "
            "settings name a schedule",
            ("O23", "O8"),
        ),
    },
)
def lr_schedule_mismatch(
    points: pl.LazyFrame,
    *,
    steps_left: Annotated[float, "share of the planned steps that must be left"] = 0.2,
    zero_share_of_run: Annotated[float, "share of the run at zero that is too much without a plan"] = 0.1,
    near_zero: Annotated[float, "share of the peak below which a floor trains next to nothing"] = 0.01,
    longest_warmup: Annotated[float, "share of the planned steps"] = 0.5,
    constant_share: Annotated[float, "share of the planned steps without a change that is too much"] = 0.2,
    unfinished_points: Annotated[int, "points of a run that should have outlasted its warm-up"] = 100,
    constant_points: Annotated[int, "points without a change that are too many"] = 50,
) -> pl.LazyFrame:
    """See the module's page."""
    rate, index, step, level, peak = (pl.col(n) for n in (VALUE, INDEX, STEP, "level", "peak"))
    planned, still, since, left, end = (pl.col(n) for n in ("planned", "still", "since", "left", "end"))
    above_zero = pl.element().filter(pl.element() > ZERO)
    lows, highs = pl.col("coarse_low").list, pl.col("coarse_high").list
    smallest_lately = pl.when(rate > ZERO).then(rate).rolling_min(REACH, min_samples=1).over(SERIES)
    accumulated = pl.col(Setting.ACCUMULATION_STEPS).fill_null(1).clip(1)
    warm_up, scheduler = pl.col("warm_up"), pl.col(Setting.SCHEDULER)
    measured = (
        points.with_columns(level=rate.clip(lower_bound=ZERO), planned=pl.col(Signal.TOTAL_STEPS))
        .with_columns(
            planned_peak=pl.col(Setting.PEAK_LEARNING_RATE),
            warm_up=pl.coalesce(Signal.WARMUP_STEPS, planned * pl.col(Setting.WARMUP_RATIO)) * accumulated,
        )
        .with_columns(
            changed=(level != level.shift(1)).over(SERIES),
            before=rate.shift(1).over(SERIES),
            long_before=rate.shift(LEAST).over(SERIES),
            start=start_value(VALUE),
            start_step=start_value(STEP),
            peak=pl.max_horizontal(recent_max(rate, REACH, at_least=1), highs.max()),
            still=resting(level, REACH),
            end=pl.min_horizontal(longest_warmup * planned * accumulated, 2 * warm_up),
            lowest=pl.min_horizontal(-recent_max(-rate, REACH, at_least=1), lows.min()),
        )
        .with_columns(
            trained=step - pl.col("start_step"),
            since=recent_max(pl.when("changed").then(step), REACH, at_least=1),
            changes=pl.col("changed").cast(pl.Int64).rolling_sum(REACH, min_samples=1).over(SERIES),
            of_peak=rate / peak,
            falls=(rate < pl.col("before")).cast(pl.Int64).rolling_sum(REACH, min_samples=1).over(SERIES),
            least_of_peak=pl.min_horizontal(smallest_lately, lows.eval(above_zero).list.min()) / peak,
            zero_share=pl.max_horizontal(still / (index + 1), highs.eval(pl.element() <= ZERO).list.mean()),
        )
        .with_columns(left=1 - since / planned)
    )
    zero, rests = rate <= ZERO, still >= LEAST
    at_floor = ~zero & (pl.col("of_peak") < near_zero)
    too_early, decayed = left > steps_left, [pl.col("least_of_peak") < share for share in DECAYED]

    first_group = pl.col(Signal.LEARNING_RATE).fill_null(0)  # another one may be frozen by design
    loss, first_loss = recent_median(Signal.LOSS, LEAST), start_median(Signal.LOSS, LEAST)
    learns = (loss < UNTRAINED[1] * first_loss).fill_null(False)
    never = (peak <= ZERO) & (first_group <= ZERO) & (pl.col("trained") >= UNTRAINED[0]) & ~learns

    before_rest = pl.min_horizontal(index + 1, REACH) - still
    smooth = pl.col("changes") >= pl.max_horizontal(SMOOTH[0], SMOOTH[1] * before_rest)

    linear = rate - pl.col("long_before") <= 1.5 * LEAST / (index + 1) * rate  # a range test grows faster
    at_peak = (rate >= peak) & (rate > 1.0001 * recent_max(pl.col("long_before"), REACH, at_least=1))
    rises = ~zero & (rate > pl.col("before")) & linear & at_peak
    first_warm_up = (pl.col("start") < 0.5 * rate) & (pl.col("start_step") <= 0.1 * end)

    climbs = (rate >= peak) & (pl.col("start") < rate / 1.5) & (step - since < warm_up)
    in_rungs = climbs & (rate < LOW * pl.col("planned_peak", "start")) & (pl.col("start_step") <= 0.1 * end)

    only_rose = (rate >= peak) & (pl.col("falls") == 0) & (pl.col("start") <= pl.col("lowest"))
    lately = (step - since) <= LATELY * pl.col("trained")
    stopped_early = (step < (1 - steps_left) * planned).fill_null(False)
    unfinished = only_rose & lately & linear & (pl.col("start") < LOW * rate) & ~stopped_early
    unfinished = unfinished & pl.col(ENDED) & (index + 1 >= unfinished_points)

    waited = (index + 1 >= constant_points) & (step >= constant_share * planned.fill_null(0))
    misses_warm_up = scheduler.is_null() & (pl.col("start_step") < LOW * warm_up) & (step > end)
    at_planned_peak = (rate / pl.col("planned_peak", "start") - 1).abs() < PRECISION
    planned_to_move = scheduler.is_in(MOVING) | (misses_warm_up & at_planned_peak)
    constant = ~zero & (peak - pl.col("lowest") <= PRECISION * peak) & waited & planned_to_move

    long_at_zero = planned.is_null() & (pl.col("zero_share") >= zero_share_of_run)
    needs_since = at_floor | (zero & (peak > ZERO) & planned.is_not_null())
    return verdicts(
        measured,
        judged=(index + 1 >= LEAST) & ~(needs_since & since.is_null()),
        found={
            "never-above-zero": never,
            "ended-before-plan": zero & rests & too_early & decayed[0],
            "ended": zero & rests & decayed[1] & long_at_zero,
            "floor-before-plan": at_floor & rests & too_early & smooth,
            "warm-up-too-long": rises & first_warm_up & (step > end),
            "warm-up-in-rungs": in_rungs & (step > end),
            "warm-up-unfinished": unfinished,
            "constant": constant,
        },
        severities={
            Severity.CRITICAL: never | (zero & (left > 0.5)),
            Severity.INFO: (pl.col(VARIANT) == "warm-up-unfinished") & planned.is_null() & smooth,
        },
        onset=pl.when(rests).then(since),
    )
