"""The accuracy is the same to the last digit at every evaluation: the model always answers alike.

## What it catches
An accuracy on held-out data that has not changed in any digit since the first of at least six evaluations,
and is neither 0 nor 1.

## Why it matters
A classifier that learns changes its mind about some samples between two evaluations. One that gives the
same accuracy each time predicts one class for all of them; its accuracy is the share of that class.

## What to do
Count the predicted classes of one evaluation. If there is only one, compare the accuracy with the share of
the largest class. Weigh the loss by class, look at the labels' order, and test whether the model can
memorise two samples of each class.

## When it is wrong
A handful of held-out samples allows for few accuracies: one that is a share of 30 samples or fewer is not
judged. A good pretrained model may have the same accuracy for many evaluations. Hence only the stretch from
the first evaluation on counts, below 95 %.

## Source
Catalogue V6, O13, O1. With 100 samples and a model that changes its mind on four of them at each
evaluation, six equal accuracies in a row have a chance below one in a thousand.
"""

from typing import Annotated

import polars as pl

from detectors.api import Cause, History, Maturity, Variant, detector
from detectors.evidence import Measure, Unit
from detectors.schema import INDEX, VALUE
from detectors.signals import Signal
from detectors.stats import seen_max, seen_min
from detectors.verdict import HeldBack, verdicts

REACH = 50  # evaluations
FEW_SAMPLES = 30
ROUNDED = 5e-5  # how far a logged accuracy is from the true one


@detector(
    judges=(Signal.EVAL_ACCURACY,),
    history=History(recent=REACH, head=REACH),
    maturity=Maturity.STABLE,
    hold=1,  # a verdict rests on several evaluations already
    clear=1,
    cause=Cause.EVALUATION,
    evidence={
        "count": Measure("evaluations with this value", Unit.COUNT),
    },
    variants={
        "constant": Variant(
            "accuracy on held-out data has been {value:.4g} at every evaluation since the first",
            ("V6", "O1", "O13", "O2"),
        )
    },
)
def class_collapse(
    points: pl.LazyFrame,
    *,
    evaluations: Annotated[int, "evaluations before anything is said"] = 6,
    most_accuracy: Annotated[float, "accuracy from which on a good model may repeat itself"] = 0.95,
) -> pl.LazyFrame:
    """See the module's page."""
    measured = points.with_columns(
        lowest=seen_min(VALUE, REACH, REACH), highest=seen_max(VALUE, REACH, REACH), count=pl.col(INDEX) + 1
    )
    right = {n: pl.col(VALUE) * n for n in range(1, FEW_SAMPLES + 1)}
    few_samples = pl.any_horizontal((k - k.round()).abs() < ROUNDED * n for n, k in right.items())
    constant = (pl.col("lowest") == pl.col("highest")) & (pl.col(VALUE) <= most_accuracy)
    return verdicts(
        measured,
        judged={HeldBack.FEW_POINTS: pl.col("count") >= evaluations, HeldBack.COARSE: ~few_samples},
        found={"constant": constant & (pl.col(VALUE) > 0)},
    )
