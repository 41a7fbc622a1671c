"""More and more units of a layer give nothing but zeros.

## What it catches
A median dead share over the last ten points above 0.9 in a layer that began below 0.8, or one that rose by
0.3, and by five standard deviations of the noise, above the layer's first points. The larger one counts of
the scatter of the first ten points and the noise of the last thirty. A rise must show in the median of the
last thirty points as well.

## Why it matters
A dead unit passes no gradient, so nothing revives it: its part of the network is gone. Once a whole layer
is dead nothing below it learns any more, and the output is a constant.

## What to do
Lower the learning rate or lengthen the warm-up. Replace ReLU by LeakyReLU, GELU or SiLU, check the
initialisation and look for large negative biases. Units that died stay dead: start again from a checkpoint
from before the rise.

## When it is wrong
ReLU leaves 0.4 to 0.6 of its outputs at zero, and layers that are made to be sparse leave more: a share that
was high from the first point on is not reported. Experts without tokens look dead. The healthy runs that it
was seen on were trained for it.

## Source
Catalogue O25: a layer near 1, or a share that climbs.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, SERIES, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import recent_median, recent_noise, start_median, start_value
from sentinel.detectors.verdict import SkipReason, verdicts

LEVEL_POINTS = 10  # points of the present level, and of the start
NOISE_POINTS = 30  # points that tell the noise
NOISE_LAG_POINTS = 3  # points between two that are compared for the noise
MIN_RISE_DEVIATIONS = 5  # standard deviations that a rise exceeds
MIN_ALIVE_AT_START = 0.1  # of the units: how many fewer were dead at the start than nearly all
LASTING_FRACTION = 0.8  # of a rise, down to which it lasts


@detector(
    judges=(Signal.DEAD_FRACTION,),
    history=History(recent=NOISE_POINTS + 2 * NOISE_LAG_POINTS, head=LEVEL_POINTS),
    maturity=Maturity.STABLE,
    cause=Cause.NO_GRADIENT,
    inhibits=(Cause.LOSS_SHAPE,),  # dead layers hold the loss where it is
    evidence={
        "level": Measure("median of the last 10 points", Unit.SAME),
        "start": Measure("at the start", Unit.SAME),
    },
    variants={
        "dead": Variant(
            "{level:.1%} of this layer's outputs are dead, {start:.0%} at the start",
            ("O25", "GV"),
            (WARNING, CRITICAL),
        )
    },
)
def dead_activation_growth(
    points: pl.LazyFrame,
    *,
    nearly_all: Annotated[float, "dead share at which a layer is gone"] = 0.9,
    rise: Annotated[float, "rise of the dead share that is too much"] = 0.3,
) -> pl.LazyFrame:
    level = pl.col("level")
    start = pl.col("start")
    scatter = pl.col(VALUE).filter(pl.col(INDEX) < LEVEL_POINTS).std().over(SERIES)
    far = pl.max_horizontal(
        pl.lit(rise), MIN_RISE_DEVIATIONS * pl.col("scatter"), MIN_RISE_DEVIATIONS * pl.col("noise")
    )
    gone = (level > nearly_all) & (start < nearly_all - MIN_ALIVE_AT_START)
    risen = pl.min_horizontal("level", "lately") > pl.max_horizontal("start", "early") + far
    return verdicts(
        points.with_columns(
            level=recent_median(VALUE, LEVEL_POINTS),
            lately=recent_median(VALUE, NOISE_POINTS, at_least=LEVEL_POINTS),
            start=start_value(VALUE),
            early=start_median(VALUE, LEVEL_POINTS),
            scatter=scatter,
            noise=recent_noise(VALUE, NOISE_POINTS, apart=NOISE_LAG_POINTS),
        ),
        judged={SkipReason.FEW_POINTS: level.is_not_null()},
        found={"dead": gone | risen},
        severities={CRITICAL: gone},
        lasts=level > start + LASTING_FRACTION * rise,
        above=pl.max_horizontal("start", "early") + rise / 2,
    )
