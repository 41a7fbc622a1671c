"""Completions of the same prompt all earn the same reward, so there is nothing left to learn from.

## What it catches
More than 80 % of the prompt groups without any spread in reward over the last 20, 50 or 100 points, and
so clearly that chance does not explain it: a point that covers a single group is 0 or 1, and a row of
ones is not rare. Critical if nine tenths of the last 20 points carry no signal at all. Where the share
is not logged, points at which the reward's standard deviation is zero count instead. At 70 % it is over.

## Why it matters
Group-relative advantages are differences within a group. Without spread they are zero, and so is the
gradient: the run burns compute and learns nothing.

## What to do
See where the reward stands. At its best: the task is solved, so stop, or take harder prompts. Never
moved: the task is too hard or the reward function broken, so run it by hand on a few completions and
mix in easier prompts. In between: raise the sampling temperature and the number of generations.

## When it is wrong
A solved task is a success that is reported as a warning because it still costs. What its best is can
only be told from the run's own past: a task that is trivial from the first step looks stuck, and one of
whose rewards only that for the format is full looks solved.

## Source
Catalogue A-frac-zero-std (healthy below 0.8, red at 1) and A-reward-std (zero at every point of 20). In
TRL `frac_reward_zero_std` counts groups, while `reward_std` has become the spread of the whole batch, so
the former is preferred. Wilson (1927) for the interval.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, SERIES, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import (
    ROUNDING,
    first_true,
    has_points,
    is_of,
    recent_mean,
    recent_median,
    seen_max,
    seen_min,
    wilson_lower,
)
from sentinel.detectors.strictness import Strictness
from sentinel.detectors.verdict import SkipReason, verdicts

START = 20  # first points, whose scatter tells how many groups a point covers
WINDOWS = (20, 50, 100)  # points looked at: few will do where each covers many groups
SURE = 3.7  # standard errors by which chance is ruled out, at every point of a long run
SAME_STD = 1e-6  # a standard deviation that counts as none
MAX_GROUPS = 100  # in a point; beyond it their number makes no difference
NEAR = 0.05  # of the run's reward range: how near to its end a reward must be
NEARLY_ALL = 0.9  # of the groups: a few may differ by the last digit of a reward

ALIKE = "{share:.0%} of the groups had no spread in reward over the last {points} points"


@detector(
    judges=(Signal.FRAC_REWARD_ZERO_STD, Signal.REWARD_STD),
    uses=(Signal.REWARD, Signal.FRAC_REWARD_ZERO_STD),
    history=History(recent=WINDOWS[-1], head=START),
    maturity=Maturity.STABLE,
    cause=Cause.REWARD,
    evidence={
        "share": Measure("groups without spread", Unit.SHARE),
        "points": Measure("judged over", Unit.POINTS),
        "silent": Measure("points without any signal", Unit.SHARE),
        "reward_level": Measure("reward now", Unit.NONE),
        "lowest": Measure("lowest reward so far", Unit.NONE),
        "highest": Measure("highest reward so far", Unit.NONE),
    },
    variants={
        "solved": Variant(
            ALIKE
            + ", with the reward at its best, {reward_level:.3g}: solved, or all that the policy can reach",
            ("A-frac-zero-std", "A-reward-std", "N-format-reward"),
        ),
        "alike": Variant(
            ALIKE,
            ("A-frac-zero-std", "A-reward-std", "A-reward-never", "A-entropy-collapse", "N-format-reward"),
            (CRITICAL, WARNING),
        ),
    },
    stricter=Strictness(full=("warning_share", "healthy_share")),
)
def reward_zero_std(
    points: pl.LazyFrame,
    *,
    warning_share: Annotated[float, "share of groups without spread above which little is learnt"] = 0.8,
    healthy_share: Annotated[
        float, "share of groups without spread that a healthy run may have; more must not be chance"
    ] = 0.7,
    silent_point: Annotated[float, "share of groups from which on a point carries no signal"] = 0.99,
) -> pl.LazyFrame:
    logs_groups = is_of(Signal.FRAC_REWARD_ZERO_STD)
    groups_alike = pl.col(VALUE).clip(0, 1)
    all_alike = (pl.col(VALUE) <= SAME_STD).cast(pl.Float64)
    little_learnt = {rows: _is_little_learnt(rows, warning_share, healthy_share) for rows in WINDOWS}
    measured = (
        points.with_columns(at_point=pl.when(logs_groups).then(groups_alike).otherwise(all_alike))
        .with_columns(groups=_groups(), is_silent=(pl.col("at_point") >= silent_point).cast(pl.Float64))
        .with_columns(
            share=pl.coalesce(
                pl.when(learnt).then(_share(window)) for window, learnt in little_learnt.items()
            ),
            points=pl.min_horizontal(first_true(little_learnt), pl.col(INDEX) + 1),
            silent=recent_mean("is_silent", START, at_least=START),
            reward_level=recent_median(Signal.REWARD, START, at_least=1),
            lowest=seen_min(Signal.REWARD, START, WINDOWS[-1]),
            highest=seen_max(Signal.REWARD, START, WINDOWS[-1]),
        )
    )
    tells_most = logs_groups | pl.col(Signal.FRAC_REWARD_ZERO_STD).is_null()
    has_share = pl.col("share").is_not_null()
    silent = pl.col("silent") >= NEARLY_ALL - ROUNDING
    reward = pl.col("reward_level")
    near = NEAR * (pl.col("highest") - pl.col("lowest"))
    solved = (reward >= pl.col("highest") - near) & (reward > pl.col("lowest") + near)
    return verdicts(
        measured,
        judged={SkipReason.OTHER_TAG: tells_most, SkipReason.FEW_POINTS: has_points(START)},
        lasts=_share(START) > healthy_share,  # of chance that is less sure, but no healthy share either
        found={"solved": has_share & solved, "alike": has_share},
        severities={WARNING: ~silent},
        above=pl.when(logs_groups).then(healthy_share),
        below=pl.when(~logs_groups).then(2 * SAME_STD),
    )


def _groups() -> pl.Expr:
    """Return the groups in a point, by the variance of a binomial share: one of few groups scatters more."""
    first = pl.col("at_point").filter(pl.col(INDEX) < START)
    groups = first.mean() * (1 - first.mean()) / first.var()
    return groups.over(SERIES).fill_nan(1).clip(1, MAX_GROUPS)


def _share(rows: int) -> pl.Expr:
    """Return the share of groups without spread in the last rows."""
    return recent_mean("at_point", rows, at_least=START)


def _is_little_learnt(rows: int, warning_share: float, healthy_share: float) -> pl.Expr:
    """Return whether so many of the last groups are without spread, surely more than a healthy run has."""
    share = _share(rows)
    groups = pl.col("groups") * pl.min_horizontal(rows, pl.col(INDEX) + 1)
    is_no_chance = wilson_lower(share, groups, SURE) > healthy_share + ROUNDING
    return is_no_chance & (share > warning_share + ROUNDING)
