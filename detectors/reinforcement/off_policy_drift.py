"""The policy that is trained and the one that sampled have drifted apart.

## What it catches
A median gap between the trainer's and the sampler's log-probabilities, or a KL of the two, over the last ten
points above 1 nat per token, or above 0.1 and three times its own first points. A mean gap of probabilities
above 0.03 and three times its first points. A mean importance ratio outside 0.8 to 1.2 over ten points, but
only where the gap, if it is logged, is 0.1 nats, too.

## Why it matters
The gradient is weighed by the ratio of the two. Where they disagree it belongs to another policy: either the
weights that the sampler holds are old, or it computes something else (precision, attention kernel, sampling
parameters, a mixture of experts that routes differently).

## What to do
Copy the weights to the sampler more often (Axolotl's `vllm_sync_interval`, `weight_sync_steps` of TRL's
asynchronous GRPO), take fewer passes over each batch, and mask or cap tokens with extreme ratios. If the gap
is there from the first step, compare the two log-probabilities of one text with equal weights.

## When it is wrong
Engines of low precision have a constant gap; only its growth counts below 1 nat. The ratio of a sequence is
the product over its tokens: long completions of a healthy run leave the band on both sides, and a mask of the
large ones, as TRL's `sequence_mask`, then lowers their mean to 0.75 and 0.35; without a cap few of them raise
it above 1.2. So the gap decides. A KL is taken for half of its square. The smallest ratio of a batch is near
zero in any large one and is not judged.

## Source
Catalogue A-logp-diff (healthy below 0.1, diverged above 1), A-is-ratio and A-is-divergence. verl's FAQ takes
a mean difference of probabilities of 0.005 for healthy and of 0.01 for a fault of the engine; prime-rl aims
at a KL below 0.01 and met 0.23 in a fault. Asynchronous sampling grows both, hence three times those.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import SIGNAL, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, now_and_then, recent_median
from sentinel.detectors.verdict import SkipReason, verdicts

NOW = 10  # points of the present level, and of the start
GAPS = (Signal.SAMPLING_LOGP_DIFFERENCE, Signal.SAMPLING_KL, Signal.SAMPLING_PROBABILITY_DIFFERENCE)
ENGINES = ("N-engine-mismatch", "N-async-staleness", "N-stale-prefix-cache", "N-routing-mismatch")


@detector(
    judges=(*GAPS, Signal.IMPORTANCE_RATIO_MEAN),
    uses=(*GAPS[:2], Signal.SAMPLE_AGE),
    history=History(recent=NOW, head=NOW),
    maturity=Maturity.STABLE,
    cause=Cause.POLICY,
    evidence={
        "level": Measure("median of the last 10 points", Unit.SAME),
        "start": Measure("at the start", Unit.SAME),
        "age": Measure("versions of the policy since the answers were sampled", Unit.NONE),
    },
    variants={
        "gap": Variant(
            "trainer and sampler drift apart: {tag} is {level:.3g}, {start:.3g} at the start",
            ("A-logp-diff", "A-is-divergence", "A-is-ratio", *ENGINES),
            (WARNING, CRITICAL),
        ),
        "ratio": Variant(
            "the mean importance ratio is {level:.3g}, outside {lowest:g} to {highest:g}",
            ("A-is-ratio", "A-is-divergence", "A-logp-diff", "N-truncated-sampling", *ENGINES),
        ),
    },
)
def off_policy_drift(
    points: pl.LazyFrame,
    *,
    warning_gap: Annotated[float, "nats per token that count as a gap if it has grown"] = 0.1,
    probability_gap: Annotated[float, "difference of probabilities that is a gap, if it has grown"] = 0.03,
    critical_gap: Annotated[float, "nats per token beyond which it is another policy"] = 1.0,
    growth: Annotated[float, "multiple of the first points that counts as growth"] = 3.0,
    lowest: Annotated[float, "mean importance ratio that is too small"] = 0.8,
    highest: Annotated[float, "mean importance ratio that is too large"] = 1.2,
) -> pl.LazyFrame:
    level, start, limit, signal = (pl.col(column) for column in ("level", "start", "limit", SIGNAL))
    is_gap = signal.is_in(GAPS)
    in_nats = is_gap & (signal != Signal.SAMPLING_PROBABILITY_DIFFERENCE)
    gap, kl = (recent_median(measure, NOW, at_least=1) for measure in GAPS[:2])
    of_length = pl.coalesce(gap, (2 * kl.clip(0)).sqrt()) < warning_gap
    diverged = in_nats & (level > critical_gap)
    apart = diverged | (is_gap & (level > limit) & (level > growth * start))
    return verdicts(
        points.with_columns(
            **now_and_then(VALUE, NOW, start=NOW),
            age=recent_median(Signal.SAMPLE_AGE, NOW, at_least=1),
            limit=pl.when(in_nats).then(warning_gap).when(is_gap).then(probability_gap).otherwise(highest),
        ),
        judged={SkipReason.FEW_POINTS: has_points(NOW)},
        found={
            "gap": apart,
            "ratio": ~is_gap & ~level.is_between(lowest, highest) & ~of_length.fill_null(False),
        },
        severities={CRITICAL: diverged},
        above=limit,
        below=pl.when(~is_gap).then(lowest),
    )
