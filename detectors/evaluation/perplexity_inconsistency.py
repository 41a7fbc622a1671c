"""The logged perplexity of held-out data does not fit their logged loss.

## What it catches
A perplexity whose logarithm differs from the loss of the same evaluation by more than 0.01 plus 1 %, at
three evaluations in a row. A loss in bits is allowed, and so is a ratio of the two that never changes.

## Why it matters
The two are the same number in two forms. If they differ, one of them is averaged in another way, most often
over batches and not over tokens, and cannot be compared with published figures or between runs with other
batch sizes.

## What to do
Sum the loss over all tokens that count, divide once by their number, and take the exponential of that. Do
not average the perplexities of batches, and leave padding out of sum and count.

## When it is wrong
A perplexity per word beside a loss per token has a constant ratio of logarithms; it is recognised from 10 %
on. An evaluation loss that includes other terms, such as a load-balancing loss, differs by these.

## Source
Catalogue L7: the tolerance of 0.01 plus 1 % covers numbers that are logged with three digits.
"""

from math import log
from typing import Annotated

import polars as pl

from sentinel.detectors.api import INFO, Cause, History, Variant, detector
from sentinel.detectors.evidence import Measure, Unit, logged
from sentinel.detectors.schema import VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import recent_max
from sentinel.detectors.verdict import SkipReason, verdicts

SAME = 3  # evaluations over which a constant ratio is recognised
PER_WORD = 0.1  # of a ratio of one: closer than this, a constant one is no other unit
CONSTANT = 0.01  # of a ratio: how far it may move and count as constant
ROUNDS = 0.01  # of the loss, in nats: perplexities of large losses are rounded more


@detector(
    judges=(Signal.EVAL_PERPLEXITY,),
    needs=(Signal.EVAL_LOSS,),
    history=History(recent=SAME),
    hold=SAME,
    cause=Cause.EVALUATION,
    evidence={**logged(Signal.EVAL_LOSS), "expected": Measure("perplexity of that loss", Unit.SAME)},
    variants={
        "differs": Variant(
            "perplexity is {value:.4g}, but a loss of {eval_loss:.4g} makes {expected:.4g}",
            ("L7", "O15"),
            (INFO,),
        )
    },
)
def perplexity_inconsistency(
    points: pl.LazyFrame,
    *,
    tolerance: Annotated[
        float, "largest difference between the loss and the perplexity's logarithm that is ignored"
    ] = 0.01,
) -> pl.LazyFrame:
    loss = pl.col(Signal.EVAL_LOSS)
    inside = pl.col(VALUE).log()
    off = {unit: (inside - loss * factor).abs() for unit, factor in {"nats": 1.0, "bits": log(2)}.items()}
    ratio = pl.col("ratio")
    measured = points.with_columns(ratio=inside / loss, expected=loss.exp()).with_columns(
        most=recent_max(ratio, SAME, at_least=SAME), least=-recent_max(-ratio, SAME, at_least=SAME)
    )
    other_unit = ((ratio - 1).abs() > PER_WORD) & (pl.col("most") - pl.col("least") < CONSTANT * ratio)
    differs = pl.all_horizontal(o > tolerance + ROUNDS * loss for o in off.values())
    return verdicts(
        measured,
        judged={
            SkipReason.RANGE: (pl.col(VALUE) > 0) & (loss > 0),
            SkipReason.FEW_POINTS: pl.col("most").is_not_null(),
        },
        found={"differs": differs & ~other_unit},
    )
