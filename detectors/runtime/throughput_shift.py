"""Training has become slower, and stays so.

## What it catches
A median speed over the last twenty points that is 30 % below the median of the two hundred points before
them. Speeds are steps, samples or tokens per second; a time per step counts by its inverse. Where a log has
none of these, its clock tells the time per step: the seconds since the start, a speed averaged since then, or
the times of the rows. Evaluations and checkpoints are in such times. Three in four of the last twenty steps
therefore have to take more than twice as long as nine in ten of those before, and all of them 5 s longer.

## Why it matters
Nothing is wrong with the model, but the bill is. A slow disk, a neighbour on the machine, a hot or
throttled device, a loader that waits, or a feature that was switched on halfway look like this.

## What to do
Look at the device's utilisation and clock, at the loader's waiting time and at what else runs there.
If it began with a restart, compare the two environments.

## When it is wrong
Longer sequences, longer completions and evaluations inside a step take longer by right, and so do trainings
that take turns. A finding is therefore info and pages nobody. A neighbour that comes and goes slows the steps
of a clock in part, and nothing is said of it. Beside rewards no clock is judged: an episode that lasts longer
is often a better one.

## Source
Catalogue DP5.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import INFO, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import SERIES, STEP, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import is_of, now_and_then, recent_quantile
from sentinel.detectors.supervised import ELSE, is_supervised
from sentinel.detectors.verdict import SkipReason, verdicts

LEVEL_POINTS = 20  # points of the present speed
EARLIER_POINTS = 200  # points before those
MIN_EARLIER_POINTS = 80  # points of those that suffice
FAST_SHARE = 0.25  # quantile of the present times per step by a clock
SLOW_SHARE = 0.9  # quantile of the earlier ones: evaluations and checkpoints of each tenth step lie beyond
MIN_LOST_SECONDS = 5.0  # by the last 20 points of a clock: machines stumble for shorter


@detector(
    judges=(Signal.TOKENS_PER_SECOND, Signal.THROUGHPUT, Signal.STEP_TIME, Signal.PACE),
    uses=ELSE,
    history=History(recent=3 * LEVEL_POINTS + EARLIER_POINTS),
    every=5,
    maturity=Maturity.STABLE,
    cause=Cause.SPEED,
    evidence={
        "level": Measure("median of the last 20 points", Unit.SAME),
        "before": Measure("median of the 200 points before", Unit.SAME),
        "speed": Measure("speed, of the earlier one", Unit.SHARE),
    },
    variants={"slower": Variant("training runs at {speed:.0%} of its earlier speed", ("DP5",), (INFO,))},
)
def throughput_shift(
    points: pl.LazyFrame,
    *,
    slow: Annotated[float, "share of the earlier speed that is too slow"] = 0.7,
    crawling: Annotated[float, "share of the earlier speed that is too slow by a clock"] = 0.5,
    recovered: Annotated[float, "share of the earlier speed at which it is over"] = 0.8,
) -> pl.LazyFrame:
    speed = pl.col("level") / pl.col("before")
    by_clock = is_of(Signal.PACE)
    crawls = _crawls_by_clock(crawling)
    per_step = is_of(Signal.STEP_TIME) | by_clock
    earlier = {"n": EARLIER_POINTS, "at_least": MIN_EARLIER_POINTS}
    return verdicts(
        points.with_columns(
            **now_and_then(VALUE, LEVEL_POINTS, past=earlier | {"skip": LEVEL_POINTS}),
            fast=recent_quantile(FAST_SHARE, VALUE, LEVEL_POINTS),
            # Twice as far back, since a tenth of slow steps among the earlier ones would end the finding.
            slow=recent_quantile(SLOW_SHARE, VALUE, skip=2 * LEVEL_POINTS, **earlier),
        ).with_columns(speed=pl.when(per_step).then(1 / speed).otherwise(speed)),
        judged={
            SkipReason.NOT_SUPERVISED: ~by_clock | is_supervised(),
            SkipReason.FEW_POINTS: pl.col("before").is_not_null(),
            SkipReason.RANGE: (pl.col("before") > 0) & (pl.col("level") > 0),
        },
        found={"slower": pl.when(by_clock).then(crawls).otherwise(pl.col("speed") < slow)},
        lasts=pl.col("speed") < recovered,
        above=pl.when(per_step).then(pl.col("before") / recovered),
        below=pl.when(~per_step).then(pl.col("before") * recovered),
    )


def _crawls_by_clock(crawling: float) -> pl.Expr:
    """Return whether most steps take far longer than nearly all before, and lose time that a person notes."""
    steps = pl.col(STEP) - pl.col(STEP).shift(LEVEL_POINTS).over(SERIES)
    lost_seconds = (pl.col("level") - pl.col("before")) * steps
    return (pl.col("slow") < crawling * pl.col("fast")) & (lost_seconds >= MIN_LOST_SECONDS)
