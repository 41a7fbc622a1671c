"""The distribution of a layer's weights, gradients or activations has degenerated.

## What it catches
A histogram of a layer, against its first five:

- more than 95 % of its values are zero, and less than half were;
- its standard deviation is below a hundredth of what it was;
- its kurtosis is above 50 and ten times what it was.

Histograms of rewards, returns and lengths are left out, as far as their tags tell.

## Why it matters
Norms and losses hide the shape. A layer whose activations are all zero learns nothing any more, and a
gradient with a few huge entries moves a few weights only.

## What to do
Zeros: lower the learning rate, or use LeakyReLU or GELU; look at the inputs of that layer. A vanished
spread: look at weight decay and at the learning rate of that layer. Long tails: clip the gradients, and
look for rare tokens or outliers in the batch.

## When it is wrong
Pruned and quantised networks, and rows of an embedding that no token uses, are zero by design. Gradients
fade where the loss comes near zero.

## Source
Catalogue O26, O25, GV, GE: 95 % of zeros, 1 % of the first standard deviation, a kurtosis above 50. Nothing
of this is measured on real runs yet.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import INFO, Cause, History, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, is_of, now_and_then
from sentinel.detectors.verdict import SkipReason, verdicts

LEVEL_HISTOGRAMS = 5  # histograms that make up a level
MAX_ZEROS_AT_START = 0.5  # fraction of the weights
MIN_KURTOSIS_GROWTH = 10  # times the kurtosis at the start


@detector(
    judges=(Signal.HISTOGRAM_ZERO_SHARE, Signal.HISTOGRAM_STD, Signal.HISTOGRAM_KURTOSIS),
    history=History(recent=LEVEL_HISTOGRAMS, head=LEVEL_HISTOGRAMS),
    cause=Cause.GRADIENT_SIZE,
    evidence={
        "level": Measure("median of the last five", Unit.SAME),
        "start": Measure("median of the first five", Unit.SAME),
    },
    variants={
        "zeros": Variant(
            "{level:.1%} of the values are zero, {start:.1%} at the start", ("O25", "O26", "GV")
        ),
        "narrow": Variant(
            "the standard deviation of the values is {level:.3g}, {start:.3g} at the start",
            ("GV", "O26", "O25"),
            (INFO,),
        ),
        "tails": Variant(
            "the kurtosis of the values is {level:.3g}, {start:.3g} at the start", ("GE", "O26"), (INFO,)
        ),
    },
)
def histogram_degeneration(
    points: pl.LazyFrame,
    *,
    most_zeros: Annotated[float, "share of zeros that is too much"] = 0.95,
    least_spread: Annotated[float, "share of the first standard deviation that is too little"] = 0.01,
    most_kurtosis: Annotated[float, "kurtosis that is too much"] = 50.0,
) -> pl.LazyFrame:
    level = pl.col("level")
    start = pl.col("start")
    measured = points.with_columns(**now_and_then(VALUE, LEVEL_HISTOGRAMS, start=LEVEL_HISTOGRAMS))
    return verdicts(
        measured,
        judged={SkipReason.FEW_POINTS: has_points(2 * LEVEL_HISTOGRAMS)},
        found={
            "zeros": is_of(Signal.HISTOGRAM_ZERO_SHARE) & (level > most_zeros) & (start < MAX_ZEROS_AT_START),
            "narrow": is_of(Signal.HISTOGRAM_STD) & (level < least_spread * start),
            "tails": is_of(Signal.HISTOGRAM_KURTOSIS)
            & (level > most_kurtosis)
            & (level > MIN_KURTOSIS_GROWTH * start),
        },
        above=pl.when(is_of(Signal.HISTOGRAM_ZERO_SHARE))
        .then((most_zeros + start) / 2)
        .when(is_of(Signal.HISTOGRAM_KURTOSIS))
        .then(most_kurtosis / 2),
        below=pl.when(is_of(Signal.HISTOGRAM_STD)).then(least_spread**0.5 * start),
    )
