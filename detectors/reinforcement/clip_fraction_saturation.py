"""Most updates of the policy hit the clip: PPO's trust region is the only thing that still holds them.

## What it catches
A median clip fraction above 0.3 over the last ten points. It is over once the median is below 0.2. Nothing is
said where the KL of an update is below 0.02, or the clip range has fallen to half of what it was. It is a
warning once the reward has lost half of what it gained, and info until then.

## Why it matters
A clipped sample has no gradient. Where a third of the samples are clipped, each batch is used long after
the policy has left it: the passes that follow push on the few samples that remain, the KL of an update
grows, and the reward often falls some time later.

## What to do
Lower the learning rate or the number of passes over each batch (`n_epochs`, `num_iterations`), take larger
batches, and stop an update early by a `target_kl` of 0.01 to 0.05. Look at the approximate KL beside it.

## When it is wrong
Some runs learn well with a third of the samples clipped, above all with a clip range far below the usual 0.2,
and no reward need fall after it. So the finding is only told, not sent, until one does.
A range that decays to zero clips everything in the end. The first updates of a run often clip much; ten
points are waited for.

## Source
Catalogue A-clip-ratio: below 0.1 is healthy, above 0.3 is not. Stable-Baselines3, Spinning Up, CleanRL
and TRL all log the share of samples whose ratio left the clip range. A `target_kl` is 0.01 to 0.05: with less
the policy has hardly moved, however much is clipped.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import INFO, WARNING, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.reinforcement.outcome import STANDINGS, has_fallen
from sentinel.detectors.schema import VALUE, First
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import recent_median
from sentinel.detectors.verdict import SkipReason, verdicts

NOW = 10  # points whose median is the present level
SMALL_KL = 0.02  # nats of an update that hardly moves
DECAYED = 0.5  # share of the first clip range


@detector(
    judges=(Signal.CLIP_FRACTION,),
    uses=(Signal.APPROX_KL, Signal.CLIP_RANGE, First(Signal.CLIP_RANGE), *STANDINGS),
    history=History(recent=NOW),
    maturity=Maturity.STABLE,
    cause=Cause.POLICY,
    evidence={
        "level": Measure("median of the last 10 points", Unit.SAME),
        "update_kl": Measure("KL of one update", Unit.NATS),
    },
    variants={
        "saturated": Variant(
            "PPO clips {level:.0%} of the samples of an update, more than {most_clipped:.0%}",
            ("A-clip-ratio", "R2", "R1", "N-async-staleness"),
            (WARNING, INFO),
        )
    },
)
def clip_fraction_saturation(
    points: pl.LazyFrame,
    *,
    most_clipped: Annotated[float, "share of clipped samples that is too much"] = 0.3,
    few_clipped: Annotated[float, "share below which the trouble is over"] = 0.2,
) -> pl.LazyFrame:
    level = pl.col("level")
    decayed = pl.col(Signal.CLIP_RANGE) <= DECAYED * pl.col(First(Signal.CLIP_RANGE).column)
    harmless = (level > few_clipped) & ((pl.col("update_kl") < SMALL_KL) | decayed)
    return verdicts(
        points.with_columns(
            level=recent_median(VALUE, NOW), update_kl=recent_median(Signal.APPROX_KL, NOW, at_least=1)
        ),
        judged={SkipReason.FEW_POINTS: level.is_not_null(), SkipReason.EXPLAINED: ~harmless.fill_null(False)},
        found={"saturated": level > most_clipped},
        severities={INFO: ~has_fallen()},
        lasts=level > few_clipped,
        above=pl.lit(few_clipped),
    )
