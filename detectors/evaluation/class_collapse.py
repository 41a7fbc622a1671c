"""The model always answers alike: its accuracy never changes, or it is that of guessing.

## What it catches
An accuracy that has not changed in any digit since the first of at least eight evaluations, and is neither 0
nor 1, while the loss does not fall or after 30 % of the plan; if neither is known, after fifty epochs or a
hundred evaluations. Once the run is over: the same of five, and of three while the loss did not fall by a
tenth, that on held-out data where that of training is not known; an accuracy that rests for eight below its
best or, below 80 %, for most of the run; one that had only 2 or 3 values there, at 4 evaluations or more; one
that stayed at 1/n for eight (five if the loss began above ln n or does not fall, three if both are those of a
guess to the third digit) while the held-out loss was never below ln n, as if guessing among n classes; and a
training accuracy that did not rise while the loss fell by a tenth, or not by 0.3 while it fell to nothing.
So it is at a stage of a known plan. While it goes on, at 10, 12, 14, 16, 20, 30, 40, 60, ... evaluations: a
held-out accuracy that rests below its best for ten, and after 30 % of a known plan one that guesses or had
few values.
Score cards are read as well, while the run goes on and at its end: points for what a person sees in its
plot. One tells at the end of a metric that rests at a poor level, on the data of the training as well, while
the training loss rests, too.

## Why it matters
A classifier that learns changes its mind. The same accuracy each time is mostly the share of one class.

## What to do
Count the predicted classes of one evaluation. If there is only one, compare the accuracy with the share of
the largest class. Weigh the loss by class, look at the labels' order, and test whether the model can
memorise two samples of each class. Lower the learning rate tenfold if the loss was ever far above ln n. If
the loss falls alone, the accuracy is computed from something else: look at the last layer and the threshold.

## When it is wrong
A handful of held-out samples allows for few accuracies: a share of 30 or fewer is judged at the end alone,
from eight on and below 80 %, or where a hundred are equal. One in whole percent may hide what changes, so it
needs 20 while the run goes on, and at its end where it is good. A good pretrained model may repeat its
accuracy, so only one below 95 % counts. On data of the training nothing is told beside a held-out one above
that, or far above it after a sure gain, most of which it keeps: then the other counts something else. Slow
learners among many classes are near guessing for long, but the loss falls below ln n, and a training accuracy
of 1.2 times its first value is about to leave it: no guess is told beside it while the run goes on. A resumed
run never guesses.

## Source
Catalogue V6, O13, O1, O19. Where four of 100 samples change at each evaluation, eight equal accuracies have a
chance below one in a thousand. The averages of batch normalisation may hold it still for the first seven.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.evaluation.guessing import (
    GUESS,
    GUESSED,
    REACH,
    USED,
    guesses,
    is_exact_guess,
    is_of_few_samples,
    with_guess,
)
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schedules import planned_steps
from sentinel.detectors.schema import (
    ENDED,
    EXCUSED,
    INDEX,
    SERIES,
    STEP,
    SUMS_UP,
    VALUE,
    First,
    Standing,
    is_concluded,
)
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import (
    is_of,
    recent_noise,
    resting,
    seen_grain,
    seen_max,
    seen_min,
    start_value,
    was_resumed,
)
from sentinel.detectors.supervised import ELSE, beats_guessing, is_supervised
from sentinel.detectors.verdict import SkipReason, verdicts
from sentinel.detectors.whole_run import beginning, ending, rests_since, was_stopped_late

AT_END = 5  # evaluations of a run that is over
AT_LEAST = 3  # the same where the training loss fell by little, or each evaluation is a guess
ROUNDS = 100  # evaluations that say as much as 50 epochs; of a round of federated training each may be a step
STUCK = 10  # evaluations that a held-out accuracy rests in a run that goes on
RESTS = 8  # evaluations that an accuracy rests, or in which it has few values
ANSWERS = 3  # different accuracies that are few
EACH = 4  # evaluations for each of them, at least
MOST = 0.75  # fraction of all evaluations that it rests at a poor level
FALL = 0.1  # fraction of the loss by which it fell little
GONE = 0.99  # fraction of the loss by which it fell to nothing
LIKELY = 20  # nats above which no cross-entropy begins
BELOW = 0.95  # of the best accuracy
FAR_BELOW = 0.9  # of the best accuracy, where it is one of few samples
POOR = 0.8  # an accuracy below that is poor
PERCENT = 0.01  # a log in whole percent
ROUNDED = 20  # evaluations of an accuracy in whole percent, before its rest is no rounding
CREEPS = 1.2  # times its first value, from which on an accuracy of the training leaves a guess
SLIGHT = 0.01  # gain of an accuracy that is ignored
LARGE = 0.3  # gain of one that follows any loss, though it may count what is padded
KEEPS = 0.8  # of its gain: a held-out accuracy that has so much of it left tells that answers differ
TRAINING = Signal.ACCURACY, First(Signal.ACCURACY)
SIXTH = 6  # two thirds differ by noise * sqrt(6 / points)
SURELY = 3  # standard errors


@detector(
    judges=(Signal.EVAL_ACCURACY, Signal.ACCURACY),
    uses=(
        *USED,
        Signal.ACCURACY,
        First(Signal.ACCURACY),
        Signal.EVAL_ACCURACY,
        Signal.TOTAL_STEPS,
        Signal.EPOCH,
        Standing(Signal.EVAL_ACCURACY),
        *ELSE,
    ),
    settings=(Setting.EPOCHS,),
    history=History(recent=REACH, head=REACH),
    at_end=True,
    at_interims=True,
    maturity=Maturity.STABLE,
    hold=1,  # a verdict rests on several evaluations already
    clear=1,
    cause=Cause.EVALUATION,
    evidence={
        "count": Measure("evaluations so far", Unit.COUNT),
        "answers": Measure("different accuracies so far", Unit.COUNT),
        "highest": Measure("best so far", Unit.SHARE),
        "lowest": Measure("worst so far", Unit.SHARE),
        "fall": Measure("fall of the training loss", Unit.SHARE),
        **GUESS,
    },
    variants={
        "constant": Variant("accuracy was {value:.4g} at every evaluation", ("V6", "O1", "O13", "O2")),
        "few-answers": Variant(
            "accuracy had only {answers} different values at {count} evaluations, {lowest:.4g} to "
            "{highest:.4g}",
            ("V6", "O19", "O13", "O7"),
        ),
        "stuck": Variant(
            "accuracy rests at {value:.4g} to the last digit; its best was {highest:.4g}",
            ("V6", "O19", "O13", "R1", "O25"),
        ),
        "guess": GUESSED,
        "unmatched": Variant(
            "accuracy is {value:.1%} and did not follow the loss, which fell by {fall:.1%}",
            ("O16", "V6", "O13", "L8", "DP12"),
        ),
    },
    reads=("metric-never-left-its-start", "rests-poor", "second-opinion-metric-low"),
)
def class_collapse(
    points: pl.LazyFrame,
    *,
    evaluations: Annotated[int, "evaluations needed before a finding"] = 8,
    most_accuracy: Annotated[float, "accuracy at or above which a good model may repeat itself"] = 0.95,
    least_share: Annotated[float, "share of the plan that must be done before a finding"] = 0.3,
) -> pl.LazyFrame:
    value = pl.col(VALUE)
    count = pl.col("count")
    loss = beginning(Signal.LOSS, REACH)
    held_out = is_of(Signal.EVAL_ACCURACY)
    few_samples = is_of_few_samples(value)
    begun_anew = ~was_resumed()
    context = points.with_columns(is_new=pl.col(VALUE).is_first_distinct().over(SERIES))
    measured = with_guess(context).with_columns(
        lowest=seen_min(VALUE, REACH, REACH),
        highest=seen_max(VALUE, REACH, REACH),
        count=pl.col(INDEX) + 1,
        answers=pl.when(pl.col(INDEX) < REACH).then(pl.col("is_new").cum_sum().over(SERIES)),
        rests=resting(value, REACH),
        fall=pl.when((loss > 0) & (loss <= LIKELY)).then(1 - ending(Signal.LOSS, REACH) / loss),
        last=ending(VALUE, REACH),
        informed=is_of(Signal.ACCURACY) & beats_guessing(ending(Signal.LOSS, REACH), value),
        passed=((pl.col(STEP) - start_value(STEP)) / planned_steps() >= least_share) | was_stopped_late(),
        **{EXCUSED: few_samples & ~pl.col(ENDED)},  # which tell little while a run goes on
    )
    at_end = is_concluded() & pl.col("passed").fill_null(True)
    at_interim = pl.col(SUMS_UP) & ~is_concluded() & held_out & ~few_samples
    whole = at_end | (at_interim & pl.col("passed").fill_null(False))
    unstirred = (held_out & ~pl.col("stirs")).fill_null(False)
    has_seen_enough = (pl.col(Signal.EPOCH) >= REACH).fill_null(False) | (count >= ROUNDS)
    many = (count >= ROUNDS) & (value < POOR)
    waited = pl.col("passed").fill_null(unstirred | has_seen_enough) & (~few_samples | many)
    enough = pl.when(at_end).then(~few_samples | (_is_poor() & (count >= RESTS))).otherwise(waited)
    first = pl.col(First(Signal.EVAL_LOSS).column)
    fall = pl.coalesce("fall", pl.when(first > 0).then(1 - pl.col("eval_loss_low") / first))
    tells_early = held_out & ((fall < FALL).fill_null(False) | is_exact_guess())
    at_least = pl.when(tells_early).then(AT_LEAST).otherwise(AT_END)
    constant = (pl.col("lowest") == pl.col("highest")) & (value <= most_accuracy) & (value > 0)
    tells = (seen_grain(VALUE, REACH, REACH) < PERCENT) | (count >= ROUNDED)
    tells |= at_end & (value < POOR)
    constant &= tells
    answers = pl.col("answers")
    few_answers = (
        (answers.is_between(2, ANSWERS) & (EACH * answers <= count) & (count >= RESTS))
        & ((pl.col("highest") < POOR) & ~few_samples & held_out & tells)
    ).fill_null(False)
    below = value < pl.col("highest") * BELOW
    stuck = (at_end | (at_interim & tells & below & (pl.col("rests") >= STUCK))) & _is_stuck(few_samples)
    return verdicts(
        measured,
        judged={
            SkipReason.FEW_POINTS: count >= pl.when(at_end).then(at_least).otherwise(evaluations),
            SkipReason.COARSE: ~few_samples | pl.col(ENDED) | many,
            SkipReason.EXPLAINED: held_out | ~_is_learned_elsewhere(most_accuracy),
        },
        found={
            "constant": constant & enough,
            "stuck": stuck,
            "few-answers": few_answers & whole,
            "guess": whole & held_out & begun_anew & guesses() & (pl.col(ENDED) | ~_creeps()),
            "unmatched": at_end & ~held_out & begun_anew & is_supervised() & _is_poor() & ~_follows(),
        },
        onset=pl.when(constant | few_answers | ~stuck)
        .then(start_value(STEP))
        .otherwise(rests_since(value, REACH)),
    )


def _creeps() -> pl.Expr:
    """Return whether the accuracy of the training creeps away from where it began."""
    risen = pl.col(Signal.ACCURACY) >= CREEPS * pl.col(First(Signal.ACCURACY).column)
    return risen.fill_null(value=False)


def _is_learned_elsewhere(most_accuracy: float) -> pl.Expr:
    """Return whether the accuracy of held-out data is good, or is far above this one after a sure gain, most
    of which it keeps.
    """
    accuracy = pl.col(Signal.EVAL_ACCURACY)
    keeps = pl.col(Standing(Signal.EVAL_ACCURACY).column) >= KEEPS
    return ((accuracy >= most_accuracy) | (keeps & (accuracy > CREEPS * pl.col(VALUE)))).fill_null(False)


def _is_poor() -> pl.Expr:
    """Return whether the accuracy of a run that is over ended low, but not at zero."""
    return pl.col("last").is_between(0, POOR, closed="none")


def _is_stuck(few_samples: pl.Expr) -> pl.Expr:
    """Return whether the accuracy rests below its best, or at a poor level for most of the run.

    A training loss that no guess can have tells classes apart, though its accuracy rests: few samples are all
    that there is to learn.
    """
    value = pl.col(VALUE)
    rests = pl.col("rests")
    below = value < pl.col("highest") * pl.when(few_samples).then(FAR_BELOW).otherwise(BELOW)
    for_most = _is_poor() & (rests >= MOST * pl.col("count")) & ~pl.col("informed")
    return (rests >= RESTS) & (value > 0) & (below | for_most)


def _follows() -> pl.Expr:
    """Return whether the loss fell by little, or the accuracy may have gained something.

    Beside a loss that fell to nothing only a large gain of a poor accuracy is enough.
    """
    noise = recent_noise(VALUE, REACH, at_least=1) * (SIXTH / pl.col("count")).sqrt()  # of a difference
    gain = ending(VALUE, REACH) - beginning(VALUE, REACH)
    may_gain = gain + SURELY * noise > SLIGHT
    return (pl.col("fall") < FALL) | (may_gain & ((pl.col("fall") < GONE) | (gain > LARGE)))
