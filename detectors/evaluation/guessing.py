"""Whether held-out answers are no better than a guess, by their accuracy and their loss together."""

import polars as pl

from sentinel.detectors.api import Variant
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import VALUE, First
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import recent_median, recent_noise

REACH = 50
"""Evaluations that are looked at."""

GUESSES = 8
"""Evaluations before a guess is one."""

NEAR_GUESS, BETTER = 0.2, 0.4
"""Share by which the median accuracy may miss that of guessing, and the best one surpass it where the classes
are many."""

NEAR_LN, FAR_LN = 0.97, 1.15
"""Times ln n between which the loss of a guess lies."""

JUST, WORSE, WILD = 0.05, 0.5, 0.1
"""Where the loss is higher: how near to 1/n the accuracy is, the share of it that the worst exceeds, and the
scatter of the loss at least."""

LEARNS, STIRS = 0.015, 0.005
"""Shares of the first loss: a loss that fell by the one falls, and by the other may have begun to."""

USED = Signal.EVAL_LOSS, First(Signal.EVAL_LOSS), Signal.LOSS, First(Signal.LOSS)
"""What a rule has to list in ``uses``."""

GUESS = {
    "classes": Measure("classes among which a guess is right as often", Unit.COUNT),
    "level": Measure("median loss on held-out data", Unit.NATS),
}

GUESSED = {
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
}
"""How a guess is told, by variant."""

FEW_SAMPLES, ROUNDED = 30, 5e-5
"""Samples of one evaluation; how far a logged accuracy is from the true one."""


def is_of_few_samples(accuracy: pl.Expr) -> pl.Expr:
    """Whether an accuracy is a share of so few samples that it may repeat itself by chance."""
    right = {n: accuracy * n for n in range(1, FEW_SAMPLES + 1)}
    return pl.any_horizontal((k - k.round()).abs() < ROUNDED * n for n, k in right.items())


def with_guess(points: pl.LazyFrame) -> pl.LazyFrame:
    """A frame of accuracies with the columns of ``GUESS``, what `guesses` reads, and ``falls``, ``stirs``:
    whether the loss on held-out data fell, or that of training where there is none; null without either.
    """
    fell = []
    for use in (Signal.EVAL_LOSS, Signal.LOSS):
        first = pl.col(First(use).column)
        lowest = pl.min_horizontal(recent_median(use, REACH, at_least=GUESSES), use)
        fell.append((first - lowest) / first.abs())
    fall = pl.coalesce(*fell)
    return points.with_columns(
        classes=(1 / recent_median(VALUE, REACH, at_least=GUESSES)).round(),
        level=recent_median(Signal.EVAL_LOSS, REACH, at_least=GUESSES),
        trains=recent_median(Signal.LOSS, REACH, at_least=GUESSES),
        scatter=recent_noise(Signal.EVAL_LOSS, REACH, at_least=GUESSES - 2),
        falls=fall > LEARNS,
        stirs=fall > STIRS,
    )


def guesses() -> dict[str, pl.Expr]:
    """Two conditions, by variant: the loss is that of a guess, or far above, in training, too, and wild.

    Reads the columns of `with_guess` and ``lowest`` and ``highest``, the worst and the best accuracy.
    """
    classes, level = pl.col("classes"), pl.col("level")
    chance, surprise = 1 / classes, classes.log()
    off = (recent_median(VALUE, REACH, at_least=GUESSES) / chance - 1).abs()
    never_better = (classes > 1) & (pl.col("highest") < chance * (1 + BETTER * (1 - chance)))
    far_above = pl.min_horizontal("level", "trains") > FAR_LN * surprise
    begins = pl.col("lowest") > WORSE * chance  # who begins far below has learned
    wild = (off < JUST) & begins & pl.col("trains").is_not_null() & (pl.col("scatter") > WILD * level)
    at_guess = (
        (off < NEAR_GUESS)
        & level.is_between(NEAR_LN * surprise, FAR_LN * surprise)
        & ~pl.col("falls").fill_null(False)
    )
    return {"guess": never_better & at_guess, "lost": never_better & far_above & wild}
