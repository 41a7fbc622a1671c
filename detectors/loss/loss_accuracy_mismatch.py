"""The loss is far higher than its accuracy allows: its input is not what the loss expects.

## What it catches
A cross-entropy that rests where softmax twice would put it: at most 5 % below and 10 % above
`ln(e + C - 1) - accuracy` for `C` classes, since the middle of the run, and never below
`ln(1 + (C - 1) / e)`, on held-out data neither, while a classifier as accurate could have far less. And a
`BCELoss` whose wrong samples cost more than 17 nats each, while the loss is above `ln(2)`, that of guessing.
Any loss whose wrong samples in training all cost what a probability of 0 does in Keras or PyTorch.

## Why it matters
`CrossEntropyLoss` applies softmax itself. Fed with probabilities, it cannot come near zero, and gradients
all but vanish for samples that are clearly wrong. A probability that has rounded to 0 or 1 has no gradient.

## What to do
Feed raw logits to `CrossEntropyLoss` or `BCEWithLogitsLoss`; if they are large, normalise the inputs.

## When it is wrong
A healthy loss passes that level while it falls, and does not rest there. A loss that adds terms may lie
there by chance, but hardly start at ln C with an accuracy that doubles since. Label smoothing and mixing of
samples raise a loss by less, so five classes are needed, and not the one on held-out data. The loss of a
`BCELoss` that is summed over its outputs looks saturated.

## Source
Catalogue O12: the floor is what one-hot probabilities give. Catalogue O13: PyTorch cuts the logarithm in
`BCELoss` at -100; float32 below 1 steps by 16.6 nats. A calibrated classifier pays at most Fano's bound,
`H(accuracy) + (1 - accuracy) ln(C - 1)`; the loss must exceed it by two fifths.
"""

from math import e, log
from typing import Annotated

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.loss.costs import CONSTANT, COSTS, with_costs
from sentinel.detectors.schema import ENDED, INDEX, VALUE, First
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, of_buckets, recent_median, seen_min, start_value
from sentinel.detectors.supervised import ELSE, is_supervised
from sentinel.detectors.verdict import SkipReason, verdicts

REACH = 50  # points that count, and those of a run that ends with fewer
FEW = 5  # it has twice as many
NEAR = 0.05  # of the expected loss
CLASSES = 5  # with fewer, the floor is near what label smoothing gives
UNSURE = 0.1  # of it: by how much more a network pays that is not sure of what it knows
ROUNDED = 17.0  # nats of a wrong sample beyond which a sigmoid in float32 is 0 or 1
LEARNED = 2  # times the first accuracy, which was near guessing
RATES = (Signal.ACCURACY, Signal.EVAL_ACCURACY)
MAX_START = 12  # nats, of 160,000 classes
HALF = 0.5  # a whole number of classes, rounded


@detector(
    judges=(Signal.LOSS,),
    uses=(*RATES, *map(First, RATES), Signal.EVAL_LOSS, *ELSE),
    settings=(Setting.NUM_CLASSES, Setting.LOSS),
    history=History(recent=REACH, head=REACH, coarse=True),
    every=5,
    at_end=True,
    maturity=Maturity.STABLE,
    cause=Cause.LOSS_SHAPE,
    evidence={
        "level": Measure("median of the last points", Unit.SAME),
        "right": Measure("median accuracy over them", Unit.SHARE),
        "allowed": Measure("what a calibrated classifier pays at most", Unit.SAME),
        "expected": Measure("what softmax twice gives", Unit.SAME),
        "each": Measure("loss for each wrong sample", Unit.SAME),
        **COSTS,
    },
    variants={
        "softmax-twice": Variant(
            "loss is {level:.4g} at an accuracy of {right:.0%}; a calibrated classifier pays at most "
            "{allowed:.2g}, and softmax twice gives {expected:.4g}",
            ("O12", "O16"),
        ),
        "saturated": Variant(
            "loss is {level:.4g} at an accuracy of {right:.0%}: each wrong sample costs {each:.3g} nats, so "
            "the sigmoid before BCELoss has rounded to 0 or 1",
            ("O13", "DP12"),
        ),
        **CONSTANT,
    },
)
def loss_accuracy_mismatch(
    points: pl.LazyFrame,
    *,
    least_accuracy: Annotated[float, "accuracy from which on a loss is judged"] = 0.6,
    times: Annotated[float, "multiple of a calibrated classifier's loss that is too large"] = 1.4,
) -> pl.LazyFrame:
    level = pl.col("level")
    right = pl.col("right")
    classes = pl.col("classes")
    long = pl.col(INDEX) >= REACH  # an accuracy is that of the row before
    # Without a setting it is the number whose guess costs what the loss began at.
    classes_at_start = start_value(VALUE).clip(upper_bound=MAX_START).exp()
    context = with_costs(points, reach=REACH).with_columns(
        accuracy=pl.coalesce(*RATES), classes=pl.coalesce(Setting.NUM_CLASSES, classes_at_start)
    )
    measured = context.with_columns(
        level=pl.when(long).then(recent_median(VALUE, REACH)).otherwise(recent_median(VALUE, FEW)),
        right=pl.coalesce(recent_median("accuracy", rows) for rows in (REACH, FEW)),
        halfway=_halfway(),
        lowest=seen_min(VALUE, REACH, REACH),
    ).with_columns(
        expected=(e + classes - 1).log() - right,
        allowed=_allowed(right, classes),
        each=pl.when(right < 1).then(level / (1 - right)),
    )
    enough = right > least_accuracy
    is_worse_than_guessing = (pl.col(Setting.LOSS) == "bce") & (level > log(2))
    return verdicts(
        measured,
        judged={
            SkipReason.FEW_POINTS: long | (pl.col(ENDED) & has_points(2 * FEW)),
            SkipReason.NOT_CLASSIFIER: right.is_not_null(),
        },
        found={
            "softmax-twice": enough
            & _are_classes_known()
            & _is_softmax_twice()
            & (level > times * pl.col("allowed")),
            "saturated": enough & is_worse_than_guessing & (pl.col("each") > ROUNDED),
            "constant": pl.col("constant") & is_supervised(),
        },
    )


def _allowed(right: pl.Expr, classes: pl.Expr) -> pl.Expr:
    """Return what a calibrated classifier of this accuracy pays at most, by Fano's bound."""
    wrong = 1 - right
    surprise = -pl.when(wrong > 0).then(wrong * wrong.log()).otherwise(0) - right * right.log()
    return surprise + wrong * (classes - 1).clip(1).log()


def _are_classes_known() -> pl.Expr:
    """Return whether the number of classes, five at least, is in the settings or of a loss that began at
    guessing.

    An accuracy that has doubled since tells that.
    """
    first = pl.coalesce(First(rate).column for rate in RATES)
    are_known = pl.col(Setting.NUM_CLASSES).is_not_null() | (pl.col("right") > LEARNED * first)
    return are_known & (pl.col("classes") > CLASSES - HALF)


def _halfway() -> pl.Expr:
    """Return where the loss stood in the middle of the run; in a short one, a few points before the last."""
    buckets = pl.col("coarse_mean").list
    middle = of_buckets(buckets.get(buckets.len() // 2, null_on_oob=True))
    return pl.coalesce(middle, pl.when(ENDED).then(recent_median(VALUE, FEW, skip=FEW)))


def _is_softmax_twice() -> pl.Expr:
    """Return whether the loss rests where softmax twice puts it, and was never below what that allows for.

    Nor is the loss on held-out data, if it is logged.
    """
    rests = pl.all_horizontal(
        (pl.col(level) / pl.col("expected")).is_between(1 - NEAR, 1 + UNSURE)
        for level in ("level", "halfway")
    )
    lowest = pl.min_horizontal("lowest", Signal.EVAL_LOSS)
    return rests & (lowest > (1 - NEAR) * (1 + (pl.col("classes") - 1) / e).log())
