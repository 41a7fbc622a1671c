"""The discriminator of adversarial networks tells all samples apart, and the generator learns nothing more.

## What it catches
A loss of the discriminator whose median over the last 50 points is below 0.02, while that of the generator is
more than twice its median over the first 10, or above 5. It is over above 0.05.

## Why it matters
A discriminator that is sure gives hardly a gradient to the generator, which stays where it is or leaps about.
The samples do not come closer to the data, and the run rarely recovers by itself.

## What to do
Make the two equals: a lower learning rate or fewer steps for the discriminator, a higher rate for the
generator. Smooth the labels, put noise on what the discriminator sees, or take a loss that does not saturate:
hinge, least squares, or Wasserstein with a gradient penalty.

## When it is wrong
The loss of a Wasserstein critic has either sign and says nothing of this kind; where a loss was negative,
nothing is judged. Discriminators of an auxiliary term, as in VQGAN, may rest near zero before they begin to
count.

## Source
Catalogue N-discriminator-wins: Arjovsky and Bottou (arXiv:1701.04862) show that the gradient of the
generator vanishes as the discriminator becomes perfect. Where neither wins, the two terms of its
cross-entropy sum up to 2 ln 2; at 0.02 it gives 99 % to what is right.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import WARNING, Cause, History, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, SERIES, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import recent_median, start_median
from sentinel.detectors.verdict import SkipReason, verdicts

NOW = 50  # points of the present level
START = 10  # points of the start


@detector(
    judges=(Signal.DISCRIMINATOR_LOSS,),
    needs=(Signal.GENERATOR_LOSS,),
    history=History(recent=NOW, head=START),
    cause=Cause.LOSS_SHAPE,
    evidence={
        "level": Measure("median of the last 50 points", Unit.SAME),
        "generator_level": Measure("generator's loss now", Unit.NONE),
        "generator_start": Measure("generator's loss at the start", Unit.NONE),
    },
    variants={
        "won": Variant(
            "the discriminator's loss is {level:.3g}, while the generator's is {generator_level:.3g} "
            "(at the start {generator_start:.3g})",
            ("N-discriminator-wins",),
            (WARNING,),
        ),
    },
)
def discriminator_wins(
    points: pl.LazyFrame,
    *,
    least: Annotated[float, "loss of the discriminator below which it is sure"] = 0.02,
    recovered: Annotated[float, "loss above which the trouble is over"] = 0.05,
    growth: Annotated[float, "multiple of its first loss that is too much for the generator"] = 2.0,
    most: Annotated[float, "loss of the generator that is too much, however it began"] = 5.0,
) -> pl.LazyFrame:
    """Judge the present level; a negative loss is that of a critic, which may be near zero at any time."""
    level = pl.col("level")
    generator = pl.col("generator_level")
    measured = points.with_columns(
        level=recent_median(VALUE, NOW),
        lowest=pl.col(VALUE).rolling_min(NOW, min_samples=1).over(SERIES),
        generator_level=recent_median(Signal.GENERATOR_LOSS, NOW, at_least=1),
        generator_start=start_median(Signal.GENERATOR_LOSS, START),
    )
    lost = (generator > growth * pl.col("generator_start")) | (generator > most)
    return verdicts(
        measured,
        judged={
            SkipReason.FEW_POINTS: pl.col(INDEX) >= NOW + START - 1,
            SkipReason.RANGE: pl.col("lowest") >= 0,
            SkipReason.NOT_COMPARABLE: generator.is_not_null(),
        },
        found={"won": (level < least) & lost},
        lasts=level < recovered,
        below=pl.lit(recovered),
    )
