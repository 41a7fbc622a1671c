"""The learning rate does not fit the run: zero or at its floor too early, or rising too long.

## What it catches
A learning rate of zero although training goes on: from the first step, for a tenth of the run so far,
or with more than a fifth of the planned steps to go. A smooth decay that stopped below 1 % of its peak
with as much to go. A first warm-up that is longer than half the plan, or twice the planned warm-up.

## Why it matters
Steps at a learning rate of zero cost full price and change nothing. The usual cause is a schedule that
counts something else than optimizer steps: micro-batches, ranks or epochs.

## What to do
Step the scheduler once after each optimizer step. Give it the number of optimizer steps of the whole
run: batches x epochs / accumulation steps, per rank. After a resume check that the plan was not the old
one. Log what `get_last_lr()` returns. If the plan is a whole multiple of the step at which the schedule
ended, that multiple is often the number of accumulation steps or ranks.

## When it is wrong
Warm restarts, steps, plateaus, exponential decay, warmup-stable-decay and constant rates stay quiet. So
does a cosine that is stepped too often and comes up again after zero: that may be meant. Whether a
constant rate should have moved is not in a metric log, and without the planned number of steps only
zeros tell anything. A log that rounds small rates to zero is recognised by its smallest rate, or by a
loss that falls. A deliberate warm-up over most of a run is flagged.

## Source
Catalogue O8, A-learning-rate, G-acc-sched: below 1 % of the peak with over 20 % of the steps left. Warm-up:
OneCycleLR's default is 30 % of the run and 50 % the longest in common use, hence half.
"""

from typing import Annotated

import polars as pl

from detectors.api import History, Maturity, Severity, Variant, detector
from detectors.schema import INDEX, ONSET, SERIES, SEVERITY, STEP, VALUE, VARIANT
from detectors.signals import Signal
from detectors.stats import recent_median, start_median

ZERO = 1e-12
"""No optimizer moves weights at such a rate; cosines end at 1e-20 rather than at zero."""

REACH = 250
LEAST = 10  # points


@detector(
    judges=(Signal.LEARNING_RATE,),
    uses=(Signal.TOTAL_STEPS, Signal.WARMUP_STEPS, Signal.LOSS, Signal.LEARNING_RATE),
    history=History(recent=REACH + LEAST, head=LEAST, coarse=True),
    every=5,
    maturity=Maturity.STABLE,
    variants={
        "never-above-zero": Variant(
            "the learning rate is zero since the run began, {trained} steps ago", ("O8", "A-learning-rate")
        ),
        "ended-before-plan": Variant(
            "the learning rate is zero since step {since} of {planned:.0f} planned, with {left:.0%} to go",
            ("O8", "G-acc-sched", "A-learning-rate"),
        ),
        "ended": Variant(
            "the learning rate is zero for {still} points, {zero_share:.0%} of the run, and training goes on",
            ("O8", "G-acc-sched", "A-learning-rate"),
        ),
        "floor-before-plan": Variant(
            "the learning rate rests at {value:.2g}, {of_peak:.2%} of its peak, since step {since} of "
            "{planned:.0f} planned, with {left:.0%} to go",
            ("O8", "G-acc-sched", "A-learning-rate"),
        ),
        "warm-up-too-long": Variant(
            "the learning rate still rises at step {step}; its warm-up should have ended by step {end:.0f}",
            ("O8", "A-learning-rate"),
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
) -> pl.LazyFrame:
    """See the module's page."""
    rate, index, planned = pl.col(VALUE), pl.col(INDEX), pl.col(Signal.TOTAL_STEPS)
    level = rate.clip(lower_bound=ZERO)
    changed = level != level.shift(1)
    positive = pl.element().filter(pl.element() > ZERO)
    seen = points.with_columns(
        peak=pl.max_horizontal(
            rate.rolling_max(REACH, min_samples=1).over(SERIES), pl.col("coarse_high").list.max()
        ),
        smallest=pl.min_horizontal(
            pl.when(rate > ZERO).then(rate).rolling_min(REACH, min_samples=1).over(SERIES),
            pl.col("coarse_low").list.eval(positive).list.min(),
        ),
        earlier_peak=rate.shift(LEAST).rolling_max(REACH, min_samples=1).over(SERIES),
        earlier=rate.shift(LEAST).over(SERIES),
        before=rate.shift(1).over(SERIES),
        start=rate.filter(index == 0).first().over(SERIES),
        first=pl.col(STEP).filter(index == 0).first().over(SERIES),
        changes=changed.cast(pl.Int64).rolling_sum(REACH, min_samples=1).over(SERIES),
        last_change=pl.when(changed).then(index).rolling_max(REACH, min_samples=1).over(SERIES),
        since=pl.when(changed).then(pl.col(STEP)).rolling_max(REACH, min_samples=1).over(SERIES),
        zero_buckets=(pl.col("coarse_high").list.eval(pl.element() <= ZERO)).list.mean().fill_null(0),
        learns=recent_median(Signal.LOSS, LEAST) < 0.98 * start_median(Signal.LOSS, LEAST),
    ).with_columns(
        still=(index - pl.col("last_change")).fill_null(pl.min_horizontal(index, REACH - 1)) + 1,
        visible=pl.min_horizontal(index + 1, REACH),
        trained=pl.col(STEP) - pl.col("first"),
        left=1 - pl.col("since") / planned,
        of_peak=rate / pl.col("peak"),
        end=pl.min_horizontal(longest_warmup * planned, 2 * pl.col(Signal.WARMUP_STEPS)),
        planned=planned,
    )
    floor = (rate > ZERO) & (pl.col("of_peak") < near_zero)
    zero, still, too_early = rate <= ZERO, pl.col("still"), pl.col("left") > steps_left
    zero_share = pl.max_horizontal(still / (index + 1), pl.col("zero_buckets"))
    smallest = pl.col("smallest") / pl.col("peak")
    rests = still >= LEAST
    smooth = pl.col("changes") >= pl.max_horizontal(8, 0.5 * (pl.col("visible") - still))
    linear = rate - pl.col("earlier") <= 1.5 * LEAST / (index + 1) * rate  # a range test grows faster
    rises = rate > pl.col("before")
    rising = rises & linear & (rate > 1.0001 * pl.col("earlier_peak")) & (rate >= pl.col("peak"))
    first_group = pl.col(Signal.LEARNING_RATE).fill_null(0)  # another one may be frozen by design
    untrained = (pl.col("trained") >= 200) & (first_group <= ZERO) & ~pl.col("learns").fill_null(False)
    variant = (
        pl.when(zero & (pl.col("peak") <= ZERO))
        .then(pl.when(untrained).then(pl.lit("never-above-zero")))
        .when(zero & rests & too_early & (smallest < 0.2))
        .then(pl.lit("ended-before-plan"))
        .when(zero & rests & planned.is_null() & (smallest < 0.1) & (zero_share >= zero_share_of_run))
        .then(pl.lit("ended"))
        .when(floor & rests & too_early & smooth)
        .then(pl.lit("floor-before-plan"))
        .when(rising & (pl.col("start") < 0.5 * rate) & (pl.col("first") <= 0.1 * pl.col("end")))
        .then(pl.when(pl.col(STEP) > pl.col("end")).then(pl.lit("warm-up-too-long")))
    )
    critical = (pl.col(VARIANT) == "never-above-zero") | (zero & (pl.col("left") > 0.5))
    decayed = floor | (zero & (pl.col("peak") > ZERO) & planned.is_not_null())
    forgotten = decayed & pl.col("since").is_null()
    return (
        seen.filter(index + 1 >= LEAST, ~forgotten)
        .with_columns(variant.alias(VARIANT), zero_share=zero_share)
        .with_columns(
            pl.when(pl.col(VARIANT).is_null())
            .then(Severity.CLEAN)
            .when(critical)
            .then(Severity.CRITICAL)
            .otherwise(Severity.WARNING)
            .alias(SEVERITY),
            pl.when(pl.col(VARIANT).is_not_null() & (still >= LEAST)).then(pl.col("since")).alias(ONSET),
        )
        .select(SERIES, INDEX, STEP, SEVERITY, VARIANT, ONSET, VALUE, *_EVIDENCE)
    )


_EVIDENCE = ("peak", "of_peak", "still", "since", "zero_share", "trained", "planned", "left", "end")
