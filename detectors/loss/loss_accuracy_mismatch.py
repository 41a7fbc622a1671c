"""The loss is far higher than its accuracy allows: its input is not what the loss expects.

## What it catches
A cross-entropy that lies where softmax twice would put it: within 5 % of `ln(e + C - 1) - accuracy` for `C`
classes, and never below `ln(1 + (C - 1) / e)`, while a classifier as accurate could have far less. And a
`BCELoss` whose wrong samples cost more than 17 nats each, while the loss is above `ln(2)`, that of guessing.

## Why it matters
`CrossEntropyLoss` applies softmax itself. Fed with probabilities, which differ by 1 at most, it cannot come
near zero, and gradients all but vanish for samples that are clearly wrong. A sigmoid in float32 rounds to 1
beyond 17 nats. `BCELoss` then takes 100 for a wrong sample and gives no useful gradient.

## What to do
Feed raw logits: drop the softmax before `CrossEntropyLoss`, and take `BCEWithLogitsLoss` without a sigmoid.
Apply softmax or sigmoid for predictions alone. If logits are large, normalise the inputs.

## When it is wrong
A loss that adds terms to the cross-entropy may lie there by chance, but hardly start at ln C with an accuracy
that doubles since. Label smoothing and mixing of samples raise a loss by less, so five classes are needed. A
`BCELoss` that is summed over a batch looks saturated.

## Source
Catalogue O12: the floor is what one-hot probabilities give. Catalogue O13: PyTorch cuts the logarithm in
`BCELoss` at -100; the step of float32 below 1 is 2^-24, which are 16.6 nats. A calibrated classifier pays at
most Fano's bound, `H(accuracy) + (1 - accuracy) ln(C - 1)`; the loss must exceed it by two fifths.
"""

from math import e, log
from typing import Annotated

import polars as pl

from detectors.api import Cause, History, Maturity, Variant, detector
from detectors.context import First
from detectors.evidence import Measure, Unit
from detectors.schema import INDEX, VALUE
from detectors.settings import Setting
from detectors.signals import Signal
from detectors.stats import recent_median, seen_min, start_value
from detectors.verdict import HeldBack, verdicts

REACH = 50  # points
NEAR = 0.05  # of the expected loss
CLASSES = 5  # with fewer, the floor is near what label smoothing gives
ROUNDED = 17.0  # nats of a wrong sample beyond which a sigmoid in float32 is 0 or 1
LEARNED = 2  # times its first value: an accuracy that was near guessing at the start


@detector(
    judges=(Signal.LOSS,),
    uses=(Signal.ACCURACY, Signal.EVAL_ACCURACY, First(Signal.ACCURACY), First(Signal.EVAL_ACCURACY)),
    settings=(Setting.NUM_CLASSES, Setting.LOSS),
    history=History(recent=REACH, head=REACH),
    every=5,
    maturity=Maturity.STABLE,
    cause=Cause.LOSS_SHAPE,
    evidence={
        "level": Measure("median of the last 50 points", Unit.SAME),
        "right": Measure("median accuracy over them", Unit.SHARE),
        "allowed": Measure("what a calibrated classifier pays at most", Unit.SAME),
        "expected": Measure("what softmax twice gives", Unit.SAME),
        "each": Measure("loss for each wrong sample", Unit.SAME),
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
    },
)
def loss_accuracy_mismatch(
    points: pl.LazyFrame,
    *,
    least_accuracy: Annotated[float, "accuracy from which on a loss is judged"] = 0.6,
    times: Annotated[float, "times what a calibrated classifier pays"] = 1.4,
) -> pl.LazyFrame:
    """See the module's page."""
    level, right, wrong = pl.col("level"), pl.col("right"), 1 - pl.col("right")
    accuracy = pl.coalesce(Signal.ACCURACY, Signal.EVAL_ACCURACY)
    accuracy_first = pl.coalesce(First(Signal.ACCURACY).column, First(Signal.EVAL_ACCURACY).column)
    classes = pl.coalesce(Setting.NUM_CLASSES, start_value(VALUE).clip(upper_bound=12).exp())
    known = pl.col(Setting.NUM_CLASSES).is_not_null() | (right > LEARNED * accuracy_first)
    surprise = -pl.when(wrong > 0).then(wrong * wrong.log()).otherwise(0) - right * right.log()
    measured = (
        points.with_columns(accuracy=accuracy, classes=classes)
        .with_columns(
            level=recent_median(VALUE, REACH),
            right=recent_median("accuracy", REACH),
            lowest=seen_min(VALUE, REACH, REACH),
        )
        .with_columns(
            expected=(e + pl.col("classes") - 1).log() - right,
            allowed=surprise + wrong * (pl.col("classes") - 1).clip(1).log(),
            each=pl.when(wrong > 0).then(level / wrong),
        )
    )
    floor = (1 + (pl.col("classes") - 1) / e).log()
    twice = ((level / pl.col("expected") - 1).abs() < NEAR) & (pl.col("lowest") > (1 - NEAR) * floor)
    too_high = level > times * pl.col("allowed")
    bce = pl.col(Setting.LOSS) == "bce"
    enough = right > least_accuracy
    return verdicts(
        measured,
        judged={
            HeldBack.FEW_POINTS: pl.col(INDEX) >= REACH - 1,
            HeldBack.NOT_CLASSIFIER: right.is_not_null(),
        },
        found={
            "softmax-twice": enough & known & (pl.col("classes") > CLASSES - 0.5) & twice & too_high,
            "saturated": enough & bce & (level > log(2)) & (pl.col("each") > ROUNDED),
        },
    )
