"""Model, optimizer and ranks are not wired as they ought to be.

## What it catches
Numbers of `sentinel.probe` that are 0 in every training that is put together rightly: tensors in two
optimizers, frozen tensors that a step moves, trained tensors that no gradient reaches, tied weights that came
apart, ranks with other weights than the first, gradients in fewer bits than their weights. And statistics of
frozen BatchNorms that moved by more than a twentieth, and weights in bfloat16 or float16 of which more than
90 % do not feel a step.

## Why it matters
The loss falls in each case, by what the rest of the model learns. Nothing that a trainer logs shows it.

## What to do
Mend the one place that the message names. The entry says which line is the usual one.

## When it is wrong
Optimizers that take turns on the same weights on purpose. A head that is a free copy of the embeddings on
purpose. A part of the model that is not used yet and that an optimizer holds. Statistics that are
re-estimated on purpose. Gradients that are kept short to save memory. Weights in 16 bits beside a
copy in 32 that the probe does not see.

## Source
Catalogue O3, O17, O18, N-two-optimizers, N-untied-weights, N-ranks-apart and N-lost-updates. The counts are
exact, and 5 % in a frozen layer is the catalogue's. In bfloat16 a step below 1/512 of a weight is
lost.
"""

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.bounds import Bound, beyond
from sentinel.detectors.signals import Signal

NONE = Bound(most=0)  # a count that is exact
BOUNDS = {
    "held-twice": (Signal.TENSORS_HELD_TWICE, NONE),
    "frozen-moved": (Signal.FROZEN_TENSORS_MOVED, NONE),
    "never-reached": (Signal.TENSORS_NEVER_REACHED, Bound(most=0, rows=3)),
    "untied": (Signal.UNTIED_TENSORS, NONE),
    "gradients-narrow": (Signal.NARROW_GRADIENTS, NONE),
    "ranks-differ": (Signal.DIFFERING_RANKS, NONE),
    "statistics-drift": (Signal.FROZEN_STATISTICS_DRIFT, Bound(most=0.05)),
    "updates-lost": (Signal.LOST_UPDATE_SHARE, Bound(most=0.9, rows=3)),
}
"""By variant: the signal that it bounds, and where; the page gives the sources."""


@detector(
    judges=tuple(signal for signal, _ in BOUNDS.values()),
    history=History(recent=max(bound.rows for _, bound in BOUNDS.values())),
    maturity=Maturity.PREVIEW,
    cause=Cause.NO_GRADIENT,
    evidence={},
    variants={
        "held-twice": Variant(
            "{value:.0f} tensors are in more than one optimizer or group, so each step moves them twice",
            ("N-two-optimizers", "O17"),
        ),
        "frozen-moved": Variant("a step moved {value:.0f} frozen tensors", ("O17", "X1")),
        "never-reached": Variant(
            "{value:.0f} tensors that the optimizer holds had no gradient at any step", ("O3", "X1", "O2")
        ),
        "untied": Variant(
            "{value:.0f} tensors that ought to be tied to another one are free", ("N-untied-weights", "O2")
        ),
        "ranks-differ": Variant(
            "{value:.0f} ranks hold other weights than the first one",
            ("N-ranks-apart", "GD", "N-silent-corruption"),
        ),
        "gradients-narrow": Variant(
            "{value:.0f} tensors have a gradient in fewer bits than their own", ("N-lost-updates", "O10")
        ),
        "statistics-drift": Variant(
            "running means of frozen BatchNorms have moved by {value:.0%}", ("O18", "V7")
        ),
        "updates-lost": Variant(
            "rounding to 16 bits loses the update of {value:.0%} of the weights", ("N-lost-updates", "O7")
        ),
    },
)
def broken_wiring(points: pl.LazyFrame) -> pl.LazyFrame:
    return beyond(points, BOUNDS)
