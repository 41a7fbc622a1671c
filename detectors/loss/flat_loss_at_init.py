"""The training loss has not moved since the training began.

## What it catches
A supervised loss whose last third (at most 200 points) stands where its first third stood: the fall is below
`least_fall` with 95 % confidence, a little more at the cost of guessing. A sure fall below 3.5 % crawls. At
the end a loss that came down to guessing is flat, too, 40 points with a sure fall below 1 %, and few that end
no lower: 4 alike (10 after a resume), 5 beside an accuracy below 0.7 that gained under 0.05, 10 within 5 %.
So it is while the run goes on, at 10, 12, 14, 16, 20, 30, 40, 60, ... points: if all are alike (20 of batches
without a plan); or with noise below 9 %, neither at its lowest nor surely lower, with a plan, or from 20
points on at guessing or in 20 epochs. What the end would tell is told at a stage of a known plan, and without
one once it stood at all of these points while the log grew to three times its length, or to twice from 40
points of smooth epochs or 300 steps on (at guessing only so). That a loss ends no lower is told from 20
points on.
A loss that only rose, and rests at the logarithm of a power of two from 1024 on, guesses among its outputs.
Score cards are read as well, while the run goes on and at its end: points for what a person sees in the plot.
One asks what guessing costs among as many classes as the accuracy tells, whatever the noise of small batches.
Another one tells of a run of six rows and 80 steps or more that stood still in all of them, once it is over
or the log grew so to three times its length. Of eight rows it is enough that the second half rests at the
cost of a guess to the third digit.
Of a discriminator the card alone speaks: it has never been better than one that gives one half to all. So it
does of a preference loss that never left its start.

## Why it matters
Nearly always this is wiring: unknown or frozen weights, a cut graph, wrong labels, a rate far too small.

## What to do
Train on two samples until the loss is about zero. If it does not get there, see whether a step changes a
weight, and which parameters the optimizer holds. With a gradient norm of zero, the loss reaches no weight.

## When it is wrong
Tasks with a long plateau look so, and fine-tuning whose fall the noise hides. While it goes on, one that ends
lower beside a held-out loss 0.5 % below its first one creeps, and may leave; so may one without a plan that
fell by more than its points scatter and goes on falling. So the rule waits for 30 % of
the plan, or half of that at guessing or without a gradient, but for ten epochs at most in a run that is over:
who stops early plans far more. Few points may be a trial of some batches. A mean
average precision or intersection over union of 0.2 is that of a model that was trained before. So is a loss
below the entropy that the accuracy of the same data allows a guess. A loss a hundredth below the cost of
guessing is no guess any more. Two networks that became equal also rest at one half, but the discriminator was
better before.

## Source
Catalogue O1, O2, O3, O7, O21. Healthy runs stay within 2 % of their start for 60 points or 250 steps at most.
"""

from math import inf, log
from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, INFO, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.interims import AT_ONCE, THRICE, TWICE
from sentinel.detectors.loss.thirds import FALL, LEAST, with_fall
from sentinel.detectors.schedules import planned_steps, warms_up
from sentinel.detectors.schema import (
    EXCUSED,
    GROWN,
    INDEX,
    SIGNAL,
    STEP,
    SUMS_UP,
    VALUE,
    VARIANT,
    First,
    grown,
    is_concluded,
)
from sentinel.detectors.settings import Setting
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import PRECISION, is_of, recent_max, recent_median, seen_min, start_value
from sentinel.detectors.supervised import (
    ELSE,
    FIRST,
    beats_guessing,
    cost_of_guessing,
    settled_at_guessing,
    supervised,
)
from sentinel.detectors.verdict import SkipReason, verdicts
from sentinel.detectors.whole_run import (
    ACCURACIES,
    CONTEXT,
    EPOCHS,
    GOOD_ACCURACY,
    MANY,
    MIN_ROWS_ALONE,
    MIN_ROWS_FOR_THIRDS,
    WHOLE,
    counts_epochs,
    is_training,
    never_fell,
    was_stopped_late,
    with_whole,
)

EVERY = 5  # points between two verdicts
MOST = 200  # points of a third of the run, at most
FEW = 20  # points of a gradient of zero
FEW_ROWS = 24  # points up to which a run may be a trial,
TRIAL = 80  # steps, if it has no more
RISEN = 10  # points of a loss that only rose
ROSE = 0.01  # share of its first value by which it rose at least
RESTS = 0.0005  # share of its level within which it rests, and lies at the cost of guessing
MIN_OUTPUTS = 1024  # outputs of a projection, which are a power of two
CLASSES = (Setting.NUM_CLASSES, Setting.VOCAB_SIZE)  # settings that name the number of classes
NEAR = 0.015  # fraction by which a loss may miss that of guessing
BETTER = 0.01  # fraction below the cost of guessing from which on it has surely left it
CREEPS = 0.005  # share by which a held-out loss is below its first one when it creeps away from there
GOES_ON = 0.1  # of its fall, by which its last points are below the level of its last third
HELD_OUT_FALL = 0.05  # share by which a held-out loss falls beside a training loss that hides what is learnt
NOISY = 0.09  # share of its start by which single points of a loss scatter, as those of small batches do
SEEN = 2  # epochs before a loss at the cost of guessing is told of a run that goes on without a plan
LONG = 20  # epochs before another flat one is
CLEARLY = 4  # below this part of a fall, half the wait is enough
FLAT = "loss has not moved for {lasted}: {now:.4g}, {start:.4g} at the start"
DOUBTFUL = (INFO, WARNING)
BESIDE = Signal.GRAD_NORM, Signal.EVAL_LOSS
FINDS = Signal.MEAN_AVERAGE_PRECISION, Signal.MEAN_INTERSECTION_OVER_UNION
FOUND = 0.2  # of these: a model that knows its task
CUT = ("O3", "O21", "O4", "O2", "O1")
SLOW = ("O7", "O12", "O1")
UNMOVED = ("O1", "O2", "O3", "O7", "O21", "O4", "L8", "O5", "O12", "O16", "L2", "GV")
GUESSES = ("O1", "O7", "L8", "O2", "O3", "O4", "O5", "O21", "O12", "GV")
STOOD = {
    **dict.fromkeys(("no-gradient", "at-chance", "gradient-without-effect", "unmoved"), TWICE),
    "never-fell": THRICE,
    "crawling": inf,
}  # times to which a log has to have grown while interims found it
OTHERS = Signal.DISCRIMINATOR_LOSS, Signal.PREFERENCE_LOSS  # of these the cards alone speak
APPLIED = ("O2", "O7", "O1", "L8", "O4", "O5", "O12", "O16", "L2")  # a gradient that changes nothing


@detector(
    judges=(Signal.LOSS, Signal.EVAL_LOSS, *OTHERS),
    uses=(*BESIDE, *map(First, BESIDE), Signal.TOTAL_STEPS, *CONTEXT, *ELSE, *FINDS),
    settings=(*CLASSES, Setting.EPOCHS),
    history=History(recent=MOST, head=MOST, coarse=True),
    every=EVERY,
    at_end=True,
    at_interims=True,
    maturity=Maturity.STABLE,
    cause=Cause.LOSS_SHAPE,
    evidence={
        **(FALL | WHOLE),
        "gradient": Measure("gradient norm now", Unit.NONE),
        "grad_norm_first": Measure("gradient norm at the start", Unit.NONE),
        "chance": Measure("cost of guessing", Unit.SAME),
        "first": Measure("at the first point", Unit.SAME),
        "risen": Measure("median of the last 10 points", Unit.SAME),
        "classes": Measure("classes that are guessed among", Unit.COUNT),
    },
    variants={
        "zero": Variant("loss is exactly 0 from the first point on", ("O15", "O16", "L2", "O3")),
        "no-gradient": Variant(FLAT + "; the gradient norm is zero", CUT, (CRITICAL,)),
        "crawling": Variant("loss fell by only {fall:.2%} in {lasted}, to {now:.4g}", SLOW, DOUBTFUL),
        "at-chance": Variant("loss is {now:.4g} after {lasted}; guessing costs {chance:.4g}", GUESSES),
        "gradient-without-effect": Variant(FLAT + "; the gradient norm is {gradient:.2g}", APPLIED, DOUBTFUL),
        "unmoved": Variant(FLAT, UNMOVED, DOUBTFUL),
        "rose-to-guessing": Variant(
            "loss only rose, from {first:.4g} to {risen:.4g}: guessing among {classes:.0f} outputs",
            ("N-distillation-temperature", "O7", "GE", "O1"),
        ),
        "never-fell": Variant("loss ends at {ends:.4g}; it began at {begins:.4g}", UNMOVED),
    },
    reads=(
        "never-left-its-start",
        "rests-at-guessing",
        "loss-never-below-its-start",
        "never-better-than-even",
        "no-cheaper-than-guessing",
        "stands-still",
        "came-down-to-guessing",
        "second-opinion-held-out-loss-high",
    ),
)
def flat_loss_at_init(
    points: pl.LazyFrame,
    *,
    least_share: Annotated[float, "share of the planned steps before a loss at guessing is told"] = 0.15,
    least_steps: Annotated[int, "the same in steps, where the plan is not known"] = 300,
    patient_steps: Annotated[int, "steps before any other flat loss is told where no plan is known"] = 4000,
    least_fall: Annotated[float, "share of the start by which a loss must fall to have moved"] = 0.02,
    doubtful_fall: Annotated[float, "the same at a level of guessing, and once the run is over"] = 0.01,
) -> pl.LazyFrame:
    plan, start, gradient, most = (pl.col(column) for column in ("plan", "start", "gradient", "most"))
    over, never, guesses, flat = (pl.col(column) for column in ("over", "never", "guesses", "flat"))
    of_others = pl.any_horizontal(is_of(signal) for signal in OTHERS)
    context = points.with_columns(warms_up=warms_up(MOST), gradient=recent_max(pl.col(Signal.GRAD_NORM), FEW))
    context = context.with_columns(
        plan=planned_steps(),
        first=start_value(VALUE),
        risen=recent_median(VALUE, RISEN),
        scatter=recent_max(pl.col(VALUE), RISEN) + recent_max(-pl.col(VALUE), RISEN),
        lowest=seen_min(VALUE, MOST, MOST),
        tells_apart=_tells_classes_apart(),
    ).with_columns(classes=(2 ** (pl.col("risen") / log(2)).round()).cast(pl.Float64))
    off_guessing = ((pl.col(level) / pl.col("chance") - 1).abs() for level in ("start", "now"))
    measured = (
        with_fall(with_whole(context, most=MOST), most=MOST, every=EVERY)
        .with_columns(
            chance=cost_of_guessing(pl.col("now"), near=NEAR, settings=CLASSES),
            wait=(least_share * plan).fill_null(least_steps),
            patience=(2 * least_share * plan).fill_null(patient_steps),
        )
        .with_columns(
            guesses=(pl.max_horizontal(off_guessing) < NEAR)
            & (pl.col("now") > (1 - BETTER) * pl.col("chance"))
        )
        .with_columns(
            over=pl.col(SUMS_UP)
            & (is_concluded() | _is_clear(least_steps) | ~_at_chance() | _is_sure(least_steps))
            & is_training(least_steps, EPOCHS)
            & _did_its_part(waits=1),
            never=~of_others
            & pl.col(SUMS_UP)
            & (is_concluded() | _is_clear(least_steps) | ~_at_chance() | _stands_clearly())
            & never_fell(least_steps, least_fall)
            & _did_its_part(waits=2)
            & ~_held_out_fell()
            & (is_concluded() | ~_both_creep()),
        )
        .with_columns(
            late=over | (pl.col("trained") >= pl.col("patience")),
            settled=over & settled_at_guessing(CLASSES),
            # The largest fall that is none: more at the cost of guessing, and once nothing more comes.
            bound=least_fall + doubtful_fall * (over.cast(pl.Int8) + guesses.cast(pl.Int8)),
        )
        .with_columns(flat=_is_flat(doubtful_fall), **{EXCUSED: pl.col("tells_apart") | _is_trial()})
    )
    rose = _rose_to_guessing()
    waited = _has_waited(least_fall / CLEARLY)
    return verdicts(
        measured,
        judged={SkipReason.OTHER_TAG: never | is_of(Signal.LOSS)}
        | supervised(never | (pl.col("rows") >= LEAST))
        | {SkipReason.RESUMED: never | start.is_not_null(), SkipReason.RANGE: never | (start >= 0)}
        | {SkipReason.EARLY: over | never | rose | waited | (start == 0)}
        | {SkipReason.EXPLAINED: ~(_knows_its_task() | pl.col("tells_apart"))}
        | {SkipReason.WARM_UP: ~(pl.col("warms_up") & (flat | never | pl.col("crawls")))},
        found={
            "rose-to-guessing": rose,
            "zero": (start == 0) & (pl.col("now") == 0) & ~_answers_well(),
            "no-gradient": flat & (gradient == 0),
            "crawling": pl.col("crawls") & ~never & (~over | is_concluded() | waited),
            "at-chance": flat & (pl.col("settled") | (guesses & gradient.is_null())),
            "gradient-without-effect": flat & gradient.is_not_null(),
            "unmoved": flat,
            "never-fell": never,
        },
        lasts=~pl.col("fell") | rose,
        severities={WARNING: flat & (pl.col("settled") | guesses | over | (most < least_fall / 2))},
        onset=pl.col(STEP) - pl.col("trained"),
    ).with_columns(_grown(least_steps))


def _grown(least_steps: int) -> pl.Expr:
    """Return to how many times its length a log has to have grown while interims found the same. What never
    fell is told of few rows at the end alone.
    """
    needed = grown(_is_clear(least_steps), STOOD)
    is_sure = _is_sure(least_steps) | (pl.col(VARIANT) == "at-chance")
    needed = pl.when((needed == TWICE) & ~is_sure).then(THRICE).otherwise(needed)
    is_short = (pl.col(VARIANT) == "never-fell") & (pl.col("rows") < MIN_ROWS_FOR_THIRDS)
    may_leave = is_short | _goes_on_falling()
    return pl.when(may_leave & (needed > AT_ONCE)).then(inf).otherwise(needed).alias(GROWN)


def _is_clear(least_steps: int) -> pl.Expr:
    """Return whether a run that goes on shows clearly enough that its loss rests at its start.

    Of the noise of small batches it is not known. Without a plan, slow learning looks alike for long, except
    at the cost of guessing. Where few digits of it are logged, single batches are alike for some time, and
    epochs or evaluations are not.
    """
    has_plan = pl.col("plan").is_not_null()
    many = has_plan | (pl.col("rows") >= MIN_ROWS_FOR_THIRDS)
    epoch = pl.col(Signal.EPOCH)
    long = (pl.col("trained") >= least_steps) & (epoch >= SEEN).fill_null(True)
    guesses = (pl.col("guesses") & (long | counts_epochs())).fill_null(False)
    waited = has_plan | guesses | (epoch >= LONG).fill_null(False)
    is_clear = (_rests() & (many | _is_of_epochs())) | (~_creeps() & many & _is_smooth() & waited)
    return is_clear & (pl.col("rows") >= MIN_ROWS_ALONE)


def _rests() -> pl.Expr:
    """Return whether a loss never moved, in digits that would tell."""
    return (pl.col("range") < PRECISION) & pl.col("is_fine")


def _creeps() -> pl.Expr:
    """Return whether a loss is at its lowest, or surely lower than it began, and so may be about to leave."""
    return (pl.col(VALUE) <= pl.col("lowest")) | (pl.col("least") > 0).fill_null(False)


def _goes_on_falling() -> pl.Expr:
    """Return whether a loss fell by more than single points of it scatter, if little, and its last points are
    lower still.
    """
    fell_since = pl.col("now") - pl.col("risen") > GOES_ON * (pl.col("start") - pl.col("now"))
    is_clear = (pl.col("least") > 0) & (pl.col("fall") > pl.col("spread"))
    return (is_clear & fell_since).fill_null(False)


def _is_smooth() -> pl.Expr:
    return (pl.col("spread") < NOISY).fill_null(True)


def _is_of_epochs() -> pl.Expr:
    """Return whether rows are epochs or evaluations, and no batches."""
    of_epochs = is_of(Signal.EVAL_LOSS) | counts_epochs() | (pl.col("rows") <= pl.col(Signal.EPOCH) + 1)
    return of_epochs.fill_null(False)


def _is_sure(least_steps: int) -> pl.Expr:
    """Return whether a loss that stands still at interims is told the sooner: healthy ones do so for 60
    points or 250 steps at most.
    """
    long = (pl.col("trained") >= least_steps) | _is_of_epochs()
    is_sure = (pl.col("rows") >= MANY) & long & (_at_chance() | _is_smooth())
    return is_sure.fill_null(value=False)


def _at_chance() -> pl.Expr:
    return (pl.col("guesses") | settled_at_guessing(CLASSES)).fill_null(value=False)


def _stands_clearly() -> pl.Expr:
    """Return whether a loss that is no lower than at its start shows it clearly, as one at the cost of
    guessing must: many learners rest there for a while.
    """
    return ((_rests() | ~_creeps()) & _is_smooth()).fill_null(value=False)


def _is_trial() -> pl.Expr:
    """Return whether a training loss of few rows may be that of a trial of some batches.

    Beside an accuracy, rows without an epoch and a learning rate are epochs; see `never_fell`.
    """
    names_neither = pl.col(Signal.EPOCH).is_null() & pl.col(Signal.LEARNING_RATE).is_null()
    of_epochs = pl.col("poor").is_not_null() & names_neither
    is_short = (pl.col(INDEX) < FEW_ROWS) & pl.col(SIGNAL).is_in([Signal.LOSS, Signal.PREFERENCE_LOSS])
    return is_short & ~is_training(TRIAL, EPOCHS) & ~of_epochs


def _did_its_part(waits: int) -> pl.Expr:
    """Return whether so many waits are over, in a run with a plan."""
    return pl.col("plan").is_null() | (pl.col("trained") >= waits * pl.col("wait")) | was_stopped_late()


def _is_flat(doubtful_fall: float) -> pl.Expr:
    """Return whether the loss stands where it began, or came down to the cost of guessing and settled there.

    What stands is told when it is late, and sooner at the cost of guessing or without a gradient. Before it
    is late, no certain fall may speak against a loss at the cost of guessing. In many points of a run that is
    over, a slight fall is none. What stands still is not surely above its start.
    """
    guesses = pl.col("guesses")
    late = pl.col("late")
    least = pl.col("least")
    most = pl.col("most")
    bound = pl.col("bound")
    is_due = guesses | (pl.col("gradient") == 0) | late
    rests_at_guessing = guesses & (late | (least < doubtful_fall / 2))
    hardly_fell = (pl.col("rows") >= MANY) & pl.col("unmoved") & (most < doubtful_fall)
    stands_still = (pl.col("still") | (pl.col("over") & hardly_fell)) & (least > -bound)
    stays = is_due & (rests_at_guessing | stands_still) & ~pl.col("came_back") & (most < bound)
    return (pl.col("settled") | stays) & pl.col("start").is_not_null()


def _knows_its_task() -> pl.Expr:
    """Return whether a detector or segmenter finds what a model can that was trained before."""
    return pl.max_horizontal(pl.col(metric) >= FOUND for metric in FINDS).fill_null(False)


def _answers_well() -> pl.Expr:
    """Return whether an accuracy beside the loss is good: a small loss may be rounded to 0."""
    return pl.max_horizontal(pl.col(accuracy) >= GOOD_ACCURACY for accuracy in ACCURACIES).fill_null(False)


def _held_out_fell() -> pl.Expr:
    """Return whether the held-out loss fell beside a training loss: something was learnt that it hides."""
    now = recent_median(Signal.EVAL_LOSS, FIRST, at_least=1)
    fell = now < (1 - HELD_OUT_FALL) * pl.col(First(Signal.EVAL_LOSS).column)
    return is_of(Signal.LOSS) & fell.fill_null(False)


def _both_creep() -> pl.Expr:
    """Return whether the loss ends below its beginning, and that on held-out data agrees: what the noise of
    batches hides may be about to leave.
    """
    now = recent_median(Signal.EVAL_LOSS, FIRST, at_least=1)
    creeps = now < (1 - CREEPS) * pl.col(First(Signal.EVAL_LOSS).column)
    return is_of(Signal.LOSS) & (creeps & (pl.col("ends") < pl.col("begins"))).fill_null(False)


def _tells_classes_apart() -> pl.Expr:
    """Return whether the last losses and accuracies of the same data tell of a model that knows its input.

    One that was trained before does so from its first step on.
    """
    loss, *right = (recent_median(column, FEW, at_least=1) for column in (VALUE, *ACCURACIES))
    training, held_out = (beats_guessing(loss, accuracy) for accuracy in right)
    return pl.when(is_of(Signal.LOSS)).then(training).otherwise(held_out)


def _rose_to_guessing() -> pl.Expr:
    """Return whether the loss has only ever risen, and rests at the cost of guessing among a power of two.

    So it does where a student imitates a teacher over many outputs, and both answer alike to everything.
    """
    off = (pl.col("risen") / pl.col("classes").log() - 1).abs()
    rests = pl.col("scatter") < RESTS * pl.col("risen")
    rose = (pl.col("lowest") >= pl.col("first")) & (pl.col("risen") > (1 + ROSE) * pl.col("first"))
    return is_of(Signal.LOSS) & (pl.col("classes") >= MIN_OUTPUTS) & (off < RESTS) & rests & rose


def _has_waited(clear_bound: float) -> pl.Expr:
    """Return whether the wait is over; half of it will do where the noise allows at most so small a fall."""
    trained = pl.col("trained")
    wait = pl.col("wait")
    return (trained >= wait) | ((trained >= wait / 2) & (pl.col("most") < clear_bound))
