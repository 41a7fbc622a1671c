"""The batches are not what the training supposes.

## What it catches
By the numbers of `sentinel.probe`: more than 1 % of the batches whose labels are all masked; more than 30 %
of the batches, or of their augmentations, that came before; batches in the order of an earlier epoch; ranks
with equal batches; scaled latents with a deviation outside 0.7 to 1.4; a condition that no batch of twenty
drops; a loss that is a fifth higher late in the texts than early.

## Why it matters
The loss falls on such batches as well. What was trained on half of the data, or on four views of each
picture, is worse only where it is used.

## What to do
Print one batch as the model gets it, from two workers, two ranks and two epochs.

## When it is wrong
Data that is read in order on purpose. A model for latents of another scale. A model that is trained without
guidance on purpose. Texts whose end is harder.

## Source
Catalogue A-nan-data, DP1, DP2, DP14, DF3, DF5 and L5, with the bounds of the catalogue. Repetitions are
exact; two workers that read the same shard give every batch twice.
"""

import polars as pl

from sentinel.detectors.api import INFO, Cause, History, Maturity, Variant, detector
from sentinel.detectors.bounds import Bound, beyond
from sentinel.detectors.signals import Signal

BOUNDS = {
    "all-masked": (Signal.MASKED_BATCH_SHARE, Bound(most=0.01)),
    "again": (Signal.BATCHES_AGAIN, Bound(most=0.3)),
    "augmented-alike": (Signal.AUGMENTATIONS_AGAIN, Bound(most=0.3)),
    "old-order": (Signal.BATCHES_IN_OLD_ORDER, Bound(most=0.5)),
    "equal-on-ranks": (Signal.EQUAL_BATCHES, Bound(most=0, rows=2)),
    "latents": (Signal.LATENT_STD, Bound(least=0.7, most=1.4, rows=5)),
    "never-dropped": (Signal.CONDITION_DROPPED, Bound(least=1e-9, rows=20)),
    "late-tokens": (Signal.LATE_EARLY_LOSS, Bound(most=1.2, rows=20)),
}
"""By variant: the signal that it bounds, and where; the page gives the sources."""


@detector(
    judges=tuple(signal for signal, _ in BOUNDS.values()),
    history=History(recent=max(bound.rows for _, bound in BOUNDS.values())),
    maturity=Maturity.PREVIEW,
    cause=Cause.LOSS_SHAPE,
    evidence={},
    variants={
        "all-masked": Variant(
            "all labels of {value:.0%} of the batches are masked, so they have no loss",
            ("A-nan-data", "L8", "L2"),
        ),
        "again": Variant("{value:.0%} of the batches came shortly before", ("DP2", "DP14")),
        "augmented-alike": Variant(
            "the augmentation of {value:.0%} of the batches was drawn before", ("DP1", "DP14")
        ),
        "old-order": Variant(
            "{value:.0%} of the batches come in the order of an earlier epoch", ("DP14", "DP1"), (INFO,)
        ),
        "equal-on-ranks": Variant("{value:.0f} ranks get the batch of another one", ("DP2", "DP14")),
        "latents": Variant("scaled latents have a deviation of {value:.2g}; 1 is right", ("DF3", "DF4")),
        "never-dropped": Variant("no condition was dropped in 20 batches", ("DF5",), (INFO,)),
        "late-tokens": Variant(
            "the loss at the end of the texts is {value:.2g} times that at their start", ("L5", "L4")
        ),
    },
)
def broken_batches(points: pl.LazyFrame) -> pl.LazyFrame:
    return beyond(points, BOUNDS)
