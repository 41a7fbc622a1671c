"""The loss of a classifier starts far from what guessing costs.

## What it catches
A cross-entropy that is negative, or stands far above the logarithm of the number of classes. Before it has
learned anything, a classifier of `C` classes pays ln C, and a language model ln V for a vocabulary of `V`
tokens. The rule judges the first 50 points. A high start is info from the fifth on, and a warning if the loss
is still there after twenty. A negative one is a warning, and critical below -1 or beside a training accuracy.

## Why it matters
The start is the one moment at which the right value of the loss is known. A loss that misses it measures
something else: a sum in place of a mean, probabilities in place of logits, labels outside of their range.
The learning rate and the clipping threshold are then wrong by the same factor.

## What to do
Pass one batch of random inputs through the untrained model and compare the loss with ln C. If it is a whole
multiple, look for a missing division by the accumulation steps or for `reduction="sum"`. If it is negative,
feed `NLLLoss` with `log_softmax`, or use `CrossEntropyLoss` on the logits. Otherwise look at the scale of
the inputs and of the last layer.

## When it is wrong
Losses that add terms, such as those of object detectors, start above ln C. Hence the rule judges only where
the log has an accuracy or a perplexity beside the loss. A low start is no finding: whoever fine-tunes
begins far below ln V. A poor initialisation of the last layer costs a lot for some steps, hence the wait
for twenty points. Attempts that resume a training are left out. A similarity of two views lies between -1
and 0; it is called a classifier's where an accuracy on held-out data stands beside it.

## Source
Catalogue O16 (a negative loss), O9 (a multiple by the accumulation), DP12 and L8 (a scale or labels that
are wrong): ln C at the start is the first check of its convergence guide.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, INFO, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, SERIES, VALUE
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, recent_max, recent_median
from sentinel.detectors.supervised import ELSE, is_supervised
from sentinel.detectors.verdict import SkipReason, verdicts

FEW = 5  # points of which the median counts
FIRST = 50  # points that are still the start
LATE = 20  # points after which a poor initialisation has been overcome
OWN = Signal.ACCURACY, Signal.PERPLEXITY  # of the training, so of its own loss
RATES = (*OWN, Signal.EVAL_ACCURACY, Signal.EVAL_PERPLEXITY)


@detector(
    judges=(Signal.LOSS,),
    uses=(*RATES, *ELSE),
    settings=(Setting.NUM_CLASSES, Setting.VOCAB_SIZE, Setting.ACCUMULATION_STEPS),
    history=History(recent=FIRST, earlier=1),
    maturity=Maturity.STABLE,
    hold=1,  # a verdict rests on five points already
    cause=Cause.LOSS_SHAPE,
    evidence={
        "level": Measure("median of the last five points", Unit.SAME),
        "guess": Measure("what guessing costs", Unit.SAME),
        "times": Measure("times what guessing costs", Unit.NONE),
        Setting.ACCUMULATION_STEPS: Measure("accumulation steps", Unit.COUNT),
    },
    variants={
        "negative": Variant(
            "loss of a classifier starts below zero, at {level:.4g}; a cross-entropy cannot",
            ("O16", "O12"),
            (WARNING, CRITICAL),
        ),
        "high": Variant(
            "loss starts at {level:.4g}, {times:.3g} times the {guess:.4g} that guessing costs",
            ("DP12", "L8", "O1", "O9", "O16", "N-loss-items"),
            (INFO, WARNING),
        ),
    },
)
def init_loss_mismatch(
    points: pl.LazyFrame,
    *,
    most_times: Annotated[float, "multiple of ln C at or above which a start is too high"] = 1.5,
) -> pl.LazyFrame:
    classifies = pl.any_horizontal(pl.col(r).is_not_null() for r in RATES)
    classes = pl.coalesce(Setting.NUM_CLASSES, Setting.VOCAB_SIZE)
    measured = points.with_columns(
        level=recent_median(VALUE, FEW),
        highest=recent_max(pl.col(VALUE), FEW),
        guess=classes.log(),
        resumed=(pl.col(INDEX) < 0).any().over(SERIES),
    ).with_columns(times=pl.col("level") / pl.col("guess"))
    late = recent_median(VALUE, LATE) > most_times * pl.col("guess")
    high = pl.col("times") > most_times
    known = pl.any_horizontal(pl.col(r).is_not_null() for r in OWN)
    return verdicts(
        measured,
        judged={
            SkipReason.NOT_SUPERVISED: is_supervised(),
            SkipReason.NOT_CLASSIFIER: classifies,
            SkipReason.RESUMED: ~pl.col("resumed"),
            SkipReason.FEW_POINTS: has_points(FEW),
            SkipReason.LATE: pl.col(INDEX) < FIRST,
        },
        found={
            "negative": pl.col("highest") < 0,
            "high": high,
        },
        severities={WARNING: late, CRITICAL: known | (pl.col("level") < -1)},
    )
