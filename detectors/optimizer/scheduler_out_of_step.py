"""The scheduler does not go along with the optimizer.

## What it catches
A scheduler that makes more steps than the optimizer, one that stands more than 2 steps behind it or more than
100 ahead, and parameter groups whose rate rests while that of another group moves. `sentinel.probe` logs
these as `optim/scheduler_rate`, `optim/scheduler_offset` and `optim/groups_left_behind`.

## Why it matters
The rate is not the planned one. The logged rate may look right, since it is that of the first group, or since
no plan is logged beside it.

## What to do
Step the scheduler once after each step of the optimizer. Restore both from the checkpoint. Make the scheduler
after the last group was added.

## When it is wrong
A group that rests on purpose. An optimizer that is made anew on purpose, under a schedule that goes on. Steps
that a loss scaler skipped count for the scheduler alone; a hundred are allowed for.

## Source
Catalogue O8, R4, G-acc-sched and N-group-left-behind. The counts are exact; a step or two lie between the
calls of both.
"""

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.bounds import Bound, beyond
from sentinel.detectors.signals import Signal

BOUNDS = {
    "group-left-behind": (Signal.GROUPS_LEFT_BEHIND, Bound(most=0)),
    "stale": (Signal.SCHEDULER_OFFSET, Bound(most=2)),
    "ahead": (Signal.SCHEDULER_OFFSET, Bound(least=-100)),
    "fast": (Signal.SCHEDULER_RATE, Bound(most=1.01)),
}
"""By variant: the signal that it bounds, and where; the page gives the sources."""


@detector(
    judges=(Signal.GROUPS_LEFT_BEHIND, Signal.SCHEDULER_OFFSET, Signal.SCHEDULER_RATE),
    history=History(recent=2),
    maturity=Maturity.PREVIEW,
    cause=Cause.SCHEDULE,
    evidence={},
    variants={
        "group-left-behind": Variant(
            "the rate of {value:.0f} parameter groups rests while that of another group moves",
            ("N-group-left-behind", "O8"),
        ),
        "stale": Variant(
            "the scheduler stands {value:.0f} steps behind its optimizer, as if it was not restored",
            ("R4", "O8"),
        ),
        "ahead": Variant(
            "the optimizer's count is {value:.0f} steps from its scheduler's, as if it was not restored",
            ("R4", "O24"),
        ),
        "fast": Variant(
            "the scheduler makes {value:.2g} steps for each of the optimizer", ("G-acc-sched", "O8")
        ),
    },
)
def scheduler_out_of_step(points: pl.LazyFrame) -> pl.LazyFrame:
    return beyond(points, BOUNDS)
