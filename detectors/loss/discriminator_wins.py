"""One of two adversarial networks has won: the discriminator tells all samples apart, or takes all for real.

## What it catches
A loss of the discriminator whose median over the last 50 points is below 0.02, while that of the generator is
more than twice its median over the first 10, or above 5 and no tenth below that. It is over above 0.05.
Losses of other kinds (hinge, several parts) rest at other levels: of them a discriminator's whose median over
the last 10 points is below a quarter of that over the first 10 and below 0.5, while the generator's is four
times its own and above 8; or below 4 % of it, while the generator's is three times its own. Of squared errors
the generator's cannot exceed 1 by much: a discriminator below 0.02 whose generator has been within 3 % of 1
for 50 points has won as well.
And the generator has won: the median of the discriminator's loss over the last 50 points is a fifth above
that of giving one half to every sample, while that of the generator is below 0.2, so that four fifths of what
it makes pass for real.
And both run away: the size of the median of either loss over the last 10 points is a hundred times that over
the first 10, and that of the discriminator, or critic, is above 10,000.
A generator that also restores its input or its target goes on learning from that: while its reconstruction
loss is a tenth below its start, the discriminator's victory is a note.

## Why it matters
A discriminator that is sure gives hardly a gradient to the generator, which stays where it is or leaps about.
The samples do not come closer to the data, and the run rarely recovers by itself. One that takes all samples
for real tells the generator nothing either.

## What to do
Make the two equals: a lower learning rate or fewer steps for the discriminator, a higher rate for the
generator. Smooth the labels, put noise on what the discriminator sees, or take a loss that does not saturate:
hinge, least squares, or Wasserstein with a gradient penalty. Where the discriminator has lost, look first
whether its weights are trained at all, and with which rate. A critic that runs away has no bound: clip its
weights, or give its gradient penalty a weight of 10 and look whether it enters the loss.

## When it is wrong
The loss of a Wasserstein critic has either sign and says nothing of this kind; where a loss was ever
negative, it is only judged whether it runs away. Discriminators of an auxiliary term, as in VQGAN, may rest
near zero before they begin to count.

## Source
Catalogue N-discriminator-wins: Arjovsky and Bottou (arXiv:1701.04862) show that the gradient of the generator
vanishes as the discriminator becomes perfect. Where neither wins, the two terms of its cross-entropy sum up
to 2 ln 2; at 0.02 it gives 99 % to what is right.
"""

from math import log
from typing import Annotated

import polars as pl

from sentinel.detectors.api import INFO, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.blocks import ROWS
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, SERIES, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, of_buckets, recent_median, start_median
from sentinel.detectors.verdict import SkipReason, verdicts

NOW = 50  # points of the present level
START = 10  # points of the start, and of the present level beside it
SURE = 0.5  # loss of a discriminator, of whichever kind, that is mostly right
SURER = 0.04  # of its first loss: a discriminator of any loss that is nearly always right
TREBLED = 3.0  # times its first loss that the generator's then is
LOST = 8.0  # loss of a generator whose samples pass with a probability of exp(-8)
AT_ONE = 0.03  # by which a generator's squared error may miss that of samples all told to be false
LEAST = 30  # points that suffice
FOOLED = 2.4 * log(2)  # of a discriminator: a fifth above giving one half to every sample
PASSES = 0.2  # loss of a generator whose samples pass for real with a probability of 0.8
RUNAWAY = 1e4  # size of the loss of a critic without a bound
FARTHER = 100  # times its first size, of either network
RESTORES = (
    0.9  # times its first loss, or that of its reconstruction, below which a generator goes on learning
)


@detector(
    judges=(Signal.DISCRIMINATOR_LOSS,),
    needs=(Signal.GENERATOR_LOSS,),
    uses=(Signal.RECONSTRUCTION_LOSS,),
    history=History(recent=ROWS, head=START, coarse=True),
    maturity=Maturity.STABLE,
    cause=Cause.LOSS_SHAPE,
    evidence={
        "level": Measure("median of the last 50 points", Unit.SAME),
        "start": Measure("median of the first 10 points", Unit.SAME),
        "now": Measure("median of the last 10 points", Unit.SAME),
        "generator_now": Measure("generator's loss over the last 10 points", Unit.NONE),
        "generator_level": Measure("generator's loss now", Unit.NONE),
        "generator_start": Measure("generator's loss at the start", Unit.NONE),
    },
    variants={
        "far": Variant(
            "the discriminator's loss fell from {start:.3g} to {now:.3g} while the generator's grew from "
            "{generator_start:.3g} to {generator_now:.3g}",
            ("N-discriminator-wins",),
            (INFO, WARNING),
        ),
        "saturated": Variant(
            "the discriminator's loss is {level:.3g}, and the generator's rests at {generator_level:.3g}: "
            "every sample is told to be false",
            ("N-discriminator-wins",),
            (INFO, WARNING),
        ),
        "won": Variant(
            "the discriminator's loss is {level:.3g}, while the generator's is {generator_level:.3g} "
            "(at the start {generator_start:.3g})",
            ("N-discriminator-wins",),
            (INFO, WARNING),
        ),
        "ran-away": Variant(
            "the critic's loss ran away from {start:.3g} to {now:.3g}, and the generator's from "
            "{generator_start:.3g} to {generator_now:.3g}: nothing bounds them",
            ("N-discriminator-wins", "A-nan-explode", "O9"),
        ),
        "fooled": Variant(
            "the discriminator's loss is {level:.3g}, worse than a coin's, while the generator's is "
            "{generator_level:.3g}: every sample is taken for real",
            ("N-discriminator-wins", "O2", "O7", "O1"),
        ),
    },
)
def discriminator_wins(
    points: pl.LazyFrame,
    *,
    least: Annotated[float, "loss of the discriminator below which it is sure"] = 0.02,
    recovered: Annotated[float, "loss above which the trouble is over"] = 0.05,
    growth: Annotated[float, "multiple of its first loss that is too much for the generator"] = 2.0,
    least_share: Annotated[
        float, "share of its first loss below which a discriminator of any loss wins"
    ] = 0.25,
    far_growth: Annotated[float, "multiple of its first loss that a generator then has"] = 4.0,
    most: Annotated[float, "loss of the generator that is too much, however it began"] = 5.0,
) -> pl.LazyFrame:
    """Judge the present level; a negative loss is that of a critic, which may be near zero at any time."""
    level = pl.col("level")
    generator = pl.col("generator_level")
    measured = points.with_columns(
        level=recent_median(VALUE, NOW),
        lowest=pl.min_horizontal(
            pl.col(VALUE).rolling_min(ROWS, min_samples=1).over(SERIES),
            of_buckets(pl.col("coarse_low").list.min()),
        ),
        generator_level=recent_median(Signal.GENERATOR_LOSS, NOW, at_least=1),
        generator_off=(pl.col(Signal.GENERATOR_LOSS) - 1).abs().rolling_mean(NOW).over(SERIES),
        generator_start=start_median(Signal.GENERATOR_LOSS, START),
        start=start_median(VALUE, START),
        now=recent_median(VALUE, START),
        generator_now=recent_median(Signal.GENERATOR_LOSS, START, at_least=1),
        restored=recent_median(Signal.RECONSTRUCTION_LOSS, NOW, at_least=1),
        restored_start=start_median(Signal.RECONSTRUCTION_LOSS, START),
    )
    now = pl.col("now")
    generator_now = pl.col("generator_now")
    falls = (now < least_share * pl.col("start")) & (now < SURE)
    grows = (generator_now > far_growth * pl.col("generator_start")) & (generator_now > LOST)
    surely = (
        (now < SURER * pl.col("start")) & (now < SURE) & (generator_now > TREBLED * pl.col("generator_start"))
    )
    far = ((falls & grows) | surely) & (pl.col("generator_start") > 0)
    restores = (pl.col("restored") < RESTORES * pl.col("restored_start")).fill_null(False)
    falls_on = generator < RESTORES * pl.col("generator_start")  # by what it restores, of which it is a sum
    lost = (generator > growth * pl.col("generator_start")) | ((generator > most) & ~falls_on)
    ran_away = (now.abs() > RUNAWAY) & pl.all_horizontal(
        pl.col(after).abs() > FARTHER * pl.col(before).abs()
        for before, after in (("start", "now"), ("generator_start", "generator_now"))
    )
    signed = pl.col("lowest") < 0
    fooled = (level > FOOLED) & generator.is_between(0, PASSES)
    return verdicts(
        measured,
        judged={
            SkipReason.FEW_POINTS: has_points(LEAST),
            SkipReason.RANGE: ~signed | ran_away,
            SkipReason.NOT_COMPARABLE: generator.is_not_null(),
        },
        found={
            "ran-away": ran_away,
            "saturated": ~signed & (level < least) & (pl.col("generator_off") < AT_ONE),
            "won": ~signed & (pl.col(INDEX) >= NOW + START - 1) & (level < least) & lost,
            "far": far & ~signed,
            "fooled": fooled & (pl.col(INDEX) >= NOW - 1),
        },
        severities={WARNING: ~restores},
        lasts=(level < recovered) | (pl.col("now") < 2 * least_share * pl.col("start")) | fooled,
        above=pl.when(fooled).then(FOOLED),
        below=pl.when(fooled | ran_away)
        .then(None)
        .when(level < recovered)
        .then(recovered)
        .otherwise(2 * least_share * pl.col("start")),
    )
