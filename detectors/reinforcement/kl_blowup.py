"""The policy runs away from its reference, or one update from the policy before it.

## What it catches
A median KL over the last ten points that stands above the band of its unit, or has grown several times
over against the fifty points before. Per token: above 0.5 is worth knowing, above 2 the policy has left
its reference. Summed over a response: above twice the usual target of 6. Where the unit is not known
only growth counts. For the KL between old and new policy of one PPO update: above 0.1 and several times
its own early level, and any single update above 1, which has wrecked the policy whatever follows. A
KL of updates that is four times its start, yet small, is worth knowing.

## Why it matters
A policy far from its reference has often found text that the reward likes and people do not; with the
reward rising at the same time that is the first thing to suspect. A PPO update far outside its trust
region rests on importance weights that no longer mean anything. After one of 10 nats the policy often
takes one action for ever, and every later update is exactly zero.

## What to do
Read samples. Then raise the KL coefficient or make it adaptive, lower the learning rate (about 1e-6 for
full fine-tuning), make fewer passes over each batch, and check that the reference is frozen. For PPO
updates set a `target_kl` of 0.01 to 0.05. After a wrecked update go back to an earlier checkpoint.

## When it is wrong
A long reasoning run may settle above 0.5 per token for good; that stays informational. A long response
has a large sum, so the response length, where logged, raises the band. A KL that grows evenly from zero
and single huge points of the k3 estimator to a reference are healthy and leave the medians alone. The
estimate for one update of a language model may be as heavy-tailed; where few samples were clipped, a
single huge one is only worth knowing.

## Source
Catalogue A-kl (0.5 and 2 nats per token) and R2 (target 6 per response, as in TRL's adaptive
controller). Of an update: Spinning Up's PPO has 0.01 or 0.05 for usual values of `target_kl` and, like
Stable-Baselines3, stops at 1.5 times that; 0.1 is beyond all of these. Healthy PPO runs logged 0.06 at
most for a single update.
"""

from typing import Annotated

import polars as pl

from detectors.api import Cause, History, Maturity, Severity, Variant, detector
from detectors.evidence import Measure, Unit, logged
from detectors.schema import INDEX, SIGNAL, VALUE
from detectors.signals import Signal
from detectors.stats import recent_max, recent_median, recent_quantile, start_median
from detectors.verdict import verdicts

NOW = 10  # points whose median is the present level: one huge point is no level
BEFORE = 50  # points before those; all of them, for any even growth from zero is fivefold at first


@detector(
    judges=(Signal.KL, Signal.KL_PER_SEQUENCE, Signal.KL_UNKNOWN_UNIT, Signal.APPROX_KL),
    uses=(Signal.REWARD, Signal.COMPLETION_LENGTH, Signal.CLIP_FRACTION),
    history=History(recent=NOW + BEFORE, head=NOW),
    maturity=Maturity.STABLE,
    cause=Cause.POLICY,  # silences nothing: entropy, length and reward may move for reasons of their own
    evidence={
        "level": Measure("median of the last 10 points", Unit.SAME),
        "limit": Measure("limit", Unit.SAME),
        "before": Measure("median before", Unit.SAME),
        "largest": Measure("largest of the last 10 points", Unit.SAME),
        "clipped": Measure("largest share of clipped samples", Unit.SHARE),
        "reward_level": Measure("reward now", Unit.NONE),
        "reward_before": Measure("reward before", Unit.NONE),
        **logged(Signal.COMPLETION_LENGTH),
    },
    variants={
        "far": Variant(
            "the KL to the reference is {level:.3g}, above {limit:.3g}",
            ("R2", "A-kl", "R1", "L9"),
        ),
        "growing": Variant(
            "the KL to the reference grew from {before:.3g} to {level:.3g}, above {limit:.3g}",
            ("R2", "A-kl", "R1", "L9"),
        ),
        "rewarded": Variant(
            "the KL to the reference is {level:.3g}, above {limit:.3g}, while the reward rises to "
            "{reward_level:.3g}",
            ("R1", "R2", "A-kl"),
        ),
        "wrecked": Variant(
            "a single update moved the policy by a KL of {largest:.3g}, above {wreck_per_update:.3g}",
            ("R2", "A-clip-ratio", "R1"),
        ),
        "update": Variant(
            "one update moves the policy by a KL of {level:.3g}, above {limit:.3g}; early updates "
            "moved it by {before:.3g}",
            ("R2", "A-clip-ratio", "R1"),
        ),
        "larger": Variant(
            "one update moves the policy by a KL of {level:.3g}, more than {growing:g} times as far "
            "as early updates ({before:.3g})",
            ("A-clip-ratio", "R2"),
        ),
    },
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
    growth: Annotated[float, "times the earlier level that count as running away"] = 5.0,
    growing: Annotated[float, "times the level of early updates that are worth knowing"] = 4.0,
) -> pl.LazyFrame:
    """Levels are medians, so 'five of ten points' and 'never a single one' are the same rule."""
    signal, level, limit, before = pl.col(SIGNAL), pl.col("level"), pl.col("limit"), pl.col("before")
    per_sequence, update = signal == Signal.KL_PER_SEQUENCE, signal == Signal.APPROX_KL
    early = update & (pl.col(INDEX) < 2 * NOW - 1)  # nothing yet to compare with
    length = recent_median(Signal.COMPLETION_LENGTH, NOW, at_least=1).fill_null(0)
    measured = points.with_columns(
        level=recent_median(VALUE, NOW),
        largest=recent_max(pl.col(VALUE), NOW, at_least=1),
        clipped=recent_max(pl.col(Signal.CLIP_FRACTION), NOW, at_least=1),
        before=pl.when(~update)
        .then(recent_median(VALUE, BEFORE, skip=NOW))
        .when(~early)
        .then(start_median(VALUE, NOW)),
        limit=pl.when(update)
        .then(warning_per_update)
        .when(per_sequence)
        .then((info_per_token * length).clip(warning_per_sequence))
        .otherwise(info_per_token),
        reward_level=recent_median(Signal.REWARD, NOW, at_least=1),
        reward_before=recent_quantile(0.75, Signal.REWARD, BEFORE, skip=NOW, at_least=NOW),
    )
    away = (signal == Signal.KL) & (level > critical_per_token)
    over = level > limit
    grown = (level > growth * before.clip(0)).fill_null(False)
    rewarded = pl.col("reward_level") > pl.col("reward_before")
    wrecked = update & (pl.col("largest") > wreck_per_update)
    to_reference = ~update & over & (grown | per_sequence | (signal == Signal.KL))
    found = {
        "wrecked": wrecked,
        "update": update & ~early & over & grown,
        "rewarded": to_reference & rewarded,
        "growing": to_reference & grown,
        "far": to_reference,
        "larger": update & ~early & (level > info_per_update) & (level > growing * before),
    }
    clips_little = pl.col("clipped") < 0.5
    small = (level > growing * before) & ~over
    severities = {
        Severity.INFO: (wrecked & clips_little & ~(over & grown)) | (update & ~wrecked & small),
        Severity.CRITICAL: wrecked | away | (over & grown & per_sequence),
        Severity.WARNING: grown | per_sequence,
    }
    return verdicts(
        measured.with_columns(limit=pl.when(away).then(critical_per_token).otherwise(limit)),
        judged=wrecked | (level.is_not_null() & ~early),
        found=found,
        severities=severities,
        otherwise=Severity.INFO,
    )
