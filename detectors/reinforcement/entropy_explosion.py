"""The entropy of a policy rises and rises while its reward falls or stands: it comes to act at random.

## What it catches
A median entropy over the last 20 points of more than twice that of the first 20 and than the lowest of the
last 200, and of at least 0.5 nats per token, while the reward lies below nine tenths of its first values.
Four times as much is critical. And a standard deviation of a Gaussian policy's actions of three times that of
the first 20 points, which still grows, while the reward of the last 100 points is less than 3 % above that of
the 100 before; and a coefficient of the entropy of 100 times its lowest, likewise. Both are info, and a
warning where episodes have become shorter by 15 %. It is over below one and a half times the start.

## Why it matters
An entropy bonus has no upper end. Actions become noise, and a reward that does not pay for precision lets
them. In a language model large negative advantages push probability from the sampled tokens to all others.
Answers then mix languages, lose their end and run into the length cap; no later step brings the policy back.

## What to do
Go back to a checkpoint from before the rise. Remove the entropy bonus or let it follow a target, lower the
upper clip (`epsilon_high`) and the learning rate, cap the ratio for negative advantages, and look at the gap
between trainer and sampler.

## When it is wrong
Entropy that rises while the reward holds or rises is exploration, and is not reported. A change of the
prompts to harder ones may raise entropy and lower rewards as well.

## Source
Catalogue N-entropy-explosion and R3: INTELLECT-2 (arXiv:2505.07291) saw entropy fall, turn and rise before
its runs collapsed. Healthy public runs of GRPO and verl doubled their entropy only with a reward that rose.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, INFO, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import SERIES, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import (
    has_points,
    is_of,
    now_and_then,
    recent_max,
    recent_median,
    start_quantile,
)
from sentinel.detectors.verdict import SkipReason, verdicts

NOW = 20  # points of the present level, and of the start
TUNED = 100  # times its lowest level: as far as a coefficient falls that finds its place, but upwards
SMALL_GAIN = 0.03  # share of its size: a reward that gained less in so many points stands
PAST = 100  # points in which a reward ought to gain
SHORTER = 0.85  # of the longest mean length: episodes that end sooner again
BACK = 200  # points among whose levels the lowest is sought
LOW = 0.1  # quantile of the first rewards: a fall below it is no noise of one point


@detector(
    judges=(Signal.ENTROPY, Signal.ACTION_STD, Signal.ENTROPY_COEFFICIENT),
    uses=(Signal.REWARD, Signal.EPISODE_LENGTH, Signal.CLIPPED_COMPLETION_RATIO),
    history=History(recent=NOW + BACK, head=NOW),
    maturity=Maturity.STABLE,
    cause=Cause.POLICY,
    inhibits=(Cause.POLICY, Cause.REWARD),  # noise earns nothing, and does not end
    evidence={
        "level": Measure("median of the last 20 points", Unit.SAME),
        "start": Measure("at the start", Unit.SAME),
        "lowest": Measure("lowest of the last 200 points", Unit.SAME),
        "reward_level": Measure("reward now", Unit.NONE),
        "reward_start": Measure("reward at the start", Unit.NONE),
        "reward_low": Measure("reward at the start, lower end of its noise", Unit.NONE),
        "reward_before": Measure("reward 100 points before", Unit.NONE),
        "earlier_level": Measure("standard deviation 100 points before", Unit.SAME),
        "length": Measure("length of episodes now", Unit.STEPS),
        "longest": Measure("longest of the last 200 points", Unit.STEPS),
        "capped": Measure("completions cut off at the length cap", Unit.SHARE),
    },
    variants={
        "exploded": Variant(
            "the entropy rose from {lowest:.3g} to {level:.3g} nats per token while the reward fell from "
            "{reward_start:.3g} to {reward_level:.3g}",
            ("N-entropy-explosion", "A-entropy", "R1", "N-engine-mismatch"),
            (WARNING, CRITICAL),
        ),
        "coefficient": Variant(
            "the entropy's coefficient grew from {lowest:.3g} to {level:.3g}, and the reward has gained "
            "nothing since it was {earlier_level:.3g}: noise outweighs the reward",
            ("N-entropy-explosion", "R3"),
            (INFO, WARNING),
        ),
        "noise": Variant(
            "the standard deviation of the actions grew from {start:.3g} to {level:.3g}, and the reward has "
            "gained nothing since it was {earlier_level:.3g}",
            ("N-entropy-explosion", "R3"),
            (INFO, WARNING),
        ),
    },
)
def entropy_explosion(
    points: pl.LazyFrame,
    *,
    growth: Annotated[float, "multiple of the first and of the lowest level that is too much"] = 2.0,
    critical_growth: Annotated[float, "multiple of the first level at which a policy writes noise"] = 4.0,
    recovered: Annotated[float, "multiple of the first level below which the trouble is over"] = 1.5,
    noise: Annotated[float, "multiple of the first standard deviation of actions that is too much"] = 3.0,
    least: Annotated[float, "nats per token below which a policy does not write noise"] = 0.5,
) -> pl.LazyFrame:
    """Judge the rise of the entropy; the reward has fallen below a tenth of the first ones."""
    level = pl.col("level")
    start = pl.col("start")
    reward = Signal.REWARD
    measured = points.with_columns(
        **now_and_then(VALUE, NOW, start=NOW),
        **now_and_then(reward, NOW, start=NOW, at_least=1, of="reward_"),
        reward_low=start_quantile(LOW, reward, NOW),
        reward_before=recent_median(reward, PAST, skip=PAST, at_least=1),
        earlier_level=recent_median(VALUE, NOW, skip=PAST),
        capped=recent_median(Signal.CLIPPED_COMPLETION_RATIO, NOW, at_least=1),
        length=recent_median(Signal.EPISODE_LENGTH, NOW, at_least=1),
    ).with_columns(
        lowest=pl.col("level").rolling_min(BACK, min_samples=1).over(SERIES),
        longest=recent_max(pl.col("length"), BACK, at_least=1),
    )
    fell = pl.col("reward_level") < pl.col("reward_low")
    risen = (level > growth * start) & (level > growth * pl.col("lowest")) & (level > least)
    of_actions = is_of(Signal.ACTION_STD)
    of_coefficient = is_of(Signal.ENTROPY_COEFFICIENT)
    outweighs = (level > TUNED * pl.col("lowest")) & (level > pl.col("earlier_level"))
    gain = recent_median(reward, PAST, at_least=1) - pl.col("reward_before")
    stands = gain < SMALL_GAIN * pl.col("reward_before").abs()
    grows = (level > noise * start) & (level > pl.col("earlier_level"))
    return verdicts(
        measured,
        judged={SkipReason.FEW_POINTS: has_points(2 * NOW), SkipReason.NOT_COMPARABLE: fell.is_not_null()},
        found={
            "exploded": is_of(Signal.ENTROPY) & risen & fell,
            "noise": of_actions & grows & stands,
            "coefficient": of_coefficient & outweighs & stands,
        },
        lasts=level > recovered * start,
        severities={
            CRITICAL: level > critical_growth * start,
            WARNING: (of_actions | of_coefficient) & (pl.col("length") < SHORTER * pl.col("longest")),
        },
        above=recovered * start,
    )
