"""The model always answers alike: its accuracy never changes, or it is that of guessing.

## What it catches
An accuracy on held-out data that has not changed in any digit since the first of at least six evaluations,
and is neither 0 nor 1. And, once the run is over, one that has stayed at 1/n for some number n of classes
since the first of at least eight evaluations, while the loss on held-out data has stayed where guessing among
n classes puts it, at ln n. Too large steps leave a loss that scatters far above that, in training, too. While
the run goes on, one that learns slowly looks the same.

## Why it matters
A classifier that learns changes its mind about some samples between two evaluations. One that gives the
same accuracy each time predicts one class for all of them; its accuracy is the share of that class. One
that guesses has learned nothing that holds beyond its training data, or has lost it to too large steps.

## What to do
Count the predicted classes of one evaluation. If there is only one, compare the accuracy with the share of
the largest class. Weigh the loss by class, look at the labels' order, and test whether the model can
memorise two samples of each class. Lower the learning rate tenfold if the loss was ever far above ln n.

## When it is wrong
A handful of held-out samples allows for few accuracies: one that is a share of 30 samples or fewer is not
judged. A good pretrained model may have the same accuracy for many evaluations. Hence only the stretch from
the first evaluation on counts, below 95 %. A model that learns slowly among very many classes is near to
guessing for long, but its loss falls. A network that generalises long after it has memorised guesses before.
A resumed run may have learned before, so there only an accuracy that never changes counts.

## Source
Catalogue V6, O13, O1, O19. With 100 samples and a model that changes its mind on four of them at each
evaluation, six equal accuracies in a row have a chance below one in a thousand.
"""

from typing import Annotated

import polars as pl

from detectors.api import Cause, History, Maturity, Variant, detector
from detectors.context import First
from detectors.evidence import Measure, Unit
from detectors.schema import ENDED, INDEX, VALUE
from detectors.signals import Signal
from detectors.stats import recent_median, recent_noise, seen_max, seen_min, was_resumed
from detectors.verdict import HeldBack, verdicts

REACH, FEW_SAMPLES = 50, 30  # evaluations, and samples of one
ROUNDED = 5e-5  # how far a logged accuracy is from the true one
GUESSES = 8  # evaluations before a guess is one
NEAR_GUESS = 0.2  # share by which the median accuracy may miss that of guessing,
BETTER = 0.4  # and the best one surpass it where the classes are many
NEAR_LN, FAR_LN = 0.97, 1.15  # times ln n between which the loss of a guess lies
JUST, WILD = 0.05, 0.1  # where the loss is higher: how near to 1/n the accuracy is, and its scatter at least
LEARNS = 0.985  # of the first loss: a loss below it falls


@detector(
    judges=(Signal.EVAL_ACCURACY,),
    uses=(Signal.EVAL_LOSS, First(Signal.EVAL_LOSS), Signal.LOSS),
    history=History(recent=REACH, head=REACH),
    at_end=True,
    maturity=Maturity.STABLE,
    hold=1,  # a verdict rests on several evaluations already
    clear=1,
    cause=Cause.EVALUATION,
    evidence={
        "count": Measure("evaluations so far", Unit.COUNT),
        "classes": Measure("classes among which a guess is right as often", Unit.COUNT),
        "level": Measure("median loss on held-out data", Unit.NATS),
    },
    variants={
        "constant": Variant(
            "accuracy on held-out data has been {value:.4g} at every evaluation since the first",
            ("V6", "O1", "O13", "O2"),
        ),
        "guess": Variant(
            "accuracy on held-out data is {value:.1%} after {count} evaluations, no better than a guess "
            "among {classes:.0f} classes",
            ("V6", "O1", "O19", "O2"),
        ),
        "lost": Variant(
            "accuracy on held-out data is {value:.1%} after {count} evaluations, as that of a guess among "
            "{classes:.0f} classes, and the loss is {level:.3g}, far above that of a guess",
            ("O19", "O9", "O4", "O1", "V6"),
        ),
    },
)
def class_collapse(
    points: pl.LazyFrame,
    *,
    evaluations: Annotated[int, "evaluations before anything is said"] = 6,
    most_accuracy: Annotated[float, "accuracy from which on a good model may repeat itself"] = 0.95,
) -> pl.LazyFrame:
    """See the module's page."""
    measured = points.with_columns(
        lowest=seen_min(VALUE, REACH, REACH),
        highest=seen_max(VALUE, REACH, REACH),
        count=pl.col(INDEX) + 1,
        classes=(1 / recent_median(VALUE, REACH, at_least=GUESSES)).round(),
        level=recent_median(Signal.EVAL_LOSS, REACH, at_least=GUESSES),
        trains=recent_median(Signal.LOSS, REACH, at_least=GUESSES),
        scatter=recent_noise(Signal.EVAL_LOSS, REACH, at_least=GUESSES - 2),
    )
    right = {n: pl.col(VALUE) * n for n in range(1, FEW_SAMPLES + 1)}
    few_samples = pl.any_horizontal((k - k.round()).abs() < ROUNDED * n for n, k in right.items())
    constant = (pl.col("lowest") == pl.col("highest")) & (pl.col(VALUE) <= most_accuracy)
    chance, surprise = 1 / pl.col("classes"), pl.col("classes").log()
    off = (recent_median(VALUE, REACH, at_least=GUESSES) / chance - 1).abs()
    never_better = pl.col("highest") < chance * (1 + BETTER * (1 - chance))
    guess_loss = pl.col("level").is_between(NEAR_LN * surprise, FAR_LN * surprise)
    falls = pl.min_horizontal("level", Signal.EVAL_LOSS) < LEARNS * pl.col(First(Signal.EVAL_LOSS).column)
    guesses = pl.col(ENDED) & (pl.col("classes") > 1) & never_better & ~was_resumed()
    far_above = pl.min_horizontal("level", "trains") > FAR_LN * surprise
    wild = (off < JUST) & pl.col("trains").is_not_null() & (pl.col("scatter") > WILD * pl.col("level"))
    return verdicts(
        measured,
        judged={HeldBack.FEW_POINTS: pl.col("count") >= evaluations, HeldBack.COARSE: ~few_samples},
        found={
            "constant": constant & (pl.col(VALUE) > 0),
            "guess": guesses & (off < NEAR_GUESS) & guess_loss & ~falls,
            "lost": guesses & far_above & wild,
        },
    )
