"""A codebook of a quantised autoencoder uses one or two of its entries.

## What it catches
A codebook's perplexity, which is the number of entries in use where all are used alike, below 2 at five
points in a row. Either it was 4 or more before, or 20 points have passed and it never was.

## Why it matters
What passes the codebook is all that the decoder learns of its input. A codebook with one entry tells nothing,
so the decoder gives a mean, and whatever is trained on the codes later learns from a constant.

## What to do
Stop before the next stage of the training. Start the codebook from encoded samples (k-means), set unused
entries anew, normalise what is quantised, and lower the weight of the commitment. In a residual quantiser
look at the first codebook first: the others code what it leaves.

## When it is wrong
A codebook for a property with two values. A perplexity is read as a codebook's where its name says so, or
where a loss of a quantiser stands beside it. No perplexity is below 1: where one is, it is a share of the
entries, of which the rule knows no number.

## Source
Catalogue N-codebook-collapse. The perplexity is the exponential of the entropy of the codes, so it is 1 where
all inputs get the same one. Codebooks of trained models have tens to thousands.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, recent_max, seen_max
from sentinel.detectors.verdict import SkipReason, verdicts

IN_A_ROW = 5  # points, so that a batch of alike samples is not enough
PATIENCE = 20  # points after which a codebook should have come into use
REACH = 200  # points in which its largest perplexity is sought
ONE_ENTRY = 0.999  # the perplexity of a codebook with one entry, after rounding


@detector(
    judges=(Signal.CODEBOOK_PERPLEXITY,),
    history=History(recent=REACH, head=REACH),
    maturity=Maturity.STABLE,
    cause=Cause.NO_GRADIENT,  # of all entries but one
    inhibits=(Cause.LOSS_SHAPE, Cause.DIVERGENCE),
    evidence={"most": Measure("highest before", Unit.SAME)},
    variants={
        "collapsed": Variant(
            "the codebook's perplexity fell from {most:.3g} to {value:.3g}: it uses one or two entries",
            ("N-codebook-collapse",),
        ),
        "unused": Variant(
            "the codebook's perplexity was never above {most:.3g}: it uses one or two entries",
            ("N-codebook-collapse",),
        ),
    },
)
def codebook_collapse(
    points: pl.LazyFrame,
    *,
    least: Annotated[float, "perplexity below which nothing passes the codebook"] = 2.0,
    in_use: Annotated[float, "perplexity at or above which the codebook was in use"] = 4.0,
) -> pl.LazyFrame:
    most = pl.col("most")
    measured = points.with_columns(
        most=seen_max(VALUE, REACH, REACH), highest=recent_max(pl.col(VALUE), IN_A_ROW)
    )
    is_low = pl.col("highest") < least
    return verdicts(
        measured,
        judged={
            SkipReason.FEW_POINTS: has_points(IN_A_ROW),
            SkipReason.RANGE: pl.col("highest") >= ONE_ENTRY,
        },
        found={
            "collapsed": is_low & (most >= in_use),
            "unused": is_low & (most < least) & has_points(PATIENCE),
        },
        below=pl.max_horizontal(least, most / 2),
    )
