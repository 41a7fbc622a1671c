"""The training improves, and held-out data see nothing of it from the first evaluation on.

## What it catches
A training loss that has fallen by 60 % while no evaluation was ever a tenth below the first, or below the
training loss at its start, if that is higher. Once the last three evaluations are all 5 % above the best
one, `generalization-gap` tells more and this begins no incident. Likewise a training accuracy half way from
guessing to perfection while no evaluation came a tenth of that way. At least three evaluations are needed.
And a loss that rests to the last digit for eight evaluations while that of the training fell by 5 %. And five
evaluations in a row that are all a thousand times the training loss at its start, and ten times apart.
A score card is read as well, at interims and at the end: points for a metric of any kind that never left its
start, at a level that is not good, while the training loss fell by half or more.

## Why it matters
A model that learns anything general is better on held-out data than an untrained one. If it is not, the
evaluation sees other inputs, other labels or another mode of the network than the training. Every decision
that rests on this evaluation is wrong, early stopping first of all.

## What to do
Evaluate on some training samples with the evaluation's own code. If they score badly, the code differs:
compare normalisation, channel order, resizing, tokenizer and label order of both paths, and look whether
`model.eval()` breaks the network (batch statistics that were never trained). If they score well, the model
memorises, or the held-out data are of another kind.

## When it is wrong
A model that memorises a small data set within its first epoch looks the same: the labels of both are worth
a look then. An evaluation loss of another kind or unit than the training loss seldom stands still, and is
not compared if the first one is thrice the training loss at its start, unless it rests: an absolute error
beside a squared one. A log that begins with a resume does not know what the loss was before any training, so
its losses are not compared.

## Source
Catalogue V1, DP10, O18, O5: three evaluations from the very first one. A fall of 60 % is measured: a
healthy fine-tuning on few samples halves its training loss while the evaluation loss rests. The accuracy is
judged as Cohen's kappa, so that the number of classes, where it is known, sets the level of guessing.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.evaluation.stale import STALE, with_stale
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import VALUE, First, Mean
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import (
    has_points,
    is_of,
    recent_max,
    seen_max,
    seen_min,
    start_value,
    was_resumed,
)
from sentinel.detectors.verdict import SkipReason, verdicts

REACH = 50  # evaluations
SAME = 0.9  # of a level: an evaluation above this has not improved
RISEN = 1.05  # times the best of all: from there on `generalization-gap` tells more
LEARNED = 0.5  # kappa above which a model has learned
KNOWS_NOTHING = 0.1  # kappa below which a model guesses
FAR = 1000  # times the training loss at its start: no evaluation of the same inputs
FAR_EVALUATIONS = 5  # in a row that are as far
ALIKE = 3  # times the training loss at its start that the first evaluation may be, in the same unit
MOVES = 0.01  # share of its level by which an evaluation in whatever unit has moved
SPREAD = 10  # times the smallest of these that the largest is: a sum in place of a mean is steadier
OTHERS = (  # of which the card alone speaks
    *(Signal.EVAL_SCORE, Signal.EVAL_QUALITY, Signal.EVAL_ERROR_RATE, Signal.EVAL_DISTANCE),
    *(Signal.MEAN_AVERAGE_PRECISION, Signal.MEAN_INTERSECTION_OVER_UNION),
)
CAUSES = ("V1", "DP10", "O18", "O5", "A-overfit", "N-ema-lag")


@detector(
    judges=(Signal.EVAL_LOSS, Signal.EVAL_ACCURACY, *OTHERS),
    uses=(Mean(Signal.LOSS), First(Signal.LOSS), Mean(Signal.ACCURACY)),
    settings=(Setting.NUM_CLASSES,),
    history=History(recent=REACH, head=REACH),
    maturity=Maturity.STABLE,
    hold=1,  # a verdict rests on three evaluations already
    clear=1,
    cause=Cause.EVALUATION,
    needs_consent=True,
    evidence={
        "lowest": Measure("lowest of all evaluations", Unit.SAME),
        "highest": Measure("highest of all evaluations", Unit.SAME),
        "loss_first": Measure("training loss at the start", Unit.NONE),
        "loss_mean": Measure("training loss now", Unit.NONE),
        "least_far": Measure("smallest of the last five evaluations", Unit.SAME),
        "most_far": Measure("largest of the last five evaluations", Unit.SAME),
        "accuracy_mean": Measure("training accuracy now", Unit.SHARE),
    },
    variants={
        "loss": Variant(
            "loss fell from {loss_first:.4g} to {loss_mean:.4g} on training data, and on held-out data never "
            "below {lowest:.4g}",
            CAUSES,
        ),
        "accuracy": Variant(
            "accuracy is {accuracy_mean:.4g} on training data, never above {highest:.4g} on held-out data",
            CAUSES,
        ),
        "far": Variant(
            "loss is {loss_mean:.4g} on training data, and from {least_far:.3g} to {most_far:.3g} at the "
            "last five evaluations on held-out data",
            CAUSES,
        ),
        **STALE,
    },
    reads=("learns-its-training-alone",),
)
def train_eval_mismatch(
    points: pl.LazyFrame,
    *,
    evaluations: Annotated[int, "evaluations needed before a finding"] = 3,
    least_fall: Annotated[float, "share of its start that the training loss must have fallen by"] = 0.6,
) -> pl.LazyFrame:
    loss = pl.col("loss_mean")
    start = pl.col("loss_first")
    recent = {"at_least": evaluations}
    measured = with_stale(points).with_columns(
        lowest=seen_min(VALUE, REACH, REACH),
        highest=seen_max(VALUE, REACH, REACH),
        first=start_value(VALUE),
        guess=(1 / pl.col(Setting.NUM_CLASSES)).fill_null(0.0),
        near=-recent_max(-pl.col(VALUE), evaluations),
        least_far=-recent_max(-pl.col(VALUE), FAR_EVALUATIONS),
        most_far=recent_max(pl.col(VALUE), FAR_EVALUATIONS),
        loss_level=recent_max(loss, evaluations, **recent),
        accuracy_level=-recent_max(-pl.col("accuracy_mean"), evaluations, **recent),
    )
    fell = pl.col("loss_level") < (1 - least_fall) * start
    is_far = (pl.col("least_far") > FAR * start) & (pl.col("most_far") > SPREAD * pl.col("least_far"))
    stuck = pl.col("lowest") >= SAME * pl.max_horizontal("first", start)
    risen = pl.col("near") > RISEN * pl.col("lowest")
    is_alike = pl.col("first") <= ALIKE * start
    rests = pl.col("highest") - pl.col("lowest") < MOVES * pl.col("lowest")
    kappa = {
        column: (pl.col(column) - pl.col("guess")) / (1 - pl.col("guess"))
        for column in ("highest", "accuracy_level")
    }
    is_loss = is_of(Signal.EVAL_LOSS)
    is_accuracy = is_of(Signal.EVAL_ACCURACY)
    train = pl.when(is_loss).then("loss_level").otherwise("accuracy_level")
    return verdicts(
        measured,
        judged={
            SkipReason.FEW_POINTS: has_points(evaluations),
            SkipReason.NOT_COMPARABLE: (is_loss | is_accuracy) & train.is_not_null(),
            SkipReason.RANGE: ~is_loss | (start > 0),
            SkipReason.RESUMED: ~is_loss | ~was_resumed(),
        },
        found={
            "stale": is_loss & pl.col("stale"),
            "far": is_loss & (pl.col("loss_level") < start) & is_far,
            "loss": is_loss & fell & stuck & ~risen & (is_alike | rests),
            "accuracy": is_accuracy
            & (kappa["accuracy_level"] > LEARNED)
            & (kappa["highest"] < KNOWS_NOTHING),
        },
        lasts=is_loss & ((fell & stuck) | is_far),
    )
