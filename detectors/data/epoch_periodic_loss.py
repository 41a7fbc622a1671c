"""The loss repeats itself from epoch to epoch: the batches come in the same order each time.

## What it catches
A training loss whose changes from point to point correlate with those one epoch earlier by more than 0.5, and
by 0.3 more than with those of the points around. Two epochs of 20 points or more are needed.

## Why it matters
Stochastic gradient descent counts on batches that are drawn anew. In a fixed order the same samples always
meet in one batch, their errors do not cancel out, and the last batches of an epoch weigh more than the
first ones in every evaluation.

## What to do
Set `shuffle=True` in the loader of the training data. With a `DistributedSampler`, call
`sampler.set_epoch(epoch)` as each epoch starts. Seed the shuffle buffer of an iterable data set with it.

## When it is wrong
Batches that are grouped by length repeat their order where the groups do. A fixed order may be meant, as in
a curriculum. Where a point is a mean over many batches, little of the order is left to see.

## Source
Catalogue DP14: an autocorrelation above 0.6 at the lag of an epoch, and above its neighbours by 0.3.
Changes take the place of levels, so that a loss that falls at each epoch's start is no finding; they are
cut at 2.5 robust standard deviations for the same reason. 0.5 is measured on simulated runs: the order must
explain half of the variance, and a correlation of chance stays five standard errors below.
"""

from typing import Annotated

import numpy as np
import polars as pl

from sentinel.detectors.api import INFO, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import MAD, Floats, has_points, with_arrays
from sentinel.detectors.verdict import SkipReason, verdicts

EVERY_POINTS = 64  # points between two verdicts: an epoch is longer
HISTORY_POINTS = 400  # points before the judged one: epochs of up to 200 points are compared
MIN_EPOCHS = 2  # epochs that are compared
MIN_EPOCH_POINTS = 20  # points that an epoch must have
NEIGHBOUR_POINTS = 2, 3, 4, 5  # points beside the lag of an epoch that are compared with it
MAX_DEVIATIONS = 2.5  # robust standard deviations at which a point is cut off
MIN_STANDARD_ERRORS = 5  # standard errors by which the correlation must exceed none


@detector(
    judges=(Signal.LOSS,),
    uses=(Signal.EPOCH,),
    history=History(recent=HISTORY_POINTS),
    every=EVERY_POINTS,
    maturity=Maturity.STABLE,
    clear=2,
    cause=Cause.LOSS_SHAPE,
    evidence={
        "lag": Measure("length of an epoch", Unit.POINTS),
        "repeats": Measure("correlation of changes with the epoch before", Unit.NONE),
        "around": Measure("highest correlation around that", Unit.NONE),
    },
    variants={
        "repeats": Variant(
            "loss repeats itself every {lag:.0f} points, which is one epoch: "
            "its changes correlate by {repeats:.2f}",
            ("DP14", "DP1"),
            (INFO,),
        )
    },
)
def epoch_periodic_loss(
    points: pl.LazyFrame,
    *,
    least_repeats: Annotated[float, "correlation with the epoch before that shows a fixed order"] = 0.5,
    least_lead: Annotated[float, "how far it must exceed the correlation at neighbouring lags"] = 0.3,
) -> pl.LazyFrame:
    measured = with_arrays(
        points,
        ("lag", "repeats", "around", "pairs"),
        _compare,
        every=EVERY_POINTS,
        at_least=MIN_EPOCHS * MIN_EPOCH_POINTS,
    )
    repeats = pl.col("repeats")
    enough = has_points(MIN_EPOCHS * MIN_EPOCH_POINTS)
    surely = (repeats > least_repeats) & (repeats > MIN_STANDARD_ERRORS / pl.col("pairs").sqrt())
    return verdicts(
        measured.fill_nan(None),
        judged={SkipReason.FEW_POINTS: enough, SkipReason.EPOCH_LENGTH: repeats.is_not_null()},
        found={"repeats": surely & (repeats > pl.col("around") + least_lead)},
        lasts=repeats > least_repeats / 2,
    )


def _compare(frame: pl.DataFrame, due: pl.DataFrame) -> dict[str, Floats]:
    """For each row the correlation with the epoch before, and the highest one at the lags around."""
    value = frame[VALUE].to_numpy()
    epoch = frame[Signal.EPOCH].fill_null(np.nan).to_numpy()
    measured = {name: np.full(len(due), np.nan) for name in ("lag", "repeats", "around", "pairs")}
    for due_row, (row, index) in enumerate(zip(due["row"], due[INDEX], strict=True)):
        rows = slice(row - min(index, HISTORY_POINTS), row + 1)
        length = _epoch_length(epoch[rows])
        if length < MIN_EPOCH_POINTS or row - rows.start < MIN_EPOCHS * length - 1:
            continue
        changes = _changes(value[rows])
        near = {lag: _correlation(changes, lag) for lag in (round(length) + by for by in (-1, 0, 1))}
        lag = max(near, key=lambda shift: near[shift])
        around = [_correlation(changes, lag + sign * away) for away in NEIGHBOUR_POINTS for sign in (-1, 1)]
        measured["lag"][due_row] = lag
        measured["repeats"][due_row] = near[lag]
        measured["around"][due_row] = max(around)
        measured["pairs"][due_row] = len(changes) - lag
    return measured


def _epoch_length(epoch: Floats) -> float:
    """Return the number of points in which the epoch grows by one; 0 where it does not grow."""
    grew = np.flatnonzero(np.diff(epoch) > 0)  # a whole number rests until the epoch is over
    passed = np.ptp(epoch[grew[[0, -1]] + 1]) if len(grew) else 0
    return float((grew[-1] - grew[0]) / passed) if passed > 0 else 0.0


def _changes(values: Floats) -> Floats:
    """Return the changes from point to point, cut where they are far out.

    They are those of the logarithm where there is one.
    """
    changes = np.diff(np.log(values) if values.min() > 0 else values)
    changes = changes - np.median(changes)
    most = MAX_DEVIATIONS * MAD * np.median(np.abs(changes))
    return np.clip(changes, -most, most)


def _correlation(changes: Floats, lag: int) -> float:
    """Of the changes with those ``lag`` points earlier; their mean is about 0."""
    return float(changes[lag:] @ changes[:-lag] / (changes @ changes) * len(changes) / (len(changes) - lag))
