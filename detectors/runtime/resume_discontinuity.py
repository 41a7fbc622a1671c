"""A resume brought back the weights and lost what belongs to them: schedule, optimizer or step counter.

## What it catches
A learning rate that after a restart is a fifth higher than the attempt before had at the very same steps, or
less than half as high. And a step counter and a learning rate that began again although the loss did not: it
stands where the attempt before ended, far below where that one began and not at the loss of guessing, from
its very first point on.

## Why it matters
A schedule that starts again means a second warm-up at rates that the model has long outgrown; an optimizer
without its moments takes wild first steps. What had been gained is partly lost, and the rest of the run
follows another plan than the one that is written down.

## What to do
Save and restore optimizer, scheduler, gradient scaler, step counter and random state along with the
weights, and for reinforcement learning the replay buffer and the running statistics of the environment. In
transformers pass `resume_from_checkpoint` and keep `save_only_model` off. Log the rate right after a
resume and compare it with the last one.

## When it is wrong
A second stage of training that starts from the weights of the first one, with a schedule of its own and in
the same directory, looks the same. A rate that is a little lower is a person's choice. Steps that begin
again alone say nothing: they may count the batches of an epoch, or the log may hold several trainings. So a
lost counter is not found where no rate is logged, or where it is a constant.

## Source
Catalogue R4 and O8.
"""

from typing import Annotated

import numpy as np
import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.reading.measurements import GUESSES
from sentinel.detectors.runtime.restarts import EARLIER_ROWS, earlier_value, goes_on, is_earlier, with_restart
from sentinel.detectors.schema import SERIES, STEP, VALUE, First, Last
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import Floats, is_of, nearest, start_value, with_arrays
from sentinel.detectors.verdict import SkipReason, verdicts

MAX_LOSS_LEFT = 0.25  # of the earlier fall of the loss: how far above its end a loss that goes on may be
AT_GUESSING = 0.001  # of the loss of guessing, within which a new training begins
SAME_RATE = 0.02  # of the highest rate, within which two first rates are one
LOWER = 0.5  # of the rate before: one that is no lower is a choice of the one who resumed
MIN_STEPS_FRACTION = 0.5  # of the steps before: a restart at fewer began anew
RATE = Last(Signal.LEARNING_RATE)
FIRST_RATE = First(Signal.LEARNING_RATE)


@detector(
    judges=(Signal.LEARNING_RATE, Signal.LOSS),
    uses=(First(Signal.LOSS), RATE, FIRST_RATE),
    history=History(head=1, earlier=EARLIER_ROWS),
    maturity=Maturity.STABLE,
    cause=Cause.RESUME,
    inhibits=(Cause.SCHEDULE, Cause.LOSS_SHAPE, Cause.DIVERGENCE),  # a lost optimizer throws the loss back
    evidence={
        "rate_before": Measure("rate before the restart", Unit.NONE),
        "level": Measure("first value after the restart", Unit.SAME),
        "earlier_level": Measure("last level before the restart", Unit.SAME),
        "earlier_first": Measure("first loss before the restart", Unit.NONE),
        "first_step": Measure("first step after the restart", Unit.STEP),
        "last_step": Measure("last step before the restart", Unit.STEP),
    },
    variants={
        "rate": Variant(
            "after a restart the learning rate at step {step} is {value:.3g}; the attempt before had "
            "{rate_before:.3g}",
            ("R4", "O8", "A-learning-rate"),
        ),
        "counter": Variant(
            "steps and the learning rate began again at {first_step} while the loss went on at {level:.4g}, "
            "where step {last_step} had ended: the weights were restored, the step counter and what hangs on "
            "it were not",
            ("R4", "O8"),
        ),
    },
)
def resume_discontinuity(
    points: pl.LazyFrame,
    *,
    other: Annotated[float, "share by which two rates at one step must differ"] = 0.2,
    of_peak: Annotated[float, "share of the highest rate by which they must differ, too"] = 0.02,
    learnt: Annotated[float, "share of its first loss below which the attempt before must have come"] = 0.8,
) -> pl.LazyFrame:
    value = pl.col(VALUE)
    is_rate = is_of(Signal.LEARNING_RATE)
    first_step = pl.col("first_step")
    last_step = pl.col("last_step")
    measured = (
        with_restart(points)
        .with_columns(
            level=start_value(VALUE),
            earlier_level=value.filter(pl.col("in_tail")).median().over(SERIES),
            earlier_first=earlier_value(First(Signal.LOSS).column),
            peak=pl.max_horizontal(value, value.filter(is_earlier()).max().over(SERIES)),
            rate_began_again=_rate_began_again(other, of_peak),
            steps_go_on=goes_on(),
        )
        .with_columns(loss_goes_on=_loss_goes_on(learnt))
    )
    measured = with_arrays(measured, ("rate_before",), _rate_before, every=1, at_least=1)
    return verdicts(
        measured.with_columns(pl.when(is_rate).then(pl.col("rate_before").fill_nan(None))),
        judged={
            SkipReason.NO_RESTART: last_step.is_not_null(),
            SkipReason.NOT_COMPARABLE: pl.col("rate_before").is_not_null() | ~is_rate,
        },
        found={
            "rate": is_rate & pl.col("steps_go_on") & _differs(other, of_peak),
            "counter": ~is_rate
            & (first_step < MIN_STEPS_FRACTION * last_step)
            & pl.col("rate_began_again")
            & pl.col("loss_goes_on"),
        },
        onset=first_step,
    )


def _differs(other: float, of_peak: float) -> pl.Expr:
    """Return whether the rate differs from the one before, by shares of the larger and of the peak, and is
    higher or far lower.
    """
    value = pl.col(VALUE)
    before = pl.col("rate_before")
    is_other = (value > before) | (value < LOWER * before)
    return is_other & _are_apart(value, before, other, of_peak * pl.col("peak"))


def _rate_began_again(other: float, of_peak: float) -> pl.Expr:
    """Return whether the first rate of the attempt is another one than the last one before: a higher one, or
    that with which the attempt before began.

    A rate that goes on, or that falls in steps, belongs to steps that begin again in each epoch.
    """
    now = pl.col(FIRST_RATE.column)
    first_rate = earlier_value(FIRST_RATE.column)
    end = earlier_value(RATE.column)
    peak = pl.max_horizontal(now, pl.col(RATE.column).filter(is_earlier()).max().over(SERIES))
    begins_alike = (now - first_rate).abs() <= SAME_RATE * peak
    return _are_apart(now, end, other, of_peak * peak) & ((now > end) | begins_alike)


def _are_apart(rate: pl.Expr, before: pl.Expr, other: float, least: pl.Expr) -> pl.Expr:
    difference = (rate - before).abs()
    return (difference > other * pl.max_horizontal(rate, before)) & (difference > least)


def _loss_goes_on(learnt: float) -> pl.Expr:
    """Return whether the loss begins near where the attempt before ended, which had learned something.

    Near is no higher than its last points, or a part of the fall before, of a positive loss in its logarithm.
    A loss at that of guessing is a training of its own, whatever an earlier one began with.
    """
    level = pl.col("level")
    first = pl.col("earlier_first")
    end = pl.col("earlier_level")
    ratio = pl.when(end > 0).then(first / end).otherwise(1.0)
    near = pl.when(end > 0).then(end * ratio**MAX_LOSS_LEFT).otherwise(end + MAX_LOSS_LEFT * (first - end))
    highest = pl.max_horizontal(near, pl.col(VALUE).filter(pl.col("in_tail")).max().over(SERIES))
    guesses = (level / nearest(level, GUESSES.tolist()) - 1).abs() < AT_GUESSING
    return (end < learnt * first) & (level <= highest) & ~guesses


def _rate_before(frame: pl.DataFrame, due: pl.DataFrame) -> dict[str, Floats]:
    """Return what the attempt before had at each row's step; NaN where it was not there."""
    rates = np.full(len(due), np.nan)
    earlier = frame.filter(is_earlier())
    series = due[SERIES].to_numpy()
    steps = due[STEP].to_numpy()
    for key, rows in earlier.group_by(SERIES):
        at = np.flatnonzero(series == key[0])
        step = rows[STEP].to_numpy()
        inside = at[(steps[at] >= step[0]) & (steps[at] <= step[-1])]
        rates[inside] = np.interp(steps[inside], step, rows[VALUE].to_numpy())
    return {"rate_before": rates}
