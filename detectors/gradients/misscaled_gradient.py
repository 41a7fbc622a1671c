"""The gradient that the optimizer gets is not that of the loss, by a factor.

## What it catches
By the numbers of `sentinel.probe`: a gradient that holds more than a tenth of the last step's
(`grad/carried_over`); a cross-entropy that enters it with a weight below 0.7 or above 1.4 (`loss/weight`);
clipping that keeps less than a thousandth (`grad/kept_share`); a last quarter of the tensors whose gradient
is a thousand times that of the first quarter (`grad/late_early_ratio`).

## Why it matters
With Adam the loss falls all the same; what suffers is clipping, weight decay and the plan of the rate. With
SGD the rate is off by the factor.

## What to do
Count how often the loss is divided or scaled on its way to `backward()`, and look at the order of
`zero_grad`, `unscale_`, clipping and `step`.

## When it is wrong
A loss that is one of several terms has the weight of its term, and one that is summed on purpose the number
of its samples. Strong label smoothing lowers the weight. A small model that begins far off may clip that
much; that is waited for.

## Source
Catalogue O4, G5, O9, G2, G4, GA and GV. The weight of a mean loss is 1; two micro-batches make it 2
or 1/2, so the bounds are the square roots of these. A ratio of 1,000 between late and early layers is the
catalogue's.
"""

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.bounds import Bound, beyond
from sentinel.detectors.signals import Signal

BOUNDS = {
    "carried-over": (Signal.CARRIED_GRADIENT, Bound(most=0.1)),
    "scaled": (Signal.LOSS_WEIGHT, Bound(most=256, rows=3)),
    "heavy": (Signal.LOSS_WEIGHT, Bound(most=1.4, rows=3)),
    "light": (Signal.LOSS_WEIGHT, Bound(least=0.7, rows=3)),
    "clipped-away": (Signal.KEPT_GRADIENT, Bound(least=1e-3, rows=5)),
    "late-layers-only": (Signal.LATE_EARLY_GRADIENT, Bound(most=1e3, rows=20)),
}
"""By variant: the signal that it bounds, and where; the page gives the sources."""


@detector(
    judges=tuple(dict.fromkeys(signal for signal, _ in BOUNDS.values())),
    history=History(recent=max(bound.rows for _, bound in BOUNDS.values())),
    maturity=Maturity.PREVIEW,
    cause=Cause.GRADIENT_SIZE,
    evidence={},
    variants={
        "carried-over": Variant(
            "a step begins with {value:.2g} times its gradient left of the step before", ("O4", "G5")
        ),
        "scaled": Variant(
            "the loss enters the gradient {value:.3g} times, as if it was scaled twice", ("GA", "G2")
        ),
        "heavy": Variant("the loss enters the gradient {value:.2g} times", ("O9", "G2")),
        "light": Variant(
            "the loss enters the gradient {value:.2g} times, as if it was divided twice", ("O9", "G2")
        ),
        "clipped-away": Variant(
            "clipping leaves {value:.2g} of the gradient's norm", ("G4", "GA", "G10", "GE")
        ),
        "late-layers-only": Variant(
            "the gradient of the last layers is {value:.2g} times that of the first", ("GV", "O7")
        ),
    },
)
def misscaled_gradient(points: pl.LazyFrame) -> pl.LazyFrame:
    return beyond(points, BOUNDS)
