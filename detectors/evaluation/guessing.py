"""Whether held-out answers are no better than a guess, by their accuracy and their loss together."""

import polars as pl

from sentinel.detectors.api import Variant
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, VALUE, First
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import recent_median

REACH = 50
"""Evaluations that are looked at."""

GUESSES = 8
"""Evaluations before a guess is one."""

FEW_GUESSES = 5
"""Evaluations that suffice where the loss began above that of a guess, or does not fall."""

FEWEST_GUESSES = 3
"""Evaluations that suffice where each of them is a guess to the third digit, by the accuracy and the loss."""

NEAREST = 0.02
"""Fraction by which each accuracy of so few may miss that of guessing."""

NEAREST_LN = 0.003
"""Fraction by which the loss of so few may miss that of guessing."""

ABOVE_LN = 1.05
"""Times ln n above which such a loss began."""

NEAR_GUESS = 0.2
"""Fraction by which the median accuracy may miss that of guessing."""

FAR = 0.6
"""Fraction by which any accuracy may miss that of guessing, if the classes are many."""

NEAR_LN = 0.97
"""Times ln n above which the loss of a guess lies."""

FAR_LN = 1.15
"""Times ln n below which the loss of a guess lies."""

MAX_CLASSES = 4
"""Classes among which an accuracy tells how many there are, so that a loss is known to have come down to a
guess at last."""

LEARNS = 0.015
"""Fraction of a loss; one that fell by more falls."""

STIRS = 0.005
"""Fraction of a loss; one that fell by more may have begun to fall."""

USED = Signal.EVAL_LOSS, First(Signal.EVAL_LOSS), Signal.LOSS, First(Signal.LOSS)
"""What a rule has to list in ``uses``."""

GUESS = {
    "classes": Measure("classes among which a guess is right as often", Unit.COUNT),
    "level": Measure("median loss on held-out data", Unit.NATS),
}

GUESSED = Variant(
    "accuracy on held-out data is {value:.1%} after {count} evaluations, no better than a guess "
    "among {classes:.0f} classes",
    ("V6", "O1", "O19", "O2"),
)
"""How a guess is told."""

FEW_SAMPLES = 30
"""Samples of one evaluation that are few."""

ROUNDED = 5e-5
"""How far a logged accuracy is from the true one."""


def is_of_few_samples(accuracy: pl.Expr) -> pl.Expr:
    """Return whether an accuracy is a share of so few samples that it may repeat itself by chance."""
    right = {samples: accuracy * samples for samples in range(1, FEW_SAMPLES + 1)}
    return pl.any_horizontal(
        (right_count - right_count.round()).abs() < ROUNDED * samples
        for samples, right_count in right.items()
    )


def with_guess(points: pl.LazyFrame) -> pl.LazyFrame:
    """Return a frame of accuracies with the columns of ``GUESS``, what `guesses` reads, and ``stirs``:
    whether the loss on held-out data may have begun to fall, or that of training where there is none, null
    without them.
    """
    lows = {
        use: pl.min_horizontal(recent_median(use, REACH, at_least=FEWEST_GUESSES), use)
        for use in (Signal.EVAL_LOSS, Signal.LOSS)
    }
    first = {use: pl.col(First(use).column) for use in lows}
    return points.with_columns(
        classes=(1 / recent_median(VALUE, REACH, at_least=FEWEST_GUESSES)).round(),
        level=recent_median(Signal.EVAL_LOSS, REACH, at_least=FEWEST_GUESSES - 1),  # as of the one before
        eval_loss_low=lows[Signal.EVAL_LOSS],
        stirs=pl.coalesce((first[use] - low) / first[use].abs() for use, low in lows.items()) > STIRS,
    )


def guesses() -> pl.Expr:
    """Return whether the accuracy and the loss are those of a guess, and the loss does not fall below that.

    A loss that began above a guess, as with a learning rate that is too high, comes down to it without
    learning. But then the accuracy was never far from a guess. Reads the columns of `with_guess`, and
    ``lowest`` and ``highest``, the worst and the best accuracy.
    """
    classes = pl.col("classes")
    chance = 1 / classes
    surprise = classes.log()
    off = (recent_median(VALUE, REACH, at_least=FEWEST_GUESSES) / chance - 1).abs()
    far = FAR * chance * (1 - chance)
    always_near = (classes > 1) & (pl.col("highest") < chance + far) & (pl.col("lowest") > chance - far)
    usual, came_down = (
        pl.col(cost).is_between(NEAR_LN * surprise, FAR_LN * surprise) for cost in ("level", "eval_loss_low")
    )
    at_guess = (off < NEAR_GUESS) & (usual | (came_down & (classes <= MAX_CLASSES)))
    first = pl.col(First(Signal.EVAL_LOSS).column)
    least = pl.min_horizontal(first, surprise)
    learns_nothing = ~pl.col("stirs") | (first > ABOVE_LN * surprise)
    count = pl.col(INDEX) + 1
    enough = (count >= GUESSES) | (learns_nothing & ((count >= FEW_GUESSES) | is_exact_guess()))
    return always_near & at_guess & enough & (pl.col("eval_loss_low") >= (1 - LEARNS) * least)


def is_exact_guess() -> pl.Expr:
    """Return whether each evaluation is a guess to the third digit. Reads what `guesses` reads."""
    classes = pl.col("classes")
    off = [(pl.col(name) * classes - 1).abs() < NEAREST for name in ("lowest", "highest")]
    costs = [(pl.col(name) / classes.log() - 1).abs() < NEAREST_LN for name in ("level", "eval_loss_low")]
    return ((classes > 1) & pl.all_horizontal(*off, *costs)).fill_null(False)
