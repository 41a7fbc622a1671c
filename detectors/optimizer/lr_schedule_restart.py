"""The learning rate begins its schedule again in the middle of a run: a resume lost the schedule's state.

## What it catches
A learning rate that falls within one point to a fifth or less, from well above its floor, and then rises as
it did at the very start of the run: the same warm-up again, point by point. The loss must go on where it
was, so the weights are still there. Steps need not go back.

## Why it matters
A resumed training that finds no state of its scheduler starts a new one. It trains through a second warm-up
and then at rates that the model has outgrown. The planned decay never comes, because the schedule is as
long as before and the run is not. The optimizer's moments are mostly lost with it.

## What to do
Stop and resume from the checkpoint with its optimizer and scheduler state. In transformers save with
`save_only_model` off and look whether the checkpoint holds `optimizer.pt` and `scheduler.pt`. In a loop of
your own restore `scheduler.state_dict()` along with the weights. Log the rate right after a resume and
compare it with the last one.

## When it is wrong
A second stage of training that keeps the weights and has the same schedule looks the same. Cosines with warm
restarts and triangular schedules stay quiet, because they come down to their floor before they rise.
Restarts of the optimizer that are meant, as in ReLoRA, mostly have a warm-up of their own.

## Source
Catalogue R4 and O8. In transformers a resume without `scheduler.pt` gives the rates of step 0 at the steps
that follow (`Trainer._load_optimizer_and_scheduler`).
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, SERIES, STEP, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import Floats, recent_max, seen_max, with_arrays
from sentinel.detectors.verdict import SkipReason, verdicts

COMPARED_POINTS = 64  # points of the warm-up that are compared, and after which a restart is past
MIN_REPEATED_POINTS = 8  # points that must repeat the start of the run; as many tell the level of the loss
MIN_PEAK_FRACTION = 0.2  # of the highest rate: what drops from below has come to the end of its schedule
MAX_RATE_DIFFERENCE = 0.02  # of a rate at the start: how far the repeated one may be off
MIN_RISE = 2  # times the first rate: what the repeated ones must reach
MAX_LOSS_LEFT = 0.25  # of the earlier fall of the loss: how far above its end a loss that goes on may be
MEASURES = ("before", "after", "since", "repeated", "off", "risen", "loss_left")


@detector(
    judges=(Signal.LEARNING_RATE,),
    uses=(Signal.LOSS,),
    history=History(recent=2 * COMPARED_POINTS, head=COMPARED_POINTS),
    maturity=Maturity.STABLE,
    cause=Cause.RESUME,
    inhibits=(Cause.SCHEDULE, Cause.LOSS_SHAPE, Cause.DIVERGENCE),  # a lost optimizer throws the loss back
    evidence={
        "before": Measure("rate before the restart", Unit.SAME),
        "after": Measure("first rate after it", Unit.SAME),
        "since": Measure("restarted at", Unit.STEP),
        "repeated": Measure("points that repeat the start of the run", Unit.POINTS),
    },
    variants={
        "restarts": Variant(
            "learning rate fell from {before:.3g} to {after:.3g} at step {since:.0f} and repeats the warm-up "
            "of the run's start, while the loss goes on: a resume lost the schedule",
            ("R4", "O8", "A-learning-rate"),
        )
    },
)
def lr_schedule_restart(
    points: pl.LazyFrame,
    *,
    least_drop: Annotated[float, "largest share of the rate before that may be left after the restart"] = 0.2,
) -> pl.LazyFrame:
    rate = pl.col(VALUE)
    index = pl.col(INDEX)
    before = rate.shift(1).over(SERIES)
    peak = seen_max(VALUE, COMPARED_POINTS, 2 * COMPARED_POINTS)
    dropped = (
        (rate < least_drop * before) & (before > MIN_PEAK_FRACTION * peak) & (index >= MIN_REPEATED_POINTS)
    )
    restart = recent_max(pl.when(dropped).then(index), COMPARED_POINTS, at_least=1)
    measured = points.with_columns(restart=restart)
    measured = with_arrays(measured, MEASURES, _compare, every=1, at_least=2 * MIN_REPEATED_POINTS).fill_nan(
        None
    )
    return verdicts(
        measured,
        judged={SkipReason.NO_RESTART: pl.col("repeated").is_not_null()},
        found={
            "restarts": (pl.col("off") < MAX_RATE_DIFFERENCE)
            & (pl.col("risen") > MIN_RISE)
            & (pl.col("loss_left") < MAX_LOSS_LEFT)
        },
        onset=pl.col("since"),
    )


def _compare(frame: pl.DataFrame, due: pl.DataFrame) -> dict[str, Floats]:
    """Return the points since a restart beside the first points of the attempt; NaN where there was none
    lately.

    ``off`` is their largest difference, ``risen`` the highest rate over the first one, and ``loss_left`` the
    share of the earlier fall of the loss that was lost.
    """
    step = frame[STEP].to_numpy()
    rate = frame[VALUE].to_numpy()
    loss = frame[Signal.LOSS].fill_null(np.nan).to_numpy()
    measured = np.full((len(due), len(MEASURES)), np.nan)
    repeated = (due[INDEX] - due["restart"] + 1).fill_null(0).to_numpy()
    begins = due["begin"].to_numpy()
    ends = due["row"].to_numpy() + 1
    for due_row in np.flatnonzero(repeated >= MIN_REPEATED_POINTS):
        run = slice(begins[due_row], ends[due_row])
        at = ends[due_row] - repeated[due_row] - begins[due_row]
        measured[due_row] = _repetition(step[run], rate[run], loss[run], at)
    return dict(zip(MEASURES, measured.T, strict=True))


def _repetition(step: Floats, rate: Floats, loss: Floats, at: int) -> Sequence[float]:
    """Return the values of ``MEASURES`` for an attempt that restarted at a row; NaN where none begins."""
    off = _off(step, rate, at)
    if off is None:
        return [np.nan] * len(MEASURES)
    again = rate[at:]
    return rate[at - 1], again[0], step[at], len(again), off, again.max() / again[0], _loss_left(loss, at)


def _off(step: Floats, rate: Floats, at: int) -> float | None:
    """Return how far the rates since a restart are off those of the start, as a share; None where they begin
    later.

    A restart may fall elsewhere between two points of the log than the start of the run does.
    """
    head = slice(min(COMPARED_POINTS, at))
    again = rate[at:]
    start, then = (np.r_[2 * series[0] - series[1], series[head]] for series in (rate, step))
    rising = np.maximum.accumulate(start[: start.argmax() + 1])
    then_again = np.interp(again[0], rising, then[: len(rising)]) + step[at:] - step[at]
    if then_again[0] > then[2]:
        return None
    off = np.abs(again - np.interp(then_again, then, start))[then_again <= then[-1]].max()
    return float(off / start[: len(again) + 1].max())


def _loss_left(loss: Floats, at: int) -> float:
    """Return the fraction of the earlier fall of the loss that was lost at a restart."""
    head = loss[: min(COMPARED_POINTS, at)]
    before = np.median(loss[at - MIN_REPEATED_POINTS + 1 : at + 1])
    after = np.median(loss[at + 1 :])
    first = np.max(head[np.isfinite(head)], initial=before)
    return float((after - before) / (first - before))
