"""The learning rate of a run: how it moves, and how far it has come of what was planned."""

import polars as pl

from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.reading.roles import PARTS, Role
from sentinel.detectors.schema import INDEX, SERIES, SIGNAL, STEP, VALUE
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import PRECISION, of_buckets, recent_max, resting, seen_max, start_value

PLANS = (
    *(Setting.SCHEDULER, Setting.PEAK_LEARNING_RATE, Setting.WARMUP_RATIO, Setting.ACCUMULATION_STEPS),
    Setting.SCHEDULE_STEPS,
)
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
    "bottom": Measure("lowest of the last 250 points on a way down", Unit.SAME),
}
"""The columns of `with_schedule` that a reader may see."""

MOVING = ("linear", "cosine", "restarts", "polynomial", "exponential", "one-cycle", "inverse-sqrt")
"""Schedules whose rate is never the same for long."""

COMING_DOWN = ("linear", "cosine", "polynomial")
"""Schedules that move until the training ends, and never come up again."""

HISTORY_ROWS = 250
"""Recent rows that a rule has to declare."""

MIN_RESTING_ROWS = 10
"""Rows that a rate must rest before it counts as resting; a rise is measured over as many."""

ZERO_RATE = 1e-12
"""A rate that moves no weights; cosines end at 1e-20 rather than at zero."""

MIN_SMOOTH_CHANGES = 8
"""Changes that a smooth decay has at least."""

MIN_SMOOTH_FRACTION = 0.5
"""Fraction of the rows before the rate rested that are changes in a smooth decay."""

MAX_RUNG_FRACTION = 0.2
"""Fraction of the rows before the rate rested that are changes, below which it moved in rungs."""

MAX_LINE_SLOPES = 1.5
"""Slopes of a line from zero: a warm-up rises by no more, a range test by more."""

MIN_RATE_RATIO = 1.0001
"""Times an earlier rate; a rate beyond that has risen."""

MIN_START_RATIO = 1.5
"""Times the rate at the start; a rate beyond that is above it."""

EARLY_FRACTION = 0.5
"""Fraction of the present rate, or of the planned peak; a rate below that is early in its warm-up."""

OVERDUE_BELOW_PEAK = 1.25
"""Times the planned warm-up after which it is overdue, with a rate far below the planned peak."""

OVERDUE = 2
"""Times the planned warm-up after which it is overdue in any case."""

MAX_HARDLY_RISEN = 1.05
"""Times the rate at the start up to which it has hardly begun to rise."""

MIN_HARDLY_RUNGS = 4
"""Changes in which it did so."""

HELD_OUT = [signal for signal, part in PARTS.items() if part.role in (Role.METRIC, Role.HELD_OUT_LOSS)]
"""Signals of evaluations."""

RECENT_FRACTION = 0.2
"""Fraction of the run, the last one, within which a warm-up that continues has risen."""


def warms_up(most: int) -> pl.Expr:
    """Return whether the learning rate rose over the last third of the attempt, or began it far below its
    peak.

    A third has ``most`` rows at most. Far is a tenth.
    """
    rate = pl.col(Signal.LEARNING_RATE)
    third = ((pl.col(INDEX) + 1) // 3).clip(1, most)
    begin = (pl.int_range(1, pl.len() + 1, dtype=pl.Int64) - third).clip(0)
    before = rate.gather(begin).over(SERIES)
    peak = seen_max(Signal.LEARNING_RATE, most, most)
    return ((rate > 1.01 * before) | (before < 0.1 * peak)).fill_null(False)


def with_schedule(points: pl.LazyFrame, *, longest_warmup: float) -> pl.LazyFrame:
    """Return a frame whose judged signal is the learning rate, with the columns of ``SCHEDULE`` and some
    more.

    The warm-up should ``end`` after the share ``longest_warmup`` of the plan, and soon after its planned end.
    ``start_step`` is the first step, ``warm_up`` the planned steps of the warm-up. ``lowest`` is the lowest
    rate so far and ``least_of_peak`` the lowest above zero, as a share of the peak. Four columns are
    conditions. The rate had a ``smooth`` course before it rested. It is ``rising``, either along a line from
    its start or in rare rungs far below the planned peak. It ``only_rose`` so far, along a line or hardly
    above its start in rare rungs, and lately too. It ``should_move`` by what the settings say.
    """
    planned = pl.col("planned")
    scheduler = pl.col(Setting.SCHEDULER)
    accumulated = pl.col(Setting.ACCUMULATION_STEPS).fill_null(1).clip(1)
    planned_warm_up = pl.coalesce(Signal.WARMUP_STEPS, planned * pl.col(Setting.WARMUP_RATIO))
    far_below = _is_far_below_peak()
    in_line = _is_in_line()
    in_rungs = pl.col("rungs") < MAX_RUNG_FRACTION * pl.col("before_rest")
    overdue = pl.when(far_below).then(OVERDUE_BELOW_PEAK).otherwise(OVERDUE)
    rises_in_rungs = far_below & in_rungs & (pl.col("rested") < pl.col("warm_up"))
    never_fell = (_lately("fell") == 0) & (pl.col("start") <= pl.col("lowest"))
    hardly_rested = pl.col("rested") <= RECENT_FRACTION * pl.col("trained")
    return (
        _with_course(points)
        .with_columns(planned=pl.col(Signal.TOTAL_STEPS), planned_peak=pl.col(Setting.PEAK_LEARNING_RATE))
        .with_columns(warm_up=planned_warm_up * accumulated, left=1 - pl.col("since") / planned)
        .with_columns(
            end=pl.min_horizontal(longest_warmup * planned * accumulated, overdue * pl.col("warm_up"))
        )
        .with_columns(
            smooth=pl.col("rungs")
            >= pl.max_horizontal(MIN_SMOOTH_CHANGES, MIN_SMOOTH_FRACTION * pl.col("before_rest")),
            rising=_is_at_peak() & ((in_line & _rises()) | rises_in_rungs),
            only_rose=_is_at_peak()
            & (in_line | (in_rungs & _has_hardly_risen()))
            & never_fell
            & hardly_rested,
            should_move=scheduler.is_in(MOVING) | (scheduler.is_null() & _misses_warm_up()),
        )
    )


def _with_course(points: pl.LazyFrame) -> pl.LazyFrame:
    """Return a frame with what the rates so far tell, whatever was planned.

    ``rested`` counts the steps and ``still`` the rows on the present rate, ``before_rest`` the recent rows
    before, and ``rungs`` the recent changes. ``before`` and ``long_before`` are the rate one row ago and ten.
    """
    rate = pl.col(VALUE)
    step = pl.col(STEP)
    level = pl.col("level")
    rows = pl.col(INDEX) + 1
    peak = pl.col("peak")
    still = pl.col("still")
    lows = pl.col("coarse_low").list
    highs = pl.col("coarse_high").list
    zeros = pl.element() <= ZERO_RATE
    above_zero = pl.element().filter(pl.element() > ZERO_RATE)
    smallest_lately = (
        pl.when(rate > ZERO_RATE).then(rate).rolling_min(HISTORY_ROWS, min_samples=1).over(SERIES)
    )
    return (
        points.with_columns(
            level=rate.clip(lower_bound=ZERO_RATE),
            start=start_value(VALUE),
            start_step=start_value(STEP),
            before=rate.shift(1).over(SERIES),
            long_before=rate.shift(MIN_RESTING_ROWS).over(SERIES),
            peak=pl.max_horizontal(recent_max(rate, HISTORY_ROWS, at_least=1), of_buckets(highs.max())),
            lowest=pl.min_horizontal(-recent_max(-rate, HISTORY_ROWS, at_least=1), of_buckets(lows.min())),
            smallest=pl.min_horizontal(smallest_lately, of_buckets(lows.eval(above_zero).list.min())),
        )
        .with_columns(
            changed=(level != level.shift(1)).over(SERIES),
            fell=rate < pl.col("before"),
            still=resting(level, HISTORY_ROWS),
            trained=step - pl.col("start_step"),
            of_peak=rate / peak,
            least_of_peak=pl.col("smallest") / peak,
        )
        .with_columns(
            since=recent_max(pl.when("changed").then(STEP), HISTORY_ROWS, at_least=1),
            zero_share=pl.max_horizontal(still / rows, of_buckets(highs.eval(zeros).list.mean())),
            before_rest=pl.min_horizontal(rows, HISTORY_ROWS) - still,
            rungs=_lately("changed"),
            bottom=-recent_max(pl.when("fell").then(-rate), HISTORY_ROWS, at_least=1),
        )
        .with_columns(rested=step - pl.col("since"))
    )


def _lately(condition: str) -> pl.Expr:
    """In how many of the last rows a condition held."""
    return pl.col(condition).cast(pl.Int64).rolling_sum(HISTORY_ROWS, min_samples=1).over(SERIES)


def _is_at_peak() -> pl.Expr:
    return (pl.col(VALUE) >= pl.col("peak")) & (pl.col(VALUE) > ZERO_RATE)


def _is_far_below_peak() -> pl.Expr:
    """Return whether the rate is above its start and far below the planned peak."""
    rate = pl.col(VALUE)
    start = pl.col("start")
    return (start < rate / MIN_START_RATIO) & (rate < EARLY_FRACTION * pl.coalesce("planned_peak", "start"))


def _is_in_line() -> pl.Expr:
    """Return whether the rate began low and has lately risen no more steeply than a line from zero."""
    rate = pl.col(VALUE)
    line = MAX_LINE_SLOPES * MIN_RESTING_ROWS / (pl.col(INDEX) + 1) * rate
    return (rate - pl.col("long_before") <= line) & (pl.col("start") < EARLY_FRACTION * rate)


def _rises() -> pl.Expr:
    """Return whether the rate is higher than a row ago, and than all that are ten rows old."""
    rate = pl.col(VALUE)
    highest_before = recent_max(pl.col("long_before"), HISTORY_ROWS, at_least=1)
    return (rate > pl.col("before")) & (rate > MIN_RATE_RATIO * highest_before)


def _has_hardly_risen() -> pl.Expr:
    rate = pl.col(VALUE)
    start = pl.col("start")
    is_hardly_above = (rate > start) & (rate < MAX_HARDLY_RISEN * start)
    return (pl.col("rungs") >= MIN_HARDLY_RUNGS) & is_hardly_above


def _misses_warm_up() -> pl.Expr:
    """Return whether the rate is at its planned peak after a warm-up that the log saw begin."""
    at_planned_peak = (pl.col(VALUE) / pl.coalesce("planned_peak", "start") - 1).abs() < PRECISION
    saw_warm_up = pl.col("start_step") < EARLY_FRACTION * pl.col("warm_up")
    return at_planned_peak & saw_warm_up & (pl.col(STEP) > pl.col("end"))


def planned_steps() -> pl.Expr:
    """Return the planned steps: those that are stated, or those of the planned epochs at the pace so far.

    A rule lists both signals in ``uses`` and the setting in ``settings``. A plan that was passed counts
    something else. Evaluations at consecutive steps from the first on are those of epochs, where the log
    counts none.
    """
    epochs = pl.col(Setting.EPOCHS)
    of_each_epoch = pl.col(SIGNAL).is_in(HELD_OUT) & pl.col(STEP).is_between(pl.col(INDEX), pl.col(INDEX) + 1)
    epoch = pl.coalesce(Signal.EPOCH, pl.when(of_each_epoch).then(pl.col(INDEX) + 1))
    at_this_pace = pl.when(epoch.is_between(0, epochs, closed="right")).then(pl.col(STEP) * epochs / epoch)
    return pl.coalesce(Signal.TOTAL_STEPS, at_this_pace)
