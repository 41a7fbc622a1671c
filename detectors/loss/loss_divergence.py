"""The training loss has left its best level and stays far above it.

## What it catches
A loss, also one of preferences, whose recent points lie above its best level by more than 30 %, four in five
of them, and by more than 15 standard errors of the level. Recent are the last 20 points. With fewer than 120
points they are the last 10, with fewer than 30 the last 5, and the rise is more than 50 % and more than 12
standard errors. From 1000 points on, where so few are a moment, it has stayed high for 15 % of them, for 5 %
once the run is over, or is at ten times its best. While the loss comes back, by a tenth of the rise within
these points, it stays nowhere and the rule waits. Of a run that is over with six to ten points, the last
third lies as far above the first third. And a critic whose loss is 1000 times that of its start, and far
beyond the square of any reward, without a gain; or leaps to 1000 times the largest of its last 50 points at
once, while the reward does not rise.
At a stage of a known plan the run is judged as if it were over, and where the run so far is judged as a whole
(at 12, 14, 16, 20, 30, 40, 60, ... points) one row is enough.
A score card is read as well, while the run goes on and at its end: points for what a person sees in the plot.

## Why it matters
A run that diverges rarely comes back by itself. What it learned is being lost step by step.

## What to do
Go back to a checkpoint before the onset. Lower the learning rate two- to fivefold, or lengthen the warm-up.
Clip the gradient norm at 1. Look at what changed at the onset: the learning rate after a resume, the data,
the sequence length.

## When it is wrong
A harder stage of a curriculum, another data set, longer sequences, a changed objective or a high learning
rate after a warm restart lift the loss without a fault; of 32 trainings with cosine restarts up to the edge
two rang. Where the accuracy comes back or keeps half of its gain, and the gradient norm is at most twice that
of before, the task became harder and nothing is said; nor while the loss of held-out data reaches new bests.
Beside rewards the rule is silent, since there the loss follows the policy, and below a hundredth of the
start, where nothing is left to learn. A critic's loss grows with the square of the returns, so it may grow
where the reward does. A moving average of the loss that starts at 0 climbs to its level: of it, only levels
to which it fell count as the best.

## Source
Catalogue L6, O19, O9, GE. Thresholds are measured (`measurements/figures.md`). The standard error allows for
neighbours that are alike: it counts the noise of points that are two apart, and from 120 points on the
scatter of the level over 20 points. Levels of five points and the noise of neighbours alone rang ten times as
often in runs of 60 to 400 points with noise of 20 % and an autocorrelation of 0.6. Thirds of six to ten
points lie that far apart in one of 200 such runs at most.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, WARNING, Cause, Maturity, Variant, detector
from sentinel.detectors.loss.causes_of_rise import MEASURES, clues
from sentinel.detectors.loss.critics import CRITIC, is_lost, leapt, with_critic
from sentinel.detectors.loss.harder_task import COMPANIONS, generalises_on, with_harder_task
from sentinel.detectors.loss.levels import LEVELS, MANY, RISE, WINDOWS, with_rise
from sentinel.detectors.schema import ENDED, EXCUSED, INDEX
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, is_of, of_buckets, recent_noise
from sentinel.detectors.strictness import Strictness
from sentinel.detectors.supervised import ELSE, is_learned, is_supervised
from sentinel.detectors.verdict import SkipReason, verdicts
from sentinel.detectors.whole_run import with_ends_apart

EARLIEST = 10  # points needed before a finding
AT_END = 6  # points needed once the run is over
FEW = 3  # differences at which their noise counts twice
APART = 4  # by how many times it the thirds differ
LONG = 1000  # points from which on a level of 20 is a moment
LASTS = 0.15  # share of so many points for which a loss has to stay where it rose,
AT_LEAST = 0.05  # or once the run is over, unless
LOST = 9.0  # it rose so far: to ten times its best


@detector(
    judges=(Signal.LOSS, Signal.VALUE_LOSS, Signal.PREFERENCE_LOSS),
    uses=(*ELSE, *COMPANIONS, Signal.EVAL_LOSS, Signal.LEARNING_RATE),
    history=LEVELS,
    at_end=True,
    at_interims=True,
    at_stages=True,
    maturity=Maturity.STABLE,
    hold=5,
    cause=Cause.DIVERGENCE,
    # After a loss has diverged, neither its shape nor its gradients say how it learns.
    inhibits=(Cause.LOSS_SHAPE, Cause.EVALUATION, Cause.GRADIENT_SIZE),
    evidence=RISE | MEASURES | CRITIC,
    variants={
        "diverged": Variant(
            "loss rose from {best:.4g} to {level:.4g} and stays there",
            ("O19", "L6", "O9", "O4", "GE", "G5", "A-learning-rate", "N-changed-data"),
            (WARNING, CRITICAL),
        ),
        "critic": Variant(
            "the critic's loss grew from {start:.4g} to {level:.4g} while the reward gained nothing",
            ("R3", "N-critic-overestimates", "N-critic-learns-nothing"),
        ),
        "leapt": Variant(
            "the critic's loss leapt to {value:.4g}; the largest of the 50 points before was {before:.4g}",
            ("R3", "N-critic-overestimates", "A-nan-explode"),
        ),
    },
    stricter=Strictness(larger=("least_rise", "early_rise", "least_errors", "early_errors")),
    reads=("left-its-level", "second-opinion-loss-rose"),
)
def loss_divergence(
    points: pl.LazyFrame,
    *,
    least_rise: Annotated[float, "share by which four in five recent points exceed the best level"] = 0.3,
    early_rise: Annotated[float, "the same while there are fewer than 120 points"] = 0.5,
    critical_rise: Annotated[float, "share at or above which the run is lost"] = 1.0,
    least_errors: Annotated[float, "rise of the level in its standard errors"] = 15.0,
    early_errors: Annotated[float, "the same while there are fewer than 120 points"] = 12.0,
) -> pl.LazyFrame:
    rise = pl.col("rise")
    early = pl.col(INDEX) < WINDOWS[MANY]
    of_critic = is_of(Signal.VALUE_LOSS)
    few = pl.col(ENDED) & has_points(AT_END) & ~has_points(EARLIEST + 1) & ~of_critic
    ends = with_ends_apart(with_rise(with_critic(with_harder_task(points))), most=FEW)
    thirds = {"best": pl.col("high"), "level": pl.col("low"), "rise": pl.col("low") / pl.col("high") - 1}
    measured = ends.with_columns(
        **clues(),
        scatter=recent_noise("log", EARLIEST, at_least=FEW) * (1 + FEW / (pl.col(INDEX) - 1)),
        **{name: pl.when(few).then(of_thirds).otherwise(name) for name, of_thirds in thirds.items()},
    )
    far = ~is_learned(pl.col("level")) & (rise > pl.when(early).then(early_rise).otherwise(least_rise))
    apart = rise.log1p() > APART * pl.col("scatter")
    sure = pl.col("errors") > pl.when(early).then(early_errors).otherwise(least_errors)
    middle = (pl.col("best") * pl.col("level")).sqrt()
    stayed = (pl.col(INDEX) < LONG) | (rise > LOST) | (_lowest_lately() > (1 + least_rise) * pl.col("best"))
    return verdicts(
        measured,
        judged={SkipReason.NOT_SUPERVISED: of_critic | is_of(Signal.PREFERENCE_LOSS) | is_supervised()}
        | {SkipReason.FEW_POINTS: few | has_points(EARLIEST + 1), SkipReason.RANGE: few | rise.is_not_null()},
        found={
            "diverged": ~of_critic
            & far
            & ~(pl.col(EXCUSED) | generalises_on())
            & pl.when(few).then(apart).otherwise(sure & stayed & ~pl.col("returns")),
            "critic": of_critic & is_lost(),
            "leapt": of_critic & leapt(),
        },
        lasts=rise > least_rise / 2,
        severities={CRITICAL: rise > critical_rise},
        above=pl.max_horizontal((1 + least_rise) * pl.col("best"), middle),
    )


def _lowest_lately() -> pl.Expr:
    """Return the lowest of the coarse levels of the last points, as many as a loss has to stay high."""
    coarse = pl.col("coarse_mean")
    share = pl.when(ENDED).then(AT_LEAST).otherwise(LASTS)
    rows = (share * coarse.list.len()).ceil().cast(pl.Int64)
    return of_buckets(coarse.list.tail(rows).list.min())
