"""The policy stops exploring although its reward has not improved.

## What it catches
A median entropy over the last ten points that has fallen below a fifth (warning) or a tenth (critical) of the
run's own first ten points, if these were above 0.05 nats. For language models also an absolute floor per
token, 0.05 while the spread of rewards has halved (warning) and 0.01 (critical), if the entropy has more than
halved. A run whose reward has clearly improved or stands at its best is told, at most, that its entropy is
spent, unless nearly all of its completions run into the length cap: then the reward pays for repetition.

## Why it matters
A policy without entropy samples one answer. Groups then earn one reward, gradients vanish, and what it
has not found by now it never will.

## What to do
Raise the sampling temperature (0.8 to 1) or the entropy bonus, lower the learning rate, raise the KL
coefficient, sample more completions per prompt. In language models check for one short answer to
everything; in control, for an episode that never ends.

## When it is wrong
Where one action is right from the first step on, entropy falls and the reward cannot rise. The
differential entropy of continuous actions has no zero; it is judged only while it is positive, and a
logged reward is needed in any case: in supervised fine-tuning falling entropy is the aim. A policy of
control that was resumed has rewards and entropy behind it that its log does not show, so it is not judged.

## Source
Catalogue A-entropy (healthy 0.05 to 0.5 nats per token, collapsed below 0.01) and A-entropy-collapse;
base models start above 1, hence the run's own start is the measure. That reward is bought with entropy
until none is left is shown by Cui et al. 2025, arXiv:2505.22617.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, INFO, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.reinforcement.outcome import STANDINGS, is_at_best
from sentinel.detectors.schema import VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import (
    has_points,
    is_of,
    now_and_then,
    recent_median,
    recent_quantile,
    seen_max,
    start_median,
    start_quantile,
    was_resumed,
)
from sentinel.detectors.strictness import Strictness
from sentinel.detectors.verdict import SkipReason, verdicts

NOW = 10  # points of the present level, and of the start
REWARDS = 20  # points of the reward's present level and of its start, which scatter more
BACK = 50  # points ago from which on rewards count as the start where none was logged earlier
MIN_START = 0.05  # nats; a run that began below this has nothing to lose in proportion
ZERO = -0.01  # nats; below it the entropy is a differential one
HIGH = 0.75  # quantile of the first rewards: noise of one point does not reach it
FELL = "the entropy fell from {start:.3g} to {level:.3g} while "
SPENT = "the reward improved from {reward_start:.3g} to {reward_level:.3g}: little exploration is left"


@detector(
    judges=(Signal.ENTROPY, Signal.ENTROPY_PER_SEQUENCE, Signal.POLICY_ENTROPY),
    uses=(Signal.REWARD, Signal.REWARD_STD, Signal.CLIPPED_COMPLETION_RATIO, *STANDINGS),
    history=History(recent=BACK + REWARDS, head=REWARDS),
    maturity=Maturity.STABLE,
    cause=Cause.POLICY,
    inhibits=(Cause.POLICY, Cause.REWARD),  # a policy that always answers the same is rewarded the same
    evidence={
        "level": Measure("median of the last 10 points", Unit.SAME),
        "start": Measure("at the start", Unit.SAME),
        "capped": Measure("completions cut off at the length cap", Unit.SHARE),
        "reward_level": Measure("reward now", Unit.NONE),
        "reward_start": Measure("reward at the start", Unit.NONE),
        "reward_high": Measure("reward at the start, upper end of its noise", Unit.NONE),
        "reward_std_level": Measure("spread of the reward now", Unit.NONE),
        "reward_std_start": Measure("spread of the reward at the start", Unit.NONE),
    },
    variants={
        "collapsed": Variant(
            FELL + "the reward did not improve ({reward_start:.3g} to {reward_level:.3g})",
            ("A-entropy-collapse", "A-entropy", "R1"),
            (WARNING, CRITICAL),
        ),
        "hacked": Variant(
            FELL + "{capped:.0%} of the completions run into the length cap: the reward, "
            "{reward_level:.3g}, may pay for repetition",
            ("A-entropy-collapse", "R1", "A-clipped-ratio"),
            (WARNING, CRITICAL),
        ),
        "spent": Variant(FELL + SPENT, ("A-entropy", "A-entropy-collapse"), (INFO,)),
    },
    stricter=Strictness(
        smaller=("warning_share", "critical_share", "warning_per_token", "critical_per_token")
    ),
)
def entropy_collapse(
    points: pl.LazyFrame,
    *,
    warning_share: Annotated[float, "share of the initial entropy that must be left"] = 0.2,
    critical_share: Annotated[
        float, "share of the initial entropy below which the policy has collapsed"
    ] = 0.1,
    warning_per_token: Annotated[float, "nats per token that are too few once rewards are alike"] = 0.05,
    critical_per_token: Annotated[float, "nats per token below which a policy has collapsed"] = 0.01,
    most_capped: Annotated[float, "share of completions at the cap that no better reward excuses"] = 0.8,
) -> pl.LazyFrame:
    measured = points.with_columns(
        **now_and_then(VALUE, NOW, start=NOW),
        **_rewards(),
        **now_and_then(Signal.REWARD_STD, NOW, start=NOW, at_least=1, of="reward_std_"),
        capped=recent_median(Signal.CLIPPED_COMPLETION_RATIO, NOW, at_least=1),
    )
    gone = _is_below_share(critical_share) | _is_below_floor(critical_per_token)
    rewards_alike = (2 * pl.col("reward_std_level") < pl.col("reward_std_start")).fill_null(False)
    low = _is_below_share(warning_share) | (_is_below_floor(warning_per_token) & rewards_alike)
    improved = _has_improved() | is_at_best()
    capped = (pl.col("capped") > most_capped).fill_null(False)
    resumed = is_of(Signal.POLICY_ENTROPY) & was_resumed()
    return verdicts(
        measured,
        judged={
            SkipReason.FEW_POINTS: has_points(NOW + REWARDS),
            SkipReason.RANGE: pl.col("level") > ZERO,
            SkipReason.NOT_COMPARABLE: improved.is_not_null() & ~resumed,
        },
        found={
            "hacked": (gone | low) & improved & capped,
            "spent": gone & improved,
            "collapsed": low & ~improved,
        },
        severities={CRITICAL: gone},
        below=pl.col("start") / 2,
    )


def _rewards() -> dict[str, pl.Expr]:
    """Return the reward now and at the start; where none was logged then, early rewards stand for it."""
    reward = Signal.REWARD
    long_ago = {"n": REWARDS, "skip": BACK, "at_least": 1}
    return {
        "reward_level": recent_median(reward, REWARDS, at_least=1),
        "reward_start": start_median(reward, REWARDS).fill_null(recent_median(reward, **long_ago)),
        "reward_high": start_quantile(HIGH, reward, REWARDS).fill_null(
            recent_quantile(HIGH, reward, **long_ago)
        ),
        "reward_best": seen_max(reward, REWARDS, BACK + REWARDS),
        "reward_worst": start_quantile(0, reward, REWARDS),
    }


def _is_below_share(share: float) -> pl.Expr:
    """Return whether less than a share is left of an entropy that began high enough to tell."""
    start = pl.col("start")
    return (start >= MIN_START) & (pl.col("level") < share * start)


def _is_below_floor(per_token: float) -> pl.Expr:
    """Return whether the entropy per token is below a floor, and has more than halved."""
    level = pl.col("level")
    return is_of(Signal.ENTROPY) & (2 * level < pl.col("start")) & (level < per_token)


def _has_improved() -> pl.Expr:
    """Return whether the reward is above its start, or at its best after it rose within the first points."""
    level = pl.col("reward_level")
    best = pl.col("reward_best")
    at_best = (level >= best) & (best > pl.col("reward_worst"))
    return (level > pl.col("reward_high")) | at_best.fill_null(False)
