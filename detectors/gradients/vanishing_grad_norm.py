"""The gradient norm has all but vanished while the loss has not fallen.

## What it catches
A median gradient norm over the last twenty points below a hundredth of that of the first twenty, or below
a millionth, while the loss is still above 90 % of where it began. Where the norms of single layers are
logged: one that is a hundred thousand times smaller than another, under the same condition.

## Why it matters
A small gradient is right for a model that has learnt its task. For one that has not it means that the
signal is lost on its way down: in saturated activations, in depth, or in numbers too small for their type.

## What to do
Log the norm of each layer: if it falls from the last to the first by orders of magnitude, use ReLU or GELU
in place of sigmoid and tanh, residual connections, normalisation layers and He initialisation. If all
layers fell together, look for dead units and for logits that are saturated. In fp16 scale the loss.

## When it is wrong
A loss whose level says nothing, as those of reinforcement learning, is not judged. Fine-tuning of a
model that knew its task begins with a loss that cannot fall far.

## Source
Catalogue GV and O25. The gradient guide names 10^-6; the levels of healthy runs differ by six orders of
magnitude, hence the comparison with the run's own start, and only with a loss that did not fall.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import VALUE, Every
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, now_and_then
from sentinel.detectors.verdict import SkipReason, verdicts

LEVEL_POINTS = 20  # points of the start and of the present level


@detector(
    judges=(Signal.GRAD_NORM,),
    uses=(Signal.LOSS, Every(Signal.LAYER_GRAD_NORM)),
    history=History(recent=LEVEL_POINTS, head=LEVEL_POINTS),
    maturity=Maturity.STABLE,
    cause=Cause.NO_GRADIENT,
    inhibits=(Cause.LOSS_SHAPE,),  # weights without a gradient do not move the loss
    evidence={
        "level": Measure("median of the last 20 points", Unit.SAME),
        "start": Measure("at the start", Unit.SAME),
        "loss_level": Measure("loss now", Unit.NONE),
        "loss_start": Measure("loss at the start", Unit.NONE),
        "smallest_layer": Measure("smallest norm of a layer", Unit.SAME),
        "largest_layer": Measure("largest norm of a layer", Unit.SAME),
    },
    variants={
        "vanished": Variant(
            "the gradient norm is {level:.2g}, {start:.2g} at the start, although the loss is still "
            "{loss_level:.4g}, from {loss_start:.4g}",
            ("GV", "O25", "O7"),
        ),
        "in-depth": Variant(
            "the gradient norm of one layer is {smallest_layer:.2g}, that of another {largest_layer:.2g}, "
            "and the "
            "loss is still {loss_level:.4g}, from {loss_start:.4g}",
            ("GV", "O25"),
        ),
    },
)
def vanishing_grad_norm(
    points: pl.LazyFrame,
    *,
    share_of_start: Annotated[float, "share of the first norms below which a norm has vanished"] = 0.01,
    smallest: Annotated[float, "norm below which it has vanished whatever it was"] = 1e-6,
    depth: Annotated[float, "largest ratio between the norms of two layers"] = 1e5,
    loss_left: Annotated[float, "share of its start above which the loss has not fallen"] = 0.9,
) -> pl.LazyFrame:
    level, start, loss, loss_start = (
        pl.col(column) for column in ("level", "start", "loss_level", "loss_start")
    )
    layers = pl.col(Every(Signal.LAYER_GRAD_NORM).column).list
    positive = layers.eval(pl.element().filter(pl.element() > 0)).list
    smallest_layer = pl.col("smallest_layer")
    largest_layer = pl.col("largest_layer")
    small = (level < share_of_start * start) | (level < smallest)
    stays = (loss_start > 0) & (loss > loss_left * loss_start)
    return verdicts(
        points.with_columns(
            **now_and_then(VALUE, LEVEL_POINTS, start=LEVEL_POINTS),
            **now_and_then(
                Signal.LOSS, LEVEL_POINTS, start=LEVEL_POINTS, at_least=LEVEL_POINTS // 2, of="loss_"
            ),
            smallest_layer=positive.min(),
            largest_layer=positive.max(),
        ),
        judged={
            SkipReason.FEW_POINTS: has_points(2 * LEVEL_POINTS),
            SkipReason.NOT_COMPARABLE: loss.is_not_null(),
        },
        found={
            "vanished": stays & small & (level > 0),
            "in-depth": stays & (largest_layer > depth * smallest_layer),
        },
        below=pl.max_horizontal(share_of_start**0.5 * start, pl.lit(smallest)),
    )
