"""The detection or segmentation metric is exactly zero, from the start or since it fell.

## What it catches
A mean average precision or intersection over union of exactly 0 at five evaluations in a row; at two if two
parts of the training loss are exactly 0, those of boxes. One that is measured after each epoch, and a score
such as Dice or F1, needs 25, or 10 while the training loss is known to have fallen by 30 %; a score while the
run goes on all of the first 10, 12, 14, 16 or 20. Of a run that is over,
all of 3 are enough. Five in a row are enough of a metric that was above 0 before, and of a run that is over
the last four, if these are more than half. Nothing is said where the same metric of another class or
threshold is above 0. And at the end any of these metrics that never passed 0.01 at ten evaluations or more,
and does not begin to rise. A score that was below 0 at all of five evaluations or more
of a run that is over is worse than a guess, unless it came half way up; one of both signs, such as a
correlation, that was always within 0.05 of 0 is no better; so is an error rate that was never below 1, at 25
evaluations while the run goes on. At a stage of a known plan the run is judged as if it were over.
A score below 0.6 that rests on one value to the last digit for eight evaluations or more, and for most of a
run that is over, belongs to a model that always answers alike. So does one of more than four digits below 0.8
that rests for ten, which is told while the run goes on as well.
Score cards are read as well, while the run goes on and at its end: a metric that never left its start, or a
score that a coin would get, such as an area under the curve of one half.

## Why it matters
The losses of a detector fall although none of its boxes counts: wrong box format, shifted class ids or a
threshold that no score passes. The training is spent on a model that nobody can use, or on an evaluation
that sees none of it.

## What to do
Draw the predictions and the labels of one evaluation image. If the boxes lie elsewhere, compare the box
formats and image scales of both paths. If they are right, compare the class ids. If there are none, lower
the score threshold and look at what suppression leaves.

## When it is wrong
A detector that is trained from scratch may need more than five evaluations before one box counts, above
all where it evaluates every few hundred steps. A class of which no sample was held out rests at 0 beside
others that do not, and so does the metric of a threshold that is too strict.

## Source
Catalogue V3, V4, V5, V6. Real runs that learn leave zero after three evaluations at most. A zero to the last
digit needs that not a single box matches, so noise does not explain it.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import (
    ENDED,
    EXCUSED,
    INDEX,
    SERIES,
    SIGNAL,
    STEP,
    SUMS_UP,
    VALUE,
    Every,
    is_concluded,
)
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import NOTHING, metric_name, recent_max, recent_median, resting
from sentinel.detectors.verdict import SkipReason, verdicts
from sentinel.detectors.whole_run import rests_since

REACH = 50  # evaluations
METRICS = Signal.MEAN_AVERAGE_PRECISION, Signal.MEAN_INTERSECTION_OVER_UNION, Signal.EVAL_SCORE
LEARNED = 10  # evaluations at which a score is 0 although the training loss fell
UNFIT = 2  # parts of the loss that are exactly 0: those of boxes, where there is none to fit
AT_ONCE = 2  # evaluations at which, beside such parts, a metric is 0
AGAIN = 5  # evaluations in a row at which a metric is 0 that was above it
AT_END = 4  # evaluations of a run that is judged as a whole, at all of which a score is 0, or the last ones
OF_SOME = 3  # the same once the run is over
HARDLY = 0.01  # a metric of that is next to nothing
MANY = 10  # evaluations after which next to nothing is too little
LEAVES = 2  # times its usual value: one that begins to rise
FALLEN = 0.7  # of its first value: a loss that has learned something
WORTHLESS = 5  # evaluations of a run that is over, at all of which it guesses worse than without a model
HALF_WAY = 0.5  # of its first value: a score below zero that is on its way up
RESTS = 8  # evaluations of a run that is over in which a score rests,
FOR_MOST = 0.7  # of all, and
FROZEN = 10  # evaluations in which a score of many digits, which changed before, rests
FINE = 1e-4  # a score that is no multiple of it has more than four digits
POOR = 0.8  # a score below that is poor
MIDDLING = 0.6  # the least score that a model may keep which answers each question anew
NO_SKILL = 0.05  # a correlation, or another score that has a sign, which is chance where both signs come
ALL = 1 - 1e-6  # of all samples, but for rounding


@detector(
    judges=(*METRICS, Signal.EVAL_ERROR_RATE),
    uses=(Signal.LOSS, *(Every(signal) for signal in (*METRICS, Signal.LOSS_PART))),
    history=History(recent=REACH, head=2),
    at_end=True,
    at_interims=True,
    maturity=Maturity.STABLE,
    hold=1,  # a verdict rests on several evaluations already
    clear=1,
    cause=Cause.EVALUATION,
    evidence={"name": Measure("metric", Unit.TEXT), "highest": Measure("best so far", Unit.SHARE)},
    variants={
        "fell": Variant("{name} fell to exactly 0 and stays there", ("V6", "V5", "V3")),
        "zero": Variant("{name} is exactly 0, as at the evaluations before", ("V3", "V4", "V5")),
        "hardly": Variant(
            "{name} never passed {highest:.2g}: next to nothing is found", ("V3", "V4", "O7", "O1", "L8")
        ),
        "below-zero": Variant(
            "{name} was never above {highest:.2g}, where a guess has 0", ("O7", "O1", "L8", "V3", "V4")
        ),
        "rests": Variant(
            "{name} rests at {value:.4g} to the last digit: the model always answers alike",
            ("V6", "O19", "O13", "O7"),
        ),
        "all-wrong": Variant(
            "{name} is {value:.3g} and never was below 1: nothing is right", ("V4", "V3", "O1", "L8")
        ),
    },
    reads=("metric-never-left-its-start", "no-better-than-a-coin"),
)
def zero_eval_metric(
    points: pl.LazyFrame,
    *,
    evaluations: Annotated[int, "evaluations in a row at which the metric is exactly 0"] = 5,
    epochs: Annotated[int, "the same where it is measured after each epoch; at most 50"] = 25,
) -> pl.LazyFrame:
    each_epoch = pl.col(STEP) - pl.col(STEP).shift(1).over(SERIES) == 1
    has_learned = pl.col(Signal.LOSS) < FALLEN * pl.col(Signal.LOSS).filter(pl.col(INDEX) < 2).max().over(
        SERIES
    )
    measured = points.with_columns(
        at_once=recent_max(pl.col(VALUE), AT_ONCE),
        soon=recent_max(pl.col(VALUE), evaluations),
        late=recent_max(pl.col(VALUE), min(epochs, REACH)),
        again=recent_max(pl.col(VALUE), AGAIN),
        last=recent_max(pl.col(VALUE), AT_END),
        learned=recent_max(pl.col(VALUE), LEARNED),
        highest=recent_max(pl.col(VALUE), REACH, at_least=1),
        lowest=-recent_max(-pl.col(VALUE), REACH, at_least=1),
        first=pl.col(VALUE).filter(pl.col(INDEX) < 2).max().over(SERIES),
        name=metric_name(),
        rested=resting(pl.col(VALUE), REACH),
        **{EXCUSED: (pl.col(VALUE) == 0) & _has_another()},  # above 0 it does not excuse what its card says
    )
    of_score = pl.col(SIGNAL) == Signal.EVAL_SCORE  # F1 is often 0 while a model begins to learn
    is_whole = is_concluded() | (of_score & pl.col(SUMS_UP) & (pl.col(INDEX) + 1 >= LEARNED))
    ends = is_whole & (pl.col(INDEX) + 1 < 2 * AT_END) & (pl.col("last") == 0)
    fell = ((pl.col("again") == 0) | (of_score & ends)) & (pl.col("highest") > 0)
    at_least = pl.when(ENDED).then(OF_SOME).otherwise(AT_END)
    at_end = is_whole & (pl.col(INDEX) + 1 >= at_least) & (pl.col("highest") == 0)
    finds_no_box = ~of_score & _lacks_boxes() & (pl.col("at_once") == 0) & (pl.col("highest") == 0)
    never_rose = (
        finds_no_box
        | at_end
        | (
            pl.when(~of_score & ~each_epoch)
            .then(pl.col("soon") == 0)
            .when(has_learned)
            .then(pl.col("learned") == 0)
            .otherwise(pl.col("late") == 0)
        )
    )
    is_held = (pl.col("rested") >= RESTS) & (pl.col("rested") >= FOR_MOST * (pl.col(INDEX) + 1))
    rested = of_score & pl.col(ENDED) & is_held & pl.col(VALUE).is_between(0, MIDDLING, closed="none")
    rested |= of_score & pl.col(SUMS_UP) & (pl.col("rested") >= FROZEN) & _is_fine_and_poor()
    # An error rate has no such end; where its card found something it may be over again.
    of_errors = pl.col(SIGNAL) == Signal.EVAL_ERROR_RATE
    is_zero = ~of_errors & (fell | never_rose)
    rests = pl.col("last") < LEAVES * recent_median(VALUE, REACH, at_least=MANY)
    hardly = (
        (~of_errors & is_concluded() & (pl.col("highest") < HARDLY) & rests) & ~_has_another(HARDLY)
    ).fill_null(False)
    is_over = pl.col(ENDED) & (pl.col(INDEX) + 1 >= WORTHLESS)
    all_below = (pl.col("highest") < 0) & (pl.col(VALUE) < HALF_WAY * pl.col("first"))
    both_signs = pl.col("lowest").is_between(-NO_SKILL, 0, closed="left") & (pl.col("highest") < NO_SKILL)
    below_zero = of_score & is_over & (all_below | both_signs)
    all_wrong = of_errors & (is_over | (pl.col(INDEX) + 1 >= epochs)) & (pl.col("lowest") >= ALL)
    return verdicts(
        measured,
        judged={
            SkipReason.FEW_POINTS: is_zero | of_errors | below_zero | (pl.col(VALUE) > 0),
            SkipReason.EXPLAINED: ~(is_zero & pl.col(EXCUSED)),
        },
        found={
            "fell": is_zero & fell,
            "zero": is_zero,
            "hardly": hardly,
            "below-zero": below_zero,
            "rests": rested,
            "all-wrong": all_wrong,
        },
        below=pl.lit(NOTHING),
        onset=pl.when(rested).then(rests_since(pl.col(VALUE), REACH)),
    )


def _is_fine_and_poor() -> pl.Expr:
    """Return whether a poor score has so many digits that it changes where any answer does."""
    off = (pl.col(VALUE) / FINE - (pl.col(VALUE) / FINE).round()).abs()
    return (off > FINE) & pl.col(VALUE).is_between(0, POOR, closed="none")


def _lacks_boxes() -> pl.Expr:
    """Return whether all parts of the loss but some that need no box are exactly 0."""
    parts = pl.col(Every(Signal.LOSS_PART).column).list
    return (parts.eval(pl.element() == 0).list.sum() >= UNFIT).fill_null(False)


def _has_another(least: float = 0.0) -> pl.Expr:
    """Return whether another tag of the same metric is above what is least."""
    above = {metric: pl.col(Every(metric).column).list.max() > least for metric in METRICS}
    return pl.any_horizontal(
        (pl.col(SIGNAL) == metric) & is_above for metric, is_above in above.items()
    ).fill_null(False)
