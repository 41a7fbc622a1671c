"""The evaluation does not measure the model that was trained.

## What it catches
By what `sentinel.probe` notes at evaluations: dropout or BatchNorm in training mode; inputs whose mean or
deviation differs from training's by more than half a deviation; a suppression that keeps fewer than a
hundredth of the boxes; images that lower the loss by less than a hundredth; a classifier that predicts next
to one class; a reference whose log-probability of one batch moves.

## Why it matters
The evaluation is what checkpoints, plans and papers are chosen by.

## What to do
Call `model.eval()` before and `model.train()` after. Give both loaders the same normalisation. Freeze the
reference, and copy it deeply.

## When it is wrong
Dropout at evaluations on purpose, to tell uncertainty. Strong augmentation that shifts the inputs of
training. An evaluation on another domain on purpose. A model at its very start predicts one class; three
evaluations are waited for.

## Source
Catalogue O5, V1, V4, V6, X5 and L9, with the bounds of the catalogue where it has some. Half a deviation is
ten times what batches of 400 values differ by.
"""

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.bounds import Bound, beyond
from sentinel.detectors.signals import Signal

BOUNDS = {
    "training-mode": (Signal.EVAL_TRAINING_SHARE, Bound(most=0, rows=2)),
    "other-inputs": (Signal.EVAL_INPUT_SHIFT, Bound(most=0.5)),
    "boxes-lost": (Signal.BOXES_KEPT, Bound(least=0.01, rows=3)),
    "blind": (Signal.IMAGE_GAIN, Bound(least=0.01, rows=2)),
    "one-class": (Signal.PREDICTION_ENTROPY, Bound(least=0.1, rows=3)),
    "reference-moves": (Signal.REFERENCE_DRIFT, Bound(most=0.01)),
}
"""By variant: the signal that it bounds, and where; the page gives the sources."""


@detector(
    judges=tuple(signal for signal, _ in BOUNDS.values()),
    history=History(recent=max(bound.rows for _, bound in BOUNDS.values())),
    maturity=Maturity.PREVIEW,
    cause=Cause.EVALUATION,
    evidence={},
    variants={
        "training-mode": Variant(
            "{value:.0%} of dropout and BatchNorm are in training mode at the evaluation", ("O5", "V2")
        ),
        "other-inputs": Variant(
            "the inputs of the evaluation are {value:.2g} deviations from training's", ("V1", "DP10", "V2")
        ),
        "boxes-lost": Variant("suppression keeps {value:.1%} of the boxes", ("V4", "V3")),
        "blind": Variant("the own image lowers the loss by {value:.1%} only", ("X5", "X1", "X2")),
        "one-class": Variant(
            "predictions have {value:.0%} of the entropy of the labels", ("V6", "O14", "GV")
        ),
        "reference-moves": Variant(
            "the reference's log-probability of one batch moved by {value:.2g} nats", ("L9", "R2")
        ),
    },
)
def broken_evaluation(points: pl.LazyFrame) -> pl.LazyFrame:
    return beyond(points, BOUNDS)
