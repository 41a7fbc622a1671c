"""The loss is larger where batches hold less padding: it averages over the padding too.

## What it catches
Over 100 points, the logarithm of the loss moves with that of the share of real tokens: with a slope
(elasticity) of 0.6 to 1.4, surely above 0.4, and in the same order. A loss summed over real tokens but
divided by all positions has a slope of 1. A slope of 0.3 to 0.6 says that part of the padding counts.
Both are taken relative to their own average over 50 points, so that a falling loss does not matter.
It is over where the slope is a fifth outside of these bounds.

## Why it matters
The loss, and with it the effective learning rate, depends on how long the longest text of a batch
happens to be. Padding is learned instead of text, and losses at different lengths cannot be compared.

## What to do
Set the labels of padding to -100 (or what the loss ignores), or divide the masked sum by the number of
real tokens, over all accumulated batches together. Decode one batch and look at its labels.

## When it is wrong
Texts that are easier when short give a slope of their own, but seldom above 0.3. Where lengths are sorted or
grouped, or batches packed, padding hardly varies and nothing is said. Length and difficulty that rise
together in a curriculum shorter than 50 points can look like this. Only simulated runs were seen.

## Source
Catalogue O15: in simulations over 100 points the slope was 1.00 +- 0.06 with the fault, at most
0.3 +- 0.07 where short texts are easier, and 0 otherwise; a correlation alone cannot tell these apart.
"""

from typing import Annotated

import numpy as np
import polars as pl

from sentinel.detectors.api import INFO, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import Floats, has_points, last_values, spearman, with_arrays
from sentinel.detectors.verdict import SkipReason, verdicts

EVERY_POINTS = 10  # points between two verdicts
LINE_POINTS = 100  # points through which the line is drawn
TREND_POINTS = 50  # points whose mean is the trend of the loss
LASTING_FRACTION = 0.8  # of the bounds of the slope, by which they widen until it is over
MIN_ORDERED_FRACTION = 0.5  # of the steps: a line that most of them follow
MIN_STANDARD_ERRORS = 2.33  # standard errors: by chance on one point in a hundred
LINE_COLUMNS = ("slope", "slope_error", "order", "padding", "variation")


@detector(
    judges=(Signal.LOSS,),
    needs=(Signal.PAD_FRACTION,),
    history=History(recent=LINE_POINTS + TREND_POINTS),
    every=EVERY_POINTS,
    maturity=Maturity.STABLE,
    evidence={
        "slope": Measure("power of the share of real tokens", Unit.NONE),
        "slope_error": Measure("standard error of the power", Unit.NONE),
        "order": Measure("rank correlation", Unit.NONE),
        "padding": Measure("padding, mean", Unit.SHARE),
        "variation": Measure("padding, standard deviation", Unit.SHARE),
    },
    variants={
        "padding-counts": Variant(
            "loss shrinks as padding grows, as if its mean counted padding, too: it goes with the "
            "share of real tokens to the power {slope:.2f} +- {slope_error:.2f} (0 is right, 1 counts"
            " all padding); padding is {padding:.0%} on average",
            ("O15", "L2", "L7"),
        ),
        "padding-counts-in-part": Variant(
            "loss shrinks as padding grows, as if its mean counted part of the padding: it goes with "
            "the share of real tokens to the power {slope:.2f} +- {slope_error:.2f} (0 is right, 1 "
            "counts all padding)",
            ("L2", "O15", "L7"),
            (INFO,),
        ),
    },
)
def loss_scales_with_padding(
    points: pl.LazyFrame,
    *,
    lowest_slope: Annotated[float, "at this elasticity or above, the loss is a mean over padding too"] = 0.6,
    highest_slope: Annotated[float, "above this elasticity, padding is not the cause"] = 1.4,
    surely_above: Annotated[float, "elasticity that must be exceeded with 99 % confidence"] = 0.4,
    partial_slope: Annotated[float, "at this elasticity or above, part of the padding counts"] = 0.3,
    least_variation: Annotated[
        float, "smallest standard deviation of the padding share to judge from"
    ] = 0.03,
) -> pl.LazyFrame:
    slope = pl.col("slope")
    surely = slope - MIN_STANDARD_ERRORS * pl.col("slope_error")
    ordered = pl.col("order") >= MIN_ORDERED_FRACTION
    whole = slope.is_between(lowest_slope, highest_slope) & (surely > surely_above)
    part = slope.is_between(partial_slope, lowest_slope) & (surely > partial_slope / 2)
    enough = has_points(LINE_POINTS + TREND_POINTS)
    varies = pl.col("variation") >= least_variation
    return verdicts(
        with_arrays(points, LINE_COLUMNS, _line, every=EVERY_POINTS, at_least=LINE_POINTS + TREND_POINTS),
        judged={
            SkipReason.FEW_POINTS: enough,
            SkipReason.RANGE: slope.is_finite(),
            SkipReason.VARIATION: varies,
        },
        found={"padding-counts": ordered & whole, "padding-counts-in-part": ordered & part},
        lasts=slope.is_between(LASTING_FRACTION * partial_slope, highest_slope / LASTING_FRACTION),
    )


def _line(frame: pl.DataFrame, due: pl.DataFrame) -> dict[str, Floats]:
    """Return the line through the last points: log loss over log share of real tokens."""
    columns = (frame[name].to_numpy() for name in (VALUE, Signal.PAD_FRACTION))
    loss, padding = (
        last_values(column, due["row"].to_numpy(), LINE_POINTS + TREND_POINTS) for column in columns
    )
    log_loss, log_content = (_detrended(values) for values in (np.log(loss), np.log1p(-padding)))
    squares = (log_content * log_content).sum(axis=1)
    slope = (log_content * log_loss).sum(axis=1) / squares
    off = log_loss - slope[:, None] * log_content
    return {
        "slope": slope,
        "slope_error": np.sqrt((off * off).sum(axis=1) / (LINE_POINTS - 2) / squares),
        "order": spearman(log_content, log_loss),
        "padding": padding[:, :LINE_POINTS].mean(axis=1),
        "variation": padding[:, :LINE_POINTS].std(axis=1),
    }


def _detrended(values: Floats) -> Floats:
    """Return the last points, newest first, less the mean of the `TREND_POINTS` before each, and centred."""
    sums = np.cumsum(values, axis=1)
    off = (
        values[:, :LINE_POINTS]
        - (sums[:, TREND_POINTS : TREND_POINTS + LINE_POINTS] - sums[:, :LINE_POINTS]) / TREND_POINTS
    )
    centred: Floats = off - off.mean(axis=1, keepdims=True)
    return centred
