"""An epoch takes a whole multiple, or a whole fraction, of the steps that it should take.

## What it catches
Steps per epoch, counted since the first point over at least one epoch, that are `k` times the planned number
or one `k`-th of it, for a whole `k` from 2 to 64. The plan is the number of batches per epoch in the run's
settings.

## Why it matters
With `k` times the steps each sample is seen `k` times per epoch: the workers or processes all read the
whole data set. With one `k`-th, most of the data are never seen. Both change the schedule and the meaning
of every number that is logged per epoch.

## What to do
Shard an iterable data set by the id of the worker and by the rank (`split_dataset_by_node`,
`get_worker_info`). Use a `DistributedSampler` for a map-style one. Compare `len(dataset)` with what
`__getitem__` returns.

## When it is wrong
Gradient accumulation divides the steps of an epoch by its steps; where the settings tell it, this is
allowed for. A log whose step counts samples is left out where the batch size is known. Packing changes the
number of samples, seldom by a whole factor.

## Source
Catalogue DP2, DP7: within 5 % of a whole number, from 2 on.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import History, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import SERIES, STEP, VALUE
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.detectors.verdict import SkipReason, verdicts

MIN_FACTOR = 2  # the smallest k
MAX_FACTOR = 64  # the largest k
EXPECTED_FACTORS = (Setting.ACCUMULATION_STEPS, Setting.BATCH_SIZE)
"""Settings whose value is a k that is right."""


@detector(
    judges=(Signal.EPOCH,),
    settings=(Setting.STEPS_PER_EPOCH, *EXPECTED_FACTORS),
    history=History(head=1),
    hold=5,
    evidence={
        "length": Measure("length of an epoch", Unit.STEPS),
        "times": Measure("times the planned length", Unit.NONE),
        "fraction": Measure("planned length over that", Unit.NONE),
        "epochs": Measure("epochs seen", Unit.NONE),
        Setting.STEPS_PER_EPOCH: Measure("planned length", Unit.STEPS),
    },
    variants={
        "longer": Variant(
            "an epoch takes {length:.4g} steps, {times:.3g} times the {steps_per_epoch:.0f} planned",
            ("DP2", "DP7"),
        ),
        "shorter": Variant(
            "an epoch takes {length:.4g} steps, a {fraction:.3g}th of the {steps_per_epoch:.0f} planned",
            ("DP7", "DP2"),
        ),
    },
)
def epoch_length_mismatch(
    points: pl.LazyFrame,
    *,
    tolerance: Annotated[float, "largest distance from a whole factor, as a share of the factor"] = 0.05,
) -> pl.LazyFrame:
    passed = {column: pl.col(column) - pl.col(column).first().over(SERIES) for column in (STEP, VALUE)}
    measured = points.with_columns(length=passed[STEP] / passed[VALUE], epochs=passed[VALUE]).with_columns(
        times=pl.col("length") / pl.col(Setting.STEPS_PER_EPOCH)
    )
    measured = measured.with_columns(fraction=1 / pl.col("times"))
    times = pl.col("times")
    fraction = pl.col("fraction")

    def whole(factor: pl.Expr) -> pl.Expr:
        near = (factor / factor.round() - 1).abs() < tolerance
        return near & factor.round().is_between(MIN_FACTOR, MAX_FACTOR)

    def near(factor: pl.Expr, setting: Setting) -> pl.Expr:
        return ((factor / pl.col(setting) - 1).abs() < tolerance).fill_null(False)

    return verdicts(
        measured,
        judged={
            SkipReason.NO_SETTING: pl.col(Setting.STEPS_PER_EPOCH).is_not_null(),
            SkipReason.FEW_POINTS: times.is_not_null() & (pl.col("epochs") >= 1),
        },
        found={
            "longer": whole(times) & ~near(times, Setting.BATCH_SIZE),
            "shorter": whole(fraction)
            & ~near(fraction, Setting.ACCUMULATION_STEPS)
            & (pl.col("length") >= MIN_FACTOR),
        },
    )
