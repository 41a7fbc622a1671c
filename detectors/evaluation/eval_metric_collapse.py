"""The metric on held-out data has lost most of what it had gained, and stays there.

## What it catches
An accuracy, score, average precision or overlap whose last three evaluations (five where there are 20 or
more, ten where there are 40 or more) all lie below half of its best level. Or they lie 30 % below it, and
three quarters of the gain since the first evaluation are lost. The fall must exceed eight times the scatter
of the evaluations. The best level is the highest median of as many evaluations in a row. While the run goes
on, ten evaluations are awaited.
At a stage of a known plan the run is judged as if it were over.
A score card is read as well, while the run goes on and at its end: points for what a person sees in the plot.
Of error rates, distances such as FID and metrics in units of their own, such as PSNR, it alone speaks. At the
end another one tells of a metric that fell below its start while the reward rose.

## Why it matters
A model that has unlearned what it knew rarely comes back. Where the training loss is still low, the
evaluation sees another model than the training does, and each checkpoint since then is of no use.

## What to do
Compare the training loss before and after the fall. If it rose, too, go back to a checkpoint before the fall
and lower the learning rate. If it did not, evaluate the checkpoint before the fall once more, with the
present code and data: if the metric is low again, the evaluation has changed. If it is high, look at the
statistics of batch normalisation, at averaged weights (EMA), and at what a resume did not restore.

## When it is wrong
A next stage of a curriculum, another task or another evaluation set lowers the metric by right. So does
pruning, until the model has recovered. The first evaluations of a network with batch normalisation may fall
for a while, because its statistics lag behind.

## Source
Catalogue O18, V7, O19, GE, R4. The thresholds are measured (`measurements/figures.md`): healthy
evaluations scatter, and those of warm restarts dip, but they keep most of what they gained.
"""

from collections.abc import Callable
from typing import Annotated

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import ENDED, INDEX, SERIES, SIGNAL, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import (
    has_points,
    metric_name,
    recent_max,
    recent_median,
    recent_noise,
    seen_max,
    start_value,
)
from sentinel.detectors.verdict import SkipReason, verdicts

REACH = 50  # evaluations
SHARES = (
    *(Signal.EVAL_ACCURACY, Signal.EVAL_SCORE),
    *(Signal.MEAN_AVERAGE_PRECISION, Signal.MEAN_INTERSECTION_OVER_UNION),
)
OTHERS = (  # of which the card alone speaks
    *(Signal.EVAL_ERROR_RATE, Signal.EVAL_QUALITY),
    *(Signal.FRECHET_INCEPTION_DISTANCE, Signal.EVAL_DISTANCE),
)
LOW = {0: 3, 20: 5, 40: 10}  # evaluations that must all be low, and from how many evaluations on
MANY = max(LOW.values())
MIN_NOISE = 0.01  # of an evaluation; a few of them may lie closer together by chance
USEFUL = 0.2  # best level of a metric that had learned something


@detector(
    judges=(*SHARES, *OTHERS),
    history=History(recent=REACH + 2 * MANY, head=REACH),
    at_stages=True,
    maturity=Maturity.STABLE,
    hold=1,  # a verdict rests on three evaluations already
    clear=1,
    cause=Cause.EVALUATION,
    needs_consent=True,
    evidence={
        "name": Measure("metric", Unit.TEXT),
        "best": Measure("best level so far", Unit.SAME),
        "highest": Measure("best of the last evaluations", Unit.SAME),
        "noise": Measure("scatter of the evaluations", Unit.SAME),
    },
    variants={
        "collapsed": Variant(
            "{name} on held-out data fell from {best:.3g} to {value:.3g} and stays there",
            ("O18", "V7", "O19", "GE", "R4"),
        )
    },
    reads=("got-worse", "lost-in-few-evaluations", "paid-for-something-else", "second-opinion-metric-fell"),
)
def eval_metric_collapse(
    points: pl.LazyFrame,
    *,
    lost_level: Annotated[float, "share of its best level whose loss is a collapse"] = 0.5,
    lost_gain: Annotated[
        float, "share of its gain since the first evaluation whose loss is a collapse"
    ] = 0.75,
    least_share: Annotated[float, "share of its best level that must be lost beside that gain"] = 0.3,
    least_noises: Annotated[float, "multiple of the scatter that a fall must exceed"] = 8.0,
) -> pl.LazyFrame:

    def of_low(of_rows: Callable[[int], pl.Expr]) -> pl.Expr:
        """Return an expression of the number of evaluations that count now."""
        chosen = pl.lit(None, pl.Float64)
        for least, rows in LOW.items():
            chosen = pl.when(pl.col(INDEX) >= least).then(of_rows(rows)).otherwise(chosen)
        return chosen

    measured = (
        points.with_columns(
            level=of_low(lambda rows: recent_median(VALUE, rows)),
            highest=of_low(lambda rows: recent_max(pl.col(VALUE), rows)),
            scatter=recent_noise(VALUE, REACH, at_least=1).clip(MIN_NOISE),
            name=metric_name(),
        )
        .with_columns(
            past=of_low(lambda rows: pl.col("level").shift(rows).over(SERIES)),
            noise=of_low(lambda rows: pl.col("scatter").shift(rows).over(SERIES)),
        )
        .with_columns(best=seen_max("past", REACH, REACH))
    )
    best = pl.col("best")
    fall = pl.col("best") - pl.col("highest")
    least = pl.min_horizontal(
        lost_level * best, pl.max_horizontal(lost_gain * (best - start_value(VALUE)), least_share * best)
    )
    return verdicts(
        measured,
        judged={
            SkipReason.OTHER_TAG: pl.col(SIGNAL).is_in(SHARES),
            SkipReason.FEW_POINTS: best.is_not_null() & (has_points(MANY) | pl.col(ENDED)),
        },
        found={"collapsed": (best > USEFUL) & (fall > least) & (fall > least_noises * pl.col("noise"))},
        lasts=best - pl.col("level") > least / 2,
        below=best - least / 2,
    )
