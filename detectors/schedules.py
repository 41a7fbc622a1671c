"""The learning rate of a run: how it moves, and how far it has come of what was planned."""

import polars as pl

from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, SERIES, STEP, VALUE
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import PRECISION, of_buckets, recent_max, resting, seen_max, start_value

PLANS = (Setting.SCHEDULER, Setting.PEAK_LEARNING_RATE, Setting.WARMUP_RATIO, Setting.ACCUMULATION_STEPS)
"""Settings that `with_schedule` reads."""

SCHEDULE = {
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
}
"""The columns of `with_schedule` that a reader may see."""

MOVING = ("linear", "cosine", "restarts", "polynomial", "exponential", "one-cycle", "inverse-sqrt")
"""Schedules whose rate is never the same for long."""

REACH = 250
"""Rows that are looked back at."""

LEAST = 10
"""Rows that a rate must rest, and over which it must rise."""

ZERO = 1e-12
"""A rate that moves no weights; cosines end at 1e-20 rather than at zero."""

SMOOTH = 8, 0.5
"""Changes that make a decay smooth, and their share of the rows before it rested."""

RARE = 0.2
"""Share of the rows before it rested below which a rate changed in rare rungs."""

LINE = 1.5
"""Times the slope of a line from zero up to which a rise is one; the rise of a range test is steeper."""

LOW = 0.5
"""Share of its present value, or of the planned peak, below which a rate is or was early in its warm-up."""

OVERDUE = 1.25, 2
"""Times the planned warm-up after which it should have ended: the first with the rate far below its planned
peak, the second otherwise."""

HARDLY = 1.05, 4
"""Times its start up to which a rate has hardly begun to rise, and the rungs in which it did."""

LATELY = 0.2
"""Share of the run within which a warm-up that goes on has risen."""


def warms_up(most: int) -> pl.Expr:
    """Whether the learning rate rose over the last third of the attempt, or began it far below its peak.

    A third has ``most`` rows at most. Far is a tenth.
    """
    rate = pl.col(Signal.LEARNING_RATE)
    third = ((pl.col(INDEX) + 1) // 3).clip(1, most)
    begin = (pl.int_range(1, pl.len() + 1, dtype=pl.Int64) - third).clip(0)
    before = rate.gather(begin).over(SERIES)
    peak = seen_max(Signal.LEARNING_RATE, most, most)
    return ((rate > 1.01 * before) | (before < 0.1 * peak)).fill_null(False)


def with_schedule(points: pl.LazyFrame, *, longest_warmup: float) -> pl.LazyFrame:
    """A frame whose judged signal is the learning rate, with the columns of ``SCHEDULE`` and some more.

    The warm-up should ``end`` after the share ``longest_warmup`` of the plan, and soon after its planned end.
    ``start_step`` is the first step, ``warm_up`` the planned steps of the warm-up. ``lowest`` is the lowest
    rate so far and ``least_of_peak`` the lowest above zero, as a share of the peak. Four columns are
    conditions. The rate had a ``smooth`` course before it rested. It is ``rising``, either along a line from
    its start or in rare rungs far below the planned peak. It ``only_rose`` so far, along a line or hardly
    above its start in rare rungs, and lately too. It ``should_move`` by what the settings say.
    """
    rate, index, level, planned = pl.col(VALUE), pl.col(INDEX), pl.col("level"), pl.col("planned")
    peak, start, still, warm_up = (pl.col(n) for n in ("peak", "start", "still", "warm_up"))
    lows, highs = pl.col("coarse_low").list, pl.col("coarse_high").list
    at_zero = highs.eval(pl.element() <= ZERO).list.mean()
    above_zero = pl.element().filter(pl.element() > ZERO)
    smallest_lately = pl.when(rate > ZERO).then(rate).rolling_min(REACH, min_samples=1).over(SERIES)
    accumulated = pl.col(Setting.ACCUMULATION_STEPS).fill_null(1).clip(1)
    planned_warm_up = pl.coalesce(Signal.WARMUP_STEPS, planned * pl.col(Setting.WARMUP_RATIO))
    before, long_before = (rate.shift(rows).over(SERIES) for rows in (1, LEAST))
    at_peak = (rate >= peak) & (rate > ZERO)
    rose = (rate > pl.col("before")) & (rate > 1.0001 * recent_max(pl.col("long_before"), REACH, at_least=1))
    in_line = (rate - pl.col("long_before") <= LINE * LEAST / (index + 1) * rate) & (start < LOW * rate)
    far_below = (start < rate / 1.5) & (rate < LOW * pl.coalesce("planned_peak", "start"))
    overdue = pl.when(far_below).then(OVERDUE[0]).otherwise(OVERDUE[1])
    scheduler, rested = pl.col(Setting.SCHEDULER), pl.col(STEP) - pl.col("since")
    at_planned_peak = (rate / pl.coalesce("planned_peak", "start") - 1).abs() < PRECISION
    misses_warm_up = at_planned_peak & (pl.col("start_step") < LOW * warm_up)
    before_rest = pl.min_horizontal(index + 1, REACH) - still
    rungs = _lately("changed")
    in_rungs = rungs < RARE * before_rest
    hardly = in_rungs & (rungs >= HARDLY[1]) & (rate > start) & (rate < HARDLY[0] * start)
    return (
        points.with_columns(level=rate.clip(lower_bound=ZERO), planned=pl.col(Signal.TOTAL_STEPS))
        .with_columns(
            before=before,
            long_before=long_before,
            changed=(level != level.shift(1)).over(SERIES),
            fell=rate < before,
            planned_peak=pl.col(Setting.PEAK_LEARNING_RATE),
            warm_up=planned_warm_up * accumulated,
            start=start_value(VALUE),
            start_step=start_value(STEP),
            peak=pl.max_horizontal(recent_max(rate, REACH, at_least=1), of_buckets(highs.max())),
            lowest=pl.min_horizontal(-recent_max(-rate, REACH, at_least=1), of_buckets(lows.min())),
            smallest=pl.min_horizontal(smallest_lately, of_buckets(lows.eval(above_zero).list.min())),
            still=resting(level, REACH),
        )
        .with_columns(
            trained=pl.col(STEP) - pl.col("start_step"),
            since=recent_max(pl.when("changed").then(STEP), REACH, at_least=1),
            end=pl.min_horizontal(longest_warmup * planned * accumulated, overdue * warm_up),
            of_peak=rate / peak,
            least_of_peak=pl.col("smallest") / peak,
            zero_share=pl.max_horizontal(still / (index + 1), of_buckets(at_zero)),
        )
        .with_columns(
            left=1 - pl.col("since") / planned,
            smooth=_lately("changed") >= pl.max_horizontal(SMOOTH[0], SMOOTH[1] * before_rest),
            rising=at_peak & ((rose & in_line) | (far_below & in_rungs & (rested < warm_up))),
            only_rose=at_peak
            & (in_line | hardly)
            & (_lately("fell") == 0)
            & (start <= pl.col("lowest"))
            & (rested <= LATELY * pl.col("trained")),
            should_move=scheduler.is_in(MOVING)
            | (scheduler.is_null() & misses_warm_up & (pl.col(STEP) > pl.col("end"))),
        )
    )


def _lately(condition: str) -> pl.Expr:
    """In how many of the last rows a condition held."""
    return pl.col(condition).cast(pl.Int64).rolling_sum(REACH, min_samples=1).over(SERIES)
