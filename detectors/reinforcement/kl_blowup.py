"""The policy runs away from its reference, or one update from the policy before it.

## What it catches
A median KL over the last ten points above the band of its unit. Per token: above 0.5 is info, a warning if it
also grew fivefold over the median of the fifty points before; above 2 the policy has left its reference.
Summed over a response: above 12, critical if it also grew fivefold. Where the unit is unknown: above 0.5 and
grown fivefold, while it rises. For one PPO update: above 0.1 and five times its start, or above 1; above 5
for one of the first ten, unless a KL from a reference or completions tell of a policy that was taught before.

## Why it matters
A policy far from its reference has often found text that the reward likes and people do not, above all if the
reward rises. An update far outside its trust region rests on importance weights that mean nothing any more:
after one of 10 nats the policy often takes one action for ever.

## What to do
Read samples. Then raise the KL coefficient or make it adaptive, lower the learning rate (about 1e-6 for full
fine-tuning), make fewer passes over each batch, and check that the reference is frozen. For PPO updates set a
`target_kl` of 0.01 to 0.05. After a wrecked update go back to an earlier checkpoint.

## When it is wrong
A long reasoning run may settle above 0.5 per token for good; that stays info. The length of a response, where
logged, raises the band of its sum. Even growth from zero and single huge points of the k3 estimator leave
the medians alone. An update that clips few samples is info: a few unlikely samples count.
So is one leap while the reward stands at its best: the policy survived it. Where no share of clipped samples
is logged, updates that are larger than they were are info while the reward keeps what it gained.

## Source
Catalogue A-kl (per token), R2 (target 6 per response, as in TRL). Spinning Up's PPO stops an update at 1.5
times its `target_kl` of 0.01 or 0.05. Healthy PPO runs logged 0.06 at most. One of 0.1 clips nearly half.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, INFO, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit, logged
from sentinel.detectors.reinforcement.outcome import STANDINGS, is_at_best, keeps_gain
from sentinel.detectors.schema import INDEX, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import (
    has_points,
    is_of,
    recent_max,
    recent_median,
    recent_quantile,
    start_median,
)
from sentinel.detectors.strictness import Strictness
from sentinel.detectors.verdict import SkipReason, verdicts

NOW = 10  # points whose median is the present level: a huge point is none
BEFORE = 50  # points whose median is the level before: growth from zero is fivefold
FAR_OFF = 5.0  # nats of one of the first updates that wreck even a policy which has learned nothing yet
TAUGHT = Signal.COMPLETION_LENGTH, Signal.KL, Signal.KL_PER_SEQUENCE  # beside a policy that was taught before
HIGH = 0.75  # quantile of the rewards before: noise of one point does not reach it
FEW = 0.5  # fraction of clipped samples below which an update clips few
FEWER = 0.25  # the same beside a KL that grew past its limit
UPDATE = "one update moves the policy by a KL of {level:.3g}; early updates moved it by {before:.3g}"
TOO_FAR = "A-clip-ratio", "R2", "R1"
FAR = "the KL to the reference is {level:.3g}, above {limit:.3g}"


@detector(
    judges=(Signal.KL, Signal.KL_PER_SEQUENCE, Signal.KL_UNKNOWN_UNIT, Signal.APPROX_KL),
    uses=(Signal.REWARD, *TAUGHT, Signal.CLIP_FRACTION, *STANDINGS),
    history=History(recent=NOW + BEFORE, head=NOW),
    maturity=Maturity.STABLE,
    cause=Cause.POLICY,
    inhibits=(Cause.POLICY, Cause.REWARD),  # a policy that left its reference answers in other ways, for less
    evidence={
        "level": Measure("median of the last 10 points", Unit.SAME),
        "limit": Measure("limit", Unit.SAME),
        "before": Measure("median before", Unit.SAME),
        "largest": Measure("largest of the last 10 points", Unit.SAME),
        "clipped": Measure("largest share of clipped samples", Unit.SHARE),
        "reward_gain": Measure("gain of the reward over what it was before", Unit.NONE),
        **logged(Signal.COMPLETION_LENGTH),
    },
    variants={
        "far": Variant(FAR, ("R2", "A-kl", "R1", "L9"), (INFO, WARNING, CRITICAL)),
        "wrecked": Variant("one update moved the policy by a KL of {largest:.3g}", TOO_FAR, (CRITICAL, INFO)),
        "update": Variant(UPDATE, TOO_FAR, (WARNING, INFO)),
        "larger": Variant(UPDATE, ("A-clip-ratio", "R2"), (INFO,)),
    },
    stricter=Strictness(
        larger=(
            "critical_per_token",
            "warning_per_sequence",
            "warning_per_update",
            "wreck_per_update",
            "growth",
        )
    ),
)
def kl_blowup(
    points: pl.LazyFrame,
    *,
    info_per_token: Annotated[float, "nats per token above which the KL is worth knowing"] = 0.5,
    critical_per_token: Annotated[float, "nats per token above which the policy has run away"] = 2.0,
    warning_per_sequence: Annotated[float, "nats per response above which the KL is too large"] = 12.0,
    warning_per_update: Annotated[float, "nats between old and new policy that are too many"] = 0.1,
    wreck_per_update: Annotated[float, "nats of one update that wreck a policy"] = 1.0,
    info_per_update: Annotated[float, "nats between old and new policy worth knowing, if grown"] = 0.03,
    growth: Annotated[float, "multiple of the earlier level that counts as running away"] = 5.0,
    growing: Annotated[float, "multiple of the level of early updates that is worth knowing"] = 4.0,
) -> pl.LazyFrame:
    """Levels are medians, so 'five of ten points' and 'never a single one' are the same rule."""
    level = pl.col("level")
    before = pl.col("before")
    summed = is_of(Signal.KL_PER_SEQUENCE)
    update = is_of(Signal.APPROX_KL)
    over = level > pl.col("limit")
    away = is_of(Signal.KL) & (level > critical_per_token)
    grown = (level > growth * before.clip(0)).fill_null(False)
    wrecked = update & (pl.col("largest_late") > wreck_per_update)
    to_reference = ~update & over & (grown | summed | is_of(Signal.KL))
    measured = points.with_columns(
        level=recent_median(VALUE, NOW),
        largest=recent_max(pl.col(VALUE), NOW, at_least=1),
        largest_late=recent_max(_wrecks(), NOW, at_least=1),
        clipped=recent_max(pl.col(Signal.CLIP_FRACTION), NOW, at_least=1),
        before=_before(),
        reward_gain=recent_median(Signal.REWARD, NOW, at_least=1)
        - recent_quantile(HIGH, Signal.REWARD, BEFORE, skip=NOW, at_least=NOW),
    ).with_columns(
        limit=pl.when(away)
        .then(critical_per_token)
        .when(update)
        .then(warning_per_update)
        .otherwise(_band(info_per_token, warning_per_sequence))
    )
    has_clipped = pl.col("clipped").is_not_null()
    survived = pl.when(wrecked).then(is_at_best()).otherwise(update & ~has_clipped & keeps_gain())
    # A few unlikely samples make the KL of an update that clips few.
    clips_few = pl.col("clipped") < pl.when(over & grown).then(FEWER).otherwise(FEW)
    return verdicts(
        measured,
        judged={SkipReason.FEW_POINTS: wrecked | (level.is_not_null() & (~update | has_points(2 * NOW)))},
        lasts=is_of(Signal.KL_UNKNOWN_UNIT) & over & (level > before),
        found={
            "wrecked": wrecked,
            "update": update & over & grown,
            "far": to_reference,
            "larger": update & (level > growing * before) & (level > info_per_update),
        },
        severities={
            INFO: clips_few | survived,
            CRITICAL: away | (summed & grown),
            WARNING: summed | (grown & ~update),
        },
        above=pl.when(wrecked).then(wreck_per_update).when(over).then("limit").otherwise(level / 2),
    )


def _wrecks() -> pl.Expr:
    """Return the KL of an update that may have wrecked a policy: not of a first one, unless it is huge or
    the policy was taught before.
    """
    was_taught = pl.any_horizontal(pl.col(signal).is_not_null() for signal in TAUGHT)
    may_wreck = (pl.col(INDEX) >= NOW) | (pl.col(VALUE) > FAR_OFF) | was_taught
    return pl.when(may_wreck).then(VALUE)


def _before() -> pl.Expr:
    """Return the level before the last points; of updates that of the first ones, once others followed."""
    lately = recent_median(VALUE, BEFORE, skip=NOW)
    first = start_median(VALUE, NOW)
    return pl.when(~is_of(Signal.APPROX_KL)).then(lately).when(has_points(2 * NOW)).then(first)


def _band(per_token: float, per_sequence: float) -> pl.Expr:
    """Return the KL to the reference that is ignored: at least as much for a response as for its tokens."""
    of_tokens = per_token * recent_median(Signal.COMPLETION_LENGTH, NOW, at_least=1).fill_null(0)
    summed = of_tokens.clip(per_sequence)
    return pl.when(is_of(Signal.KL_PER_SEQUENCE)).then(summed).otherwise(per_token)
