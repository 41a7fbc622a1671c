"""Fine-tuning makes the model worse on held-out data than it was at the first evaluation.

## What it catches
A first evaluation that no later one reaches. There are four or more of those, and the best of them is worse
than the first by more than 10 % of a loss or an error rate, or 0.1 of a metric. It is also worse by many
times their range: by ten times the range of four evaluations, five times that of five, twice that of eight,
and 1.2 times that of the last sixteen.

## Why it matters
A pretrained model is good before it is trained any further. If each later evaluation is worse, the training
destroys what it was meant to build on, and the untrained model is the better one.

## What to do
Take the learning rate down by a factor of ten, add a warm-up, and give the backbone a smaller rate than the
new head. Check that the fine-tuning data are prepared as the pretraining's were: template, tokenizer,
normalisation. Look whether a frozen part was unfrozen by mistake.

## When it is wrong
Where the task differs from that of the pretraining, the first evaluations may fall before they rise. Small
training sets are overfitted within one epoch; then the evaluation loss rises from its first value on, and
`generalization-gap` says so as well. A run from scratch is told by its training loss: it began no higher than
the first evaluation, and has halved since. Then the evaluation itself is in doubt (`train-eval-mismatch`). A
resumed attempt is left out: its first evaluation is not that of a pretrained model.

## Source
Catalogue O19, X1, X3: worse than the first evaluation by more than 10 %, at two evaluations or more. A run
that starts from scratch is at its worst at the first evaluation, so it is never meant. One first value in ten
thousand exceeds these ranges by chance, if the noise is normal. They grow where evaluations are few, because
the range of few is often small by chance.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, SERIES, STEP, VALUE, First, Mean
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import is_of, metric_name, recent_max, seen_max, start_value, was_resumed
from sentinel.detectors.verdict import SkipReason, verdicts

FEW = 4  # evaluations whose range is looked at, at least
MANY = 16  # the same, at most
REACH = 50  # evaluations
USEFUL = 0.2  # share from which on a first metric shows that the model knew something
UNTRAINED = (
    0.9  # of the first training loss: a first evaluation above this may be of a model that knew nothing
)
LEARNED = 0.5  # of the first training loss: below this, such a model has learned


@detector(
    judges=(
        *(Signal.EVAL_LOSS, Signal.EVAL_ERROR_RATE, Signal.EVAL_ACCURACY, Signal.EVAL_SCORE),
        *(Signal.MEAN_AVERAGE_PRECISION, Signal.MEAN_INTERSECTION_OVER_UNION),
    ),
    uses=(First(Signal.LOSS), Mean(Signal.LOSS)),
    history=History(recent=REACH, head=REACH),
    maturity=Maturity.STABLE,
    hold=1,  # a verdict rests on four evaluations already
    clear=1,
    cause=Cause.EVALUATION,
    needs_consent=True,
    evidence={
        "name": Measure("metric", Unit.TEXT),
        "first": Measure("at the first evaluation", Unit.SAME),
        "best": Measure("best since", Unit.SAME),
    },
    variants={
        "worse": Variant(
            "{name} was {first:.4g} at the first evaluation and never better than {best:.4g} since",
            ("O19", "X1", "X3", "A-overfit"),
        )
    },
)
def pretrained_regression(
    points: pl.LazyFrame,
    *,
    evaluations: Annotated[int, "evaluations after the first that are needed before a finding"] = 4,
    least_share: Annotated[
        float, "how much worse all others are: a share of the first loss, or points of a metric"
    ] = 0.1,
    least_ranges: Annotated[
        float, "how many times their own range all of four evaluations are worse by; less with more of them"
    ] = 10.0,
) -> pl.LazyFrame:
    is_loss = is_of(Signal.EVAL_LOSS)
    is_lower = is_loss | is_of(Signal.EVAL_ERROR_RATE)
    good = pl.when(is_lower).then(-pl.col(VALUE)).otherwise(VALUE)
    highest = seen_max("later", REACH, REACH)
    measured = points.with_columns(later=pl.when(pl.col(INDEX) > 0).then(good)).with_columns(
        first=start_value(VALUE),
        best=pl.when(is_lower).then(-highest).otherwise(highest),
        range=recent_max(pl.col("later"), MANY, at_least=1) + recent_max(-pl.col("later"), MANY, at_least=1),
        name=metric_name(),
    )
    first = pl.col("first")
    best = pl.col("best")
    worse = pl.when(is_lower).then(best - first).otherwise(first - best)
    least = pl.when(is_lower).then(least_share * first).otherwise(least_share)
    knew = (
        pl.when(is_loss)
        .then((first > 0) & ~_from_scratch(first))
        .when(is_lower)
        .then(first.is_between(0, 1 - USEFUL, closed="none"))
        .otherwise(first > USEFUL)
    )
    enough = 1 + (least_ranges - 1) * ((FEW - 2) / (pl.col(INDEX).clip(FEW, MANY) - 2)) ** 2
    return verdicts(
        measured,
        judged={SkipReason.FEW_POINTS: pl.col(INDEX) >= evaluations, SkipReason.RESUMED: ~was_resumed()},
        found={"worse": knew & (worse > least) & (worse > enough * pl.col("range"))},
        onset=pl.col(STEP).filter(pl.col(INDEX) == 1).first().over(SERIES),
    )


def _from_scratch(first: pl.Expr) -> pl.Expr:
    """Return whether the training loss shows that the model knew nothing at its first evaluation."""
    loss_first = pl.col(First(Signal.LOSS).column)
    loss = pl.col(Mean(Signal.LOSS).column)
    return ((first > UNTRAINED * loss_first) & (loss < LEARNED * loss_first)).fill_null(False)
