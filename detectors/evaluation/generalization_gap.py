"""The loss on held-out data rises while the training loss does not.

## What it catches
An evaluation loss that has left its best level for good. Each of the last three evaluations stands above the
best by more than `least_rise`, and by many times the noise between neighbouring evaluations. Fewer times are
enough where the rise since the best is steady, and where the training loss fell by 30 % since. Where the
noise is large, the median of the last third of the evaluations stands above that of the best third by more
than `far_rise`, and the evaluations since the best show a clear upward trend (Mann-Kendall). Such a finding
is info unless the training loss lies below half of the held-out one. From 40 evaluations on, medians of ten
are compared, and those over a tenth of the run, 100 at most, must all exceed the noise. Of a run that is over
the last three evaluations need only stand 8 % above the best, above the noise, with a trend, while the
training loss fell by a tenth and the accuracy, if there is one, is 0.02 off its best; if they stand so far
above the first one as well, and it fell by 30 %, they need no trend and no noise to exceed, and only a metric
excuses them that became better: an accuracy on pairs below that of a coin does not. Of only three
evaluations, or four, each is worse than the one before and the last one 8 % above the first, while the
training loss fell by a tenth, and one metric became worse or none better.
A loss that goes below zero, as that of a density, has no ratios: it has lost a quarter of what it gained.
At a stage of a known plan the run is judged as if it were over. Without one, what is said of its last three
evaluations is told of a run that goes on where two interims in a row show it (at 8, 10, 12, 14, 16, 20,
30, 40, ... evaluations), but of no detector or segmenter whose own metric is logged.
A score card is read as well, while the run goes on and at its end: points for what a person sees in the plot.
Of error rates and of distances such as FID it alone speaks. A second one tells of ten or more evaluations
none of which was better than the first, while the model went on training. Of a perplexity where no loss is
logged its logarithm is judged.

## Why it matters
From its best evaluation on, the model only memorises its training data. Every further step makes it worse
on data that it has not seen, and costs as much as the steps before.

## What to do
Keep the checkpoint of the best evaluation and stop there. Then train for fewer epochs, with more or more
varied data, or with regularisation: dropout, weight decay, a smaller model or adapter. If the gap opens
within the first epoch, look for a difference between the two data sets first.

## When it is wrong
The loss also rises where a classifier becomes too sure of itself while its accuracy holds. The finding is
info for good where an accuracy, or a score that is a share (or a percentage) where none is logged, is above
a half and as good as ever: it has nine tenths of its gain, or four fifths while the run goes on; or it is
within `metric_slack` of its best, or, not surely better than at its start yet, of its value at the best
loss, and at the end about at its best. Of a poorer one that is within it the loss has to rise by
`metric_rise`, and by twice that until `metric_patience` evaluations have passed since the best; until then
the finding stays info, unless the loss has risen by half. The mean precision of a detector outranks its
losses: while it is at its best, or goes on and has half of what it gained or nothing yet, the finding is
info, and the card says nothing. So it is of a rise by less than a hundredth of what the loss had gained: a
loss that came down to nothing may rise several times over and is nothing still. So it is of a loss that rose
by less than a fifth while another score keeps half of what it gained, and while each of the last three
evaluations has an accuracy of 0.99, and of an error rate below a half that is about at its best. It is info,
too, where the loss rose by less than 8 % and by less than a fifth of all that it had gained, or while the
training loss fell by less than a tenth since the best: what trains no further memorises nothing. The rule
judges nothing while the training loss rises at least half as far, which is a divergence. Evaluation data
that grow harder in a run look the same.

## Source
Catalogue A-overfit, A-eval-loss. The thresholds are measured on simulated evaluation curves with noise of
up to 6 %, autocorrelation of up to 0.6, which makes the noise look small, and heavy tails. If the first of
fewer than twelve evaluations is the best, or of more in large noise, that may be chance: the finding stays
info unless the training loss fell by 30 %.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import INFO, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evaluation.bests import (
    ENDS,
    FELL,
    GAP,
    LONG,
    LONG_FROM,
    REACH,
    SHORT,
    ends_above,
    with_gap,
)
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.interims import AGAIN
from sentinel.detectors.reading.company import POOR
from sentinel.detectors.reading.standing import AT_BEST
from sentinel.detectors.schema import (
    EXCUSED,
    GROWN,
    INDEX,
    OUTRANKED,
    SERIES,
    SUMS_UP,
    VALUE,
    Course,
    Mean,
    Standing,
    grown,
    is_concluded,
)
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import is_of, recent_max, start_value, was_resumed
from sentinel.detectors.strictness import Strictness
from sentinel.detectors.verdict import SkipReason, verdicts

TREND = 2.4  # standard deviations of the trend since the best that tell a rise alone
RISES = 1.2  # the same beside a rise above the noise
STEADY = 4.0  # the same of a rise that noise hardly ever makes
MIN_NOISES = 2.5  # of the noise: a rise that a trend alone tells
ENOUGH = 8  # evaluations of a run that goes on that may tell what they would at its end
FIRST = 12  # evaluations among which the first may be the best by chance
LEARNED = 0.7  # share of the training loss at the best below which the model has learned since
MIN_LEFT = 0.4  # of the training loss at the best, down to which it lowers the noises that are needed
FAR_LEFT = 0.8  # the same for the rise that is needed
COIN = 0.55  # an accuracy on pairs that is no better than a coin's
MEMORISED = 0.5  # share of the held-out loss below which the training loss tells of memorised data
LITTLE = 0.2  # a rise that weighs less than a score which keeps its gain,
KEEPS = 0.5  # so much of it
HOLDS = 0.8  # of its gain: a metric that has so much of it left while the run goes on
DOUBTLESS = 0.5  # a rise that no metric excuses
SOLVED = 0.99  # of the answers: a model that gives so many right ones has lost nothing yet
NOTHING = 0.01  # of what the loss had gained: a rise that is nothing beside it
SAME = 1.1  # times a training loss that is as low as then
ONSET = 4  # the trouble begins where this part of the rise is passed
OUTRANKS = Signal.MEAN_AVERAGE_PRECISION, Signal.MEAN_INTERSECTION_OVER_UNION
METRICS = (  # of which more is better
    *(Signal.EVAL_ACCURACY, Signal.EVAL_SCORE, Signal.EVAL_QUALITY),
    *OUTRANKS,
)
ANSWERS = Signal.EVAL_ACCURACY, Signal.EVAL_SCORE
COSTS = (  # metrics of which less is better, and of which the card alone speaks
    *(Signal.EVAL_ERROR_RATE, Signal.EVAL_DISTANCE),
    Signal.FRECHET_INCEPTION_DISTANCE,
)
LOST = (
    "loss on held-out data stands at {level:.4g} after a best of {best:.4g}: {lost:.0%} of its gain is gone"
)
ROSE = "loss on held-out data rose from evaluation to evaluation, from {first:.4g} to {value:.4g}"
RISEN = "loss on held-out data stands at {level:.4g}, {rise:.1%} above its best of {best:.4g}"
OVERFIT = ("A-overfit", "A-eval-loss", "V1", "DP14", "DP1", "O6")


@detector(
    judges=(Signal.EVAL_LOSS, *COSTS),
    uses=(
        *(Mean(Signal.LOSS), Signal.EVAL_ACCURACY, Signal.EVAL_SCORE, Signal.PREFERENCE_MARGIN),
        *(*OUTRANKS, Signal.EVAL_ERROR_RATE),
        *map(Standing, (*OUTRANKS, *ANSWERS, Signal.EVAL_ERROR_RATE)),
    ),
    history=History(recent=REACH + 3 * LONG, head=1, coarse=True),
    at_end=True,
    at_interims=True,
    maturity=Maturity.STABLE,
    hold=1,  # a verdict rests on three evaluations already
    cause=Cause.EVALUATION,
    needs_consent=True,
    evidence=GAP | {"first": Measure("first evaluation", Unit.SAME)},
    variants={
        "metric-holds": Variant(RISEN + "; the metric holds at {metric:.4g}", OVERFIT, (WARNING, INFO)),
        "rises": Variant(RISEN, OVERFIT, (WARNING, INFO)),
        "loses": Variant(LOST, OVERFIT, (WARNING, INFO)),
        "rose": Variant(ROSE, OVERFIT, (WARNING,)),
    },
    stricter=Strictness(
        larger=(
            "least_rise",
            "least_lost",
            "least_noises",
            "least_noises_steady",
            "least_noises_long",
            "far_rise",
            "metric_rise",
        )
    ),
    reads=("memorises", "held-out-never-below-its-start", "second-opinion-held-out-loss-rose"),
)
def generalization_gap(
    points: pl.LazyFrame,
    *,
    least_rise: Annotated[float, "share by which the evaluation loss must stand above its best"] = 0.03,
    least_lost: Annotated[float, "the same of one below zero, as a share of what it had gained"] = 0.25,
    least_noises: Annotated[float, "the same in standard deviations of the noise between evaluations"] = 15.0,
    least_noises_steady: Annotated[float, "the same where the rise since the best is steady"] = 8.0,
    least_noises_long: Annotated[float, "the same where medians of ten are compared"] = 16.0,
    far_rise: Annotated[float, "rise for which an upward trend is enough, whatever the noise"] = 0.22,
    metric_rise: Annotated[float, "rise that counts where the accuracy holds"] = 0.05,
    metric_slack: Annotated[float, "largest fall of the accuracy that is ignored"] = 0.01,
    metric_patience: Annotated[int, "evaluations since the best during which a held accuracy excuses"] = 8,
) -> pl.LazyFrame:
    of_loss = is_of(Signal.EVAL_LOSS)
    rise = pl.col("worse")
    signed = pl.col("signed")
    level = pl.col("level")
    best = pl.col("best")
    ends = (_may_be_over() & ends_above()) | pl.col("unlearned")
    noises = (
        pl.when(~pl.col("short"))
        .then(least_noises_long)
        .when(pl.col("steady") > STEADY)
        .then(least_noises_steady)
        .otherwise(least_noises)
    )
    sure = _exceeds_noise(noises)
    least = pl.when(signed).then(least_lost).otherwise(least_rise)
    clear = sure & (rise > least) & (pl.col("trend") > RISES)
    far = pl.when(signed).then(least_lost).otherwise(far_rise)
    is_far = pl.col("stays") > far * _required(FAR_LEFT)
    trends = is_far & (pl.col("trend") > TREND) & _exceeds_noise(MIN_NOISES)
    risen = clear | trends | ends
    held = pl.col("metric") >= pl.col("metric_then") - metric_slack
    holds = held & ~ends  # an accuracy that ended off its best does not hold
    patient = (pl.col("since") < metric_patience) & (rise < DOUBTLESS)
    first_is_best = pl.col("since") == pl.col(INDEX)  # few evaluations or much noise make it so
    may_be_chance = first_is_best & ((pl.col(INDEX) < FIRST) | ~sure) & ~_learned()
    rose = of_loss & pl.col("rose")
    far_below = pl.when(signed).then(best).otherwise(MEMORISED * level)
    memorises = (pl.col("train") < far_below).fill_null(False)
    is_doubtful = (held & (patient | signed)) | may_be_chance | _rests() | ~(clear | memorises)
    needs_the_end = (rose | (ends & ~((clear | trends) & ~is_doubtful))).fill_null(False)
    stands = dict.fromkeys(("metric-holds", "rises", "loses"), AGAIN)
    return verdicts(
        with_gap(
            points.with_columns(
                rose=_rose_at_each_of_few(), unlearned=_ends_above_the_first(), solved=_is_solved()
            )
        )
        .fill_nan(None)
        .with_columns(
            pl.any_horizontal(
                *(_detects_better(), _scores_better(), _answers_as_well(metric_slack), _errs_as_little()),
                *(pl.col("solved"), _is_next_to_nothing()),
            ).alias(EXCUSED),
            _is_outranked().alias(OUTRANKED),
        ),
        found={
            "rose": rose,
            "loses": of_loss & risen & signed,
            "metric-holds": of_loss
            & risen
            & holds
            & (rise > metric_rise * pl.when(patient).then(2).otherwise(1)),
            "rises": of_loss & risen & ~holds.fill_null(False),
        },
        lasts=of_loss & ((rise > least / 2) | rose),
        severities={INFO: pl.col(EXCUSED) | (~(ends | rose) & (is_doubtful | _is_slight()))},
        judged={
            SkipReason.FEW_POINTS: (pl.col(INDEX) >= SHORT) | rose,
            SkipReason.EXPLAINED: ~of_loss | rose | _widens().fill_null(True),
        },
        above=(best + (level - best) / ONSET).fill_null(pl.col("first")),
    ).with_columns(pl.when(needs_the_end).then(grown(rose, stands)).otherwise(0.0).alias(GROWN))


def _is_next_to_nothing() -> pl.Expr:
    """Return whether the loss rose by next to nothing of its fall from the first evaluation to the best."""
    now = recent_max(pl.col(VALUE), SHORT, at_least=1)
    return (now - pl.col("best") < NOTHING * (pl.col("first") - pl.col("best"))).fill_null(False)


def _may_be_over() -> pl.Expr:
    """Return whether a run is over, or judged as if it were, at an interim of enough evaluations."""
    tells = (pl.col(INDEX) + 1 >= ENOUGH) & ~_is_outranked() & ~_is_solved()
    return is_concluded() | (pl.col(SUMS_UP) & tells)


def _rose_at_each_of_few() -> pl.Expr:
    """Return whether a run is over whose loss rose at each of three evaluations, or four, while a metric got
    worse or none better.
    """
    value = pl.col(VALUE)
    first = start_value(VALUE)
    is_first = pl.col(INDEX) == 0
    falls = ((value <= value.shift(1).over(SERIES)) & ~is_first).cum_sum().over(SERIES) > 0
    rises = ~falls & (value > (1 + ENDS["rise"]) * first) & (first > 0)
    is_few = pl.col(INDEX).is_in([SHORT - 1, SHORT])
    return is_concluded() & is_few & rises & _memorises(FELL) & ~was_resumed()


def _ends_above_the_first() -> pl.Expr:
    """Return whether a run is over the last of whose few evaluations all stand above the first one, while the
    training loss fell far and a metric got worse or none better.
    """
    value = pl.col(VALUE)
    first = start_value(VALUE)
    stands = value.rolling_min(SHORT).over(SERIES) > (1 + ENDS["rise"]) * first
    is_few = pl.col(INDEX).is_between(SHORT, LONG_FROM)
    is_above = _may_be_over() & is_few & stands & (first > 0) & _memorises(LEARNED) & ~was_resumed()
    return is_above.fill_null(False)


def _memorises(left: float) -> pl.Expr:
    """Return whether a run that is over has at most this share of its training loss left, while a metric got
    worse or none better. An accuracy on pairs that is still a coin's is not better.
    """
    of_training = [_course(signal) for signal in (Signal.LOSS, Signal.PREFERENCE_LOSS)]
    begins, ends = (pl.coalesce(parts) for parts in zip(*of_training, strict=True))
    gains = [last - begin for begin, last in map(_course, METRICS)]
    gains += [begin - last for begin, last in map(_course, COSTS)]
    is_of_pairs = pl.col(Signal.PREFERENCE_MARGIN).is_not_null()
    tosses = is_of_pairs & (pl.col(Course(Signal.EVAL_ACCURACY).column).list.max() < COIN).fill_null(False)
    is_better = pl.any_horizontal(gain > 0 for gain in gains).fill_null(False) & ~tosses
    is_worse = pl.any_horizontal(gain < 0 for gain in gains).fill_null(False)
    return (ends < left * begins).fill_null(False) & (is_worse | ~is_better)


def _course(signal: Signal) -> tuple[pl.Expr, pl.Expr]:
    """Return where a signal of a run that is over began and ended."""
    course = pl.col(Course(signal).column).list
    return course.first(), course.last()


def _is_outranked() -> pl.Expr:
    """Return whether the loss is that of a detector or segmenter, which its metric outranks."""
    return pl.any_horizontal(pl.col(metric).is_not_null() for metric in OUTRANKS)


def _detects_better() -> pl.Expr:
    """Return whether a detector or segmenter is at its best by the metric that outranks its losses. While it
    goes on, half of what that gained is enough, as is that it has not surely gained anything yet.
    """
    standing = pl.coalesce(Standing(metric).column for metric in OUTRANKS).fill_null(0.0)
    goes_on_well = ((standing >= KEEPS) | (standing == 0)) & ~is_concluded()
    return _is_outranked() & ((standing >= AT_BEST) | goes_on_well)


def _scores_better() -> pl.Expr:
    """Return whether the loss rose little while a score keeps what it gained."""
    standing = pl.col(Standing(Signal.EVAL_SCORE).column)
    return ((standing >= KEEPS) & (pl.col("worse") < LITTLE)).fill_null(False)


def _answers_as_well(slack: float) -> pl.Expr:
    """Return whether about as many answers are right as ever; of an accuracy that has not surely gained
    anything yet, as at the best loss.
    """
    standing = pl.max_horizontal(Standing(signal).column for signal in ANSWERS)
    keeps = standing >= pl.when(is_concluded()).then(AT_BEST).otherwise(HOLDS)
    now = pl.col("metric")
    is_level = (standing.fill_null(0.0) == 0) & (now >= pl.col("metric_then") - slack)
    stays = (is_level | (now >= pl.col("metric_best") - slack)) & ~_ends_lower(slack)
    return ((now >= POOR) & (keeps | stays)).fill_null(False)


def _errs_as_little() -> pl.Expr:
    """Return whether the errors are fewer than the right answers, and about as few as ever."""
    standing = pl.col(Standing(Signal.EVAL_ERROR_RATE).column)
    keeps = standing >= pl.when(is_concluded()).then(AT_BEST).otherwise(HOLDS)
    return ((pl.col(Signal.EVAL_ERROR_RATE) <= 1 - POOR) & keeps).fill_null(False)


def _is_slight() -> pl.Expr:
    """Return whether the loss rose by little, and by little of what it had gained since the first one."""
    gained = pl.col("first") - pl.col("best")
    slight = (pl.col("level") - pl.col("best")) < LITTLE * gained
    return (slight & (pl.col("worse") < ENDS["rise"]) & ~pl.col("signed")).fill_null(False)


def _ends_lower(slack: float) -> pl.Expr:
    """Return whether a run is over whose accuracy has lost something, and a fifth of its gain."""
    course = pl.col(Course(Signal.EVAL_ACCURACY).column).list
    lost = course.max() - course.tail(SHORT).list.mean()
    most = pl.max_horizontal(slack, (1 - HOLDS) * (course.max() - course.first()))
    return (is_concluded() & (lost > most)).fill_null(False)


def _is_solved() -> pl.Expr:
    """Return whether each of the last evaluations answers nearly all rightly, as a share or in percent."""
    least = -recent_max(-pl.col(Signal.EVAL_ACCURACY), SHORT)
    return (least.is_between(SOLVED, 1) | least.is_between(100 * SOLVED, 100)).fill_null(False)


def _learned() -> pl.Expr:
    """Return whether the training loss has fallen since the best."""
    return (pl.col("kept") < LEARNED).fill_null(False)


def _rests() -> pl.Expr:
    """Return whether the loss rose a little while the training loss has hardly moved since the best: what
    trains no further does not memorise.
    """
    rests = (pl.col("kept") > FELL) & (pl.col("worse") < ENDS["rise"]) & ~pl.col("signed")
    return rests.fill_null(False)


def _required(least: float) -> pl.Expr:
    """Share that is asked of a bound: what is left of the training loss, once the model has learned."""
    return pl.when(_learned()).then("kept").otherwise(1.0).clip(least)


def _exceeds_noise(noises: pl.Expr | float) -> pl.Expr:
    """Return whether the rise exceeds so many standard deviations of the noise."""
    return pl.col("noises") > noises * _required(MIN_LEFT)


def _widens() -> pl.Expr:
    """Return whether the training loss is as low as at the best, or has risen less than half as far."""
    train = pl.col("train")
    train_then = pl.col("train_then")
    return (train <= SAME * train_then) | (train - train_then < (pl.col("level") - pl.col("best")) / 2)
