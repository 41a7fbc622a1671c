"""The learning rate does not fit the run: zero or at its floor too early, or rising too long.

## What it catches
A learning rate of zero although training goes on: from the first step, for a tenth of the run so far,
or with more than a fifth of the planned steps to go. A smooth decay that stopped below 1 % of its peak
with as much to go. A first warm-up that is longer than half the plan, or twice the planned warm-up.

## Why it matters
Steps at a learning rate of zero cost full price and change nothing. The usual cause is a schedule that
counts something else than optimizer steps: micro-batches, ranks or epochs.

## What to do
Step the scheduler once after each optimizer step, and give it their number over the whole run: batches x
epochs / accumulation steps, per rank. After a resume check that the plan was not the old one. Log what
`get_last_lr()` returns. If the plan is a whole multiple of the step at which the schedule ended, that
multiple is often the number of accumulation steps or ranks.

## When it is wrong
Warm restarts, steps, plateaus, exponential decay, warmup-stable-decay and constant rates stay quiet, and
so does a cosine that comes up again after zero: that may be meant. Whether a constant rate should have
moved is not in a metric log, and without a plan only zeros tell anything. A log that rounds small rates
to zero is known by its smallest rate, or by a falling loss. A deliberately long warm-up is flagged.

## Source
Catalogue O8, A-learning-rate, G-acc-sched: below 1 % of the peak with over 20 % of the steps left. Warm-up:
OneCycleLR's default is 30 % of the run and 50 % the longest in common use, hence half.
"""

from typing import Annotated

import polars as pl

from detectors.api import History, Maturity, Severity, Variant, detector
from detectors.schema import INDEX, ONSET, SERIES, SEVERITY, STEP, VALUE, VARIANT
from detectors.signals import Signal
from detectors.stats import first_true, recent_max, recent_median, resting, start_median, start_value

ZERO = 1e-12  # moves no weights; cosines end at 1e-20 rather than at zero
REACH = 250
LEAST = 10  # points
TO_GO = "step {since} of {planned:.0f} planned, with {left:.0%} to go"
TOO_SHORT = ("O8", "G-acc-sched", "A-learning-rate")
EVIDENCE = ("peak", "of_peak", "still", "since", "zero_share", "trained", "planned", "left", "end")


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
        "ended-before-plan": Variant("the learning rate is zero since " + TO_GO, TOO_SHORT),
        "ended": Variant(
            "the learning rate is zero for {still} points, {zero_share:.0%} of the run, and training goes on",
            TOO_SHORT,
        ),
        "floor-before-plan": Variant(
            "the learning rate rests at {value:.2g}, {of_peak:.2%} of its peak, since " + TO_GO, TOO_SHORT
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
    rate, index, step, planned = (pl.col(n) for n in (VALUE, INDEX, STEP, Signal.TOTAL_STEPS))
    peak, still, left, end = (pl.col(n) for n in ("peak", "still", "left", "end"))
    level = rate.clip(lower_bound=ZERO)
    changed = level != level.shift(1)
    highs, above_zero = pl.col("coarse_high").list, pl.element().filter(pl.element() > ZERO)
    seen = points.with_columns(
        peak=pl.max_horizontal(recent_max(rate, REACH, at_least=1), highs.max()),
        still=resting(level, REACH),
        since=recent_max(pl.when(changed).then(step), REACH, at_least=1),
        trained=step - start_value(STEP),
        end=pl.min_horizontal(longest_warmup * planned, 2 * pl.col(Signal.WARMUP_STEPS)),
        planned=planned,
    ).with_columns(left=1 - pl.col("since") / planned, of_peak=rate / peak)
    zero, rests, too_early = rate <= ZERO, still >= LEAST, left > steps_left
    zero_share = pl.max_horizontal(still / (index + 1), highs.eval(pl.element() <= ZERO).list.mean())
    recent = pl.when(~zero).then(rate).rolling_min(REACH, min_samples=1).over(SERIES)
    smallest = pl.min_horizontal(recent, pl.col("coarse_low").list.eval(above_zero).list.min()) / peak
    floor = ~zero & (pl.col("of_peak") < near_zero)
    changes = changed.cast(pl.Int64).rolling_sum(REACH, min_samples=1).over(SERIES)
    smooth = changes >= pl.max_horizontal(8, 0.5 * (pl.min_horizontal(index + 1, REACH) - still))
    earlier = rate.shift(LEAST).over(SERIES)
    linear = rate - earlier <= 1.5 * LEAST / (index + 1) * rate  # a range test grows faster
    highest = (rate > 1.0001 * recent_max(rate.shift(LEAST), REACH, at_least=1)) & (rate >= peak)
    rising = ~zero & (rate > rate.shift(1).over(SERIES)) & linear & highest
    first_warm_up = (start_value(VALUE) < 0.5 * rate) & (start_value(STEP) <= 0.1 * end)
    first_group = pl.col(Signal.LEARNING_RATE).fill_null(0)  # another one may be frozen by design
    learns = recent_median(Signal.LOSS, LEAST) < 0.98 * start_median(Signal.LOSS, LEAST)
    untrained = (pl.col("trained") >= 200) & (first_group <= ZERO) & ~learns.fill_null(False)
    variants = {
        "never-above-zero": (peak <= ZERO) & untrained,
        "ended-before-plan": zero & rests & too_early & (smallest < 0.2),
        "ended": zero & rests & planned.is_null() & (smallest < 0.1) & (zero_share >= zero_share_of_run),
        "floor-before-plan": floor & rests & too_early & smooth,
        "warm-up-too-long": rising & first_warm_up & (step > end),
    }
    severities = {
        Severity.CLEAN: pl.col(VARIANT).is_null(),
        Severity.CRITICAL: (pl.col(VARIANT) == "never-above-zero") | (zero & (left > 0.5)),
    }
    forgotten = (floor | (zero & (peak > ZERO) & planned.is_not_null())) & pl.col("since").is_null()
    return (
        seen.with_columns(first_true(variants).alias(VARIANT), zero_share=zero_share)
        .filter(index + 1 >= LEAST, ~forgotten)
        .with_columns(
            first_true(severities, otherwise=Severity.WARNING).alias(SEVERITY),
            pl.when(pl.col(VARIANT).is_not_null() & rests).then("since").alias(ONSET),
        )
        .select(SERIES, INDEX, STEP, SEVERITY, VARIANT, ONSET, VALUE, *EVIDENCE)
    )
