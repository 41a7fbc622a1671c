"""A replay buffer or the statistics of observations begin again while the training goes on.

## What it catches
A number of transitions in the replay buffer, or of observations behind the normaliser, below half of the
largest of the last 100 points. The points before a restart that goes on with the steps count as well.

## Why it matters
The weights were learned on normalised observations and on a full buffer. With fresh statistics the policy
sees other inputs than it knows, and with an empty buffer it fits a few transitions. The return falls as if
the agent were new.

## What to do
Save and load both with the checkpoint. In Stable-Baselines3 `VecNormalize` and the replay buffer are saved
apart from the weights. Within a run, look for what makes the environment or the buffer anew.

## When it is wrong
A training in stages that empties its buffer on purpose.

## Source
Catalogue R4 and R3. A buffer stays full once it is full, and the count of a normaliser only grows, so half is
on the safe side of a buffer that drops whole episodes.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.runtime.restarts import earlier_value, goes_on
from sentinel.detectors.schema import INDEX, STEP, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, is_of, recent_max, start_value
from sentinel.detectors.verdict import SkipReason, verdicts

BACK = 100  # points that are compared


@detector(
    judges=(Signal.REPLAY_SIZE, Signal.OBSERVATIONS_COUNTED),
    history=History(recent=BACK, head=1, earlier=BACK),
    maturity=Maturity.PREVIEW,
    cause=Cause.RESUME,
    evidence={"most": Measure("most of the last 100 points", Unit.SAME)},
    variants={
        "buffer": Variant(
            "the replay buffer holds {value:.0f} transitions; it held {most:.0f} shortly before", ("R4",)
        ),
        "normaliser": Variant(
            "the normaliser knows {value:.0f} observations; it knew {most:.0f} shortly before", ("R4", "R3")
        ),
    },
)
def lost_environment_state(
    points: pl.LazyFrame, *, kept: Annotated[float, "share of the most before that must be left"] = 0.5
) -> pl.LazyFrame:
    measured = points.with_columns(
        most=recent_max(pl.col(VALUE), BACK, at_least=1),
        first_step=start_value(STEP),
        last_step=earlier_value(STEP),
    )
    least = kept * pl.col("most")
    fell = pl.col(VALUE) < least
    begun_anew = (pl.col(INDEX) < BACK) & ~goes_on(BACK).fill_null(True)
    return verdicts(
        measured,
        judged={SkipReason.FEW_POINTS: has_points(2), SkipReason.NOT_COMPARABLE: ~begun_anew},
        found={
            "buffer": is_of(Signal.REPLAY_SIZE) & fell,
            "normaliser": is_of(Signal.OBSERVATIONS_COUNTED) & fell,
        },
        below=least,
    )
