"""The reward does not move: nothing is learnt, or there is nothing that could be learnt from.

## What it catches
A reward that has rested on exactly one value for 20 points (60 % of that if the value has decimals), a third
of the run at least, and not at its best. (In a long log it is 255 points and a tenth of the run, so that the
last evaluation, which a log may repeat until the next one, does not count.) If it changed a few times in the
whole log, it counts even at its best: episodes have ceased to end, so the mean over them is old. And a mean
reward that after 1000 points has gained nothing over its first quarter: the upper end of the gain's 3-sigma
interval is below a tenth of its level. This is info until half of the planned steps are done or the run is
over. The same of a critic whose explained variance stays within 0.01 of 0 for 200 points, while the reward
gains less than a twentieth of its level. A share of successes that began above 0.85 need gain nothing.
A score card is read as well, while the run goes on and at its end: points for what a person sees in the plot.
It waits until fewer than a fifth of the actions have been random for a fifth of the training (a third, once
the run is over) and a third of the plan is done.

## Why it matters
A reward that is the same whatever the policy does teaches nothing; one that never rose seldom begins to.

## What to do
Run the reward function by hand on a few good and bad samples. See whether episodes end, the observation
changes, and actions reach the environment as it expects them. For language models check that the model ever
writes the format that the reward looks for. A sparse reward that is never met needs an easier start.

## When it is wrong
A reward that rests at its best is a solved task. Where the spread of rewards is logged, a mean that rests may
be made by a ranking, and `reward-zero-std` tells of one that is stuck. A policy of control may explore for
long before it meets its first reward: for 100 points, or episodes where their length is known, for a third of
the plan, and while a fifth of the actions are random or were lately, a rest is info. So is one of an
evaluation while the rewards of training move, until the run is over, and one of training while evaluations
move. So is, but not of a language model, a rest beside another reward of the same kind that moves: one of an
episode's last step. A sparse reward must rest for five times its usual gap. The last rule leaves alone a
reward near zero, as in self-play, single episodes, and what a resume goes on from. Episodes of an evaluation
that are counted one by one, beside nothing of a training, are those of one policy, which need not get better.

## Source
Catalogue A-reward-never (0 at more than 20 points), A-rewards-mean. Blocks hold the log's autocorrelation.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import INFO, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.blocks import GAIN, ROWS, gain, with_blocks
from sentinel.detectors.evidence import Measure, Unit, logged
from sentinel.detectors.reinforcement.rests import (
    LEAST,
    OF_TRAINING,
    USED,
    acted_at_random_lately,
    is_of_control,
    may_yet_learn,
    tests_one_policy,
    with_rests,
)
from sentinel.detectors.schema import ENDED, EXCUSED, INDEX, SERIES, STEP, VALUE, Every
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import PRECISION, is_of, of_buckets, recent_max, start_median, was_resumed
from sentinel.detectors.verdict import SkipReason, verdicts

SOLVED = "the reward rests at its best, {value:.6g}, for {still} points: solved, or as good as it gets"
FEW_CHANGES = 3  # of a reward that hardly ever moves
MOST_LEVELS = 2 * FEW_CHANGES + 1  # of the blocks of such a reward: a change may lie within a block
SCATTER = 100  # points that tell how a reward scatters
SURELY = 3  # standard errors
FINE = 0.6  # of the rest, where rewards are no whole numbers
AT_BEST = 0.02  # of the range
OF_MEANS = 0.25  # of the size, scatter of a mean
HALF = 0.5  # of the plan
TENTH = 0.1  # of the coarse history
MIN_BLIND = 200  # points in which a critic ought to have learned something
NOTHING_EXPLAINED = 0.01  # of the variance of the returns
MOVES = {"trains": Signal.REWARD, "evaluates": Signal.EVAL_REWARD}  # whether rewards change
SETTLED = 3  # points after which nothing of what moved before a rest is seen
SUCCESS = 0.85  # of a task that was solved before it was trained


@detector(
    judges=(Signal.REWARD, Signal.EVAL_REWARD),
    uses=(
        *(*USED, *OF_TRAINING, Signal.EVAL_REWARD, Signal.REWARD_STD, Signal.FRAC_REWARD_ZERO_STD),
        *map(Every, MOVES.values()),
        Signal.EXPLAINED_VARIANCE,
    ),
    history=History(recent=ROWS, head=LEAST, coarse=True),
    at_end=True,
    maturity=Maturity.STABLE,
    cause=Cause.REWARD,
    evidence={
        "still": Measure("unchanged for", Unit.POINTS),
        "changes": Measure("changes before", Unit.COUNT),
        "points": Measure("judged over", Unit.POINTS),
        "entropy_left": Measure("entropy of the policy, of that at the start", Unit.SHARE),
        "blind": Measure("without explained variance", Unit.POINTS),
        **GAIN,
        **logged(Signal.EPISODE_LENGTH, Signal.EXPLAINED_VARIANCE),
    },
    variants={
        "constant": Variant(
            "the reward has been exactly {value:.6g} for {still} points",
            *(("A-reward-never", "A-rewards-mean", "L8"), (WARNING, INFO)),
        ),
        "solved": Variant(SOLVED, ("A-reward-never",), (INFO,)),
        "blind-critic": Variant(
            "the critic has explained nothing of the returns for {blind} points, and the reward has gained "
            "{gain:.3g} over {first:.4g}",
            ("N-critic-learns-nothing", "R3", "A-rewards-mean"),
        ),
        "no-gain": Variant(
            "the reward has gained {gain:.3g} over {first:.4g} in {points} points, no more than its noise",
            ("A-rewards-mean", "A-reward-never", "R3", "N-format-reward", "N-critic-learns-nothing"),
            (WARNING, INFO),
        ),
    },
    reads=("reward-never-left-its-start", "paid-for-form", "second-opinion-reward-low"),
)
def reward_stagnation(
    points: pl.LazyFrame,
    *,
    rest: Annotated[int, "points on one value that are too many"] = 20,
    rest_share: Annotated[float, "share of the run on one value that is too much"] = 0.33,
    patience: Annotated[int, "points without a gain that are too many"] = 1000,
    least_gain: Annotated[float, "share of the level that a run ought to gain"] = 0.1,
) -> pl.LazyFrame:
    rows = pl.col(INDEX) + 1
    rests = _rests(rest, rest_share)
    is_early = may_yet_learn() | acted_at_random_lately(ROWS)
    explores = pl.col("explores") & pl.col(Signal.TOTAL_STEPS).is_null()  # the plan tells it better
    rested = with_rests(points, most=ROWS).with_columns(twin_moves=_twin_moves())
    context = rested.with_columns(
        scatter=pl.col(VALUE).rolling_std(SCATTER).over(SERIES),
        points=rows,
        entropy_left=pl.col(Signal.POLICY_ENTROPY) / start_median(Signal.POLICY_ENTROPY, LEAST),
        blind=_blind_points(),
        begun=~was_resumed().fill_null(False),
        **{
            name: (pl.col(signal).diff() != 0).over(SERIES).cast(pl.Float64) for name, signal in MOVES.items()
        },
        **{EXCUSED: explores | pl.col("twin_moves") | is_early | tests_one_policy()},
    )
    measured = with_blocks(context, tuple(GAIN), gain, every=1, at_least=LEAST)
    at_best = rests & _ranges(PRECISION) & _is_at_best()
    levels = of_buckets(pl.col("coarse_mean").list.n_unique().cast(pl.Float64))
    changed_often = (pl.col("changes") > FEW_CHANGES) | (levels > MOST_LEVELS).fill_null(value=False)
    met_by_chance = pl.col("by_chance") & _ranges(least_gain)
    late = pl.col(ENDED) | (pl.col(STEP) >= HALF * pl.col(Signal.TOTAL_STEPS)).fill_null(False)
    return verdicts(
        measured,
        judged={SkipReason.FEW_POINTS: rows >= LEAST, SkipReason.EXPLAINED: ~tests_one_policy()},
        found={
            "solved": at_best & changed_often,
            "constant": rests & (at_best | ~met_by_chance),
            "blind-critic": (pl.col("blind") >= MIN_BLIND)
            & (pl.col("gain") < least_gain / 2 * pl.col("first").abs())
            & pl.col("begun")
            & ~_began_solved(),
            "no-gain": (rows >= patience) & _gained_nothing(least_gain) & pl.col("begun") & ~_began_solved(),
        },
        severities={INFO: pl.when(rests).then(_may_be_chance()).otherwise(~late)},
        onset=pl.when(rests).then("rests_from"),
    )


def _rests(points: int, share: float) -> pl.Expr:
    """Return whether a reward has been on one value for so many points and such a share of the run.

    Where the spread of rewards is logged, `reward-zero-std` tells of it.
    """
    value = pl.col(VALUE)
    still = pl.col("still")
    enough = pl.when(value == value.round()).then(points).otherwise(FINE * points)
    long = (still >= enough) & (still >= pl.min_horizontal(share * (pl.col(INDEX) + 1), ROWS - 1))
    is_told = pl.coalesce(Signal.REWARD_STD, Signal.FRAC_REWARD_ZERO_STD).is_not_null()
    return long & _rested_long_before() & ~is_told


def _rested_long_before() -> pl.Expr:
    """Return whether the last tenth of the coarse history has the present value, where there is one.

    A log of many episodes may repeat its last evaluation for hundreds of points until the next one.
    """
    means = pl.col("coarse_mean").list
    last = means.tail((means.len() * TENTH).ceil().cast(pl.Int64)).list
    value = pl.col(VALUE)
    off = pl.max_horizontal((of_buckets(end) - value).abs() for end in (last.min(), last.max()))
    is_same = off <= PRECISION * value.abs()
    return is_same.fill_null(value=True)


def _may_be_chance() -> pl.Expr:
    """Return whether a rest says little: a policy explores, or rewards of the other kind move.

    Before its first evaluation a log has no value of one, and some write 0. Once the run is over, evaluations
    count, because a policy that explores may never succeed in training.
    """
    trains, evaluates = (recent_max(pl.col(name), ROWS - 1, at_least=1) > 0 for name in MOVES)
    others_move = pl.when(is_of(Signal.EVAL_REWARD)).then(trains & ~pl.col(ENDED)).otherwise(evaluates)
    return pl.col(EXCUSED) | others_move.fill_null(value=False)


def _twin_moves() -> pl.Expr:
    """Return whether another number of the same kind moves while this one rests: it is the reward, and this
    one is that of a last step, or no longer measured. Of a language model the other one may hold the
    penalty for its KL.
    """
    trains, evaluates = (pl.col(Every(signal).column).list.sum() for signal in MOVES.values())
    twins = pl.when(is_of(Signal.EVAL_REWARD)).then(evaluates).otherwise(trains)
    moves = twins.diff().over(SERIES).abs() > PRECISION * twins.abs()
    alone = (moves & (pl.col("still") > SETTLED)).cast(pl.Float64)
    return is_of_control() & (recent_max(alone, ROWS - 1, at_least=1) > 0).fill_null(False)


def _blind_points() -> pl.Expr:
    """Return for how many points the critic has explained nothing of the returns; at most `ROWS`."""
    explains = pl.col(Signal.EXPLAINED_VARIANCE).abs() > NOTHING_EXPLAINED
    unknown = pl.col(Signal.EXPLAINED_VARIANCE).is_null()
    last = recent_max(pl.when(explains | unknown).then(pl.col(INDEX)), ROWS, at_least=1)
    return (pl.col(INDEX) - last).fill_null(pl.min_horizontal(pl.col(INDEX), ROWS - 1) + 1)


def _ranges(share: float) -> pl.Expr:
    """Return whether the reward has ever moved by such a share of its size."""
    lowest = pl.col("lowest")
    highest = pl.col("highest")
    return highest - lowest > share * pl.max_horizontal(highest.abs(), lowest.abs())


def _is_at_best() -> pl.Expr:
    lowest = pl.col("lowest")
    highest = pl.col("highest")
    return pl.col(VALUE) >= highest - AT_BEST * (highest - lowest)


def _began_solved() -> pl.Expr:
    """Return whether a reward is a share of successes, and was high from the start."""
    is_share = (pl.col("lowest") >= 0) & (pl.col("highest") <= 1)
    return is_share & (pl.col("first") > SUCCESS)


def _gained_nothing(least_gain: float) -> pl.Expr:
    """Return whether a mean over episodes gained no more than its noise, and surely less than such a share.

    A single episode scatters more than a mean.
    """
    gained = pl.col("gain")
    error = SURELY * pl.col("error")
    size = pl.col("first").abs()
    is_flat = (gained.abs() < error) & (gained + error < least_gain * size) & (pl.col("rise") < 1)
    return is_flat & (pl.col("scatter") < OF_MEANS * size)
