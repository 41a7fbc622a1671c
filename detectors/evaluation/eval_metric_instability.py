"""The metric on held-out data leaps up and down from one evaluation to the next.

## What it catches
An accuracy, average precision or overlap that changes by more than 0.1 in the median evaluation, goes up
and down in turn (at 70 % of them), and gets nowhere meanwhile. The last 24 evaluations count, and there must
be twelve. The metric must change by more than chance allows: the smallest difference between two values shows
how many samples there are at most, and 3.5 standard deviations of a share of that many samples count as
chance.

## Why it matters
Between two evaluations a model changes a little. A metric that leaps by a tenth measures something else:
the luck of a small sample, batch statistics of the last few training batches, or a network that is still in
training mode. The best checkpoint by such a metric is a random one.

## What to do
Evaluate one checkpoint twice. If the results differ, look for `model.eval()`, for dropout and for sampling
in the evaluation. If they agree, look at batch normalisation (small batches, a large momentum, statistics
of a frozen backbone) and at the learning rate; average the weights (EMA). Enlarge the evaluation set where
it has fewer than some hundred samples.

## When it is wrong
Few-shot episodes and generated answers, which are sampled anew each time, scatter as much by chance. So
does an average over the batches of a small evaluation set.

## Source
Catalogue V2, O5, O18, V7: signs that alternate at 70 % of eight evaluations, and an amplitude far above the
trend. Real runs that learn change by at most 0.03 in the median evaluation. In a million simulated windows of
evaluations on 30 to 500 samples the median change was at most 3.3 standard deviations of chance. Twelve
evaluations of a long run that scatters by 0.04 leap now and then by chance; 24 do not.
"""

from typing import Annotated

import numpy as np
import polars as pl

from sentinel.detectors.api import INFO, Cause, History, Maturity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, SERIES, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import (
    ROUNDING,
    Floats,
    last_values,
    metric_name,
    recent_mean,
    recent_median,
    with_arrays,
)
from sentinel.detectors.verdict import SkipReason, verdicts

REACH = 24  # changes that are looked at
LEAST = 12  # changes that there must be
LEAPS = 5  # times the mean change over them: what alternates goes nowhere
EQUAL = 1e-9  # values that differ by less are equal


@detector(
    judges=(Signal.EVAL_ACCURACY, Signal.MEAN_AVERAGE_PRECISION, Signal.MEAN_INTERSECTION_OVER_UNION),
    history=History(recent=REACH + 2),
    maturity=Maturity.STABLE,
    cause=Cause.EVALUATION,
    needs_consent=True,
    evidence={
        "name": Measure("metric", Unit.TEXT),
        "leap": Measure("median change between evaluations", Unit.SAME),
        "turns": Measure("changes that go back", Unit.SHARE),
        "chance": Measure("standard deviation by chance, at most", Unit.SAME),
    },
    variants={
        "leaps": Variant(
            "{name} changes by {leap:.2g} from evaluation to evaluation, up and down in turn",
            ("V2", "O5", "O18", "V7"),
            (INFO,),
        )
    },
)
def eval_metric_instability(
    points: pl.LazyFrame,
    *,
    least_leap: Annotated[float, "median change between two evaluations that is too large"] = 0.1,
    least_turns: Annotated[
        float, "share of the changes whose direction is the opposite of the one before"
    ] = 0.7,
    sure: Annotated[float, "standard deviations of chance that the median change must exceed"] = 3.5,
) -> pl.LazyFrame:
    change = pl.col(VALUE).diff().over(SERIES)
    measured = points.with_columns(
        change=change,
        size=change.abs(),
        turned=(change * change.shift(1).over(SERIES) < 0).cast(pl.Float64),
        name=metric_name(),
    ).with_columns(
        leap=recent_median("size", REACH, at_least=LEAST),
        turns=recent_mean("turned", REACH, at_least=LEAST),
        drift=recent_mean("change", REACH, at_least=LEAST).abs(),
    )
    leap = pl.col("leap")
    return verdicts(
        with_arrays(measured, ("chance",), _chance, every=1, at_least=LEAST + 2),
        judged={SkipReason.FEW_POINTS: pl.col(INDEX) > LEAST},
        found={
            "leaps": (leap > least_leap)
            & (leap > sure * pl.col("chance"))
            & (pl.col("turns") > least_turns - ROUNDING)
            & (leap > LEAPS * pl.col("drift"))
        },
        lasts=(leap > least_leap / 2) & (pl.col("turns") > least_turns / 2),
    )


def _chance(frame: pl.DataFrame, due: pl.DataFrame) -> dict[str, Floats]:
    """Return the standard deviation of a share of as few samples as the smallest difference tells."""
    recent_values = last_values(frame[VALUE].to_numpy(), due["row"].to_numpy(), REACH + 1)
    values = np.where(np.arange(REACH + 1) <= due[INDEX].to_numpy()[:, None], recent_values, np.nan)
    gaps = np.diff(np.sort(values, axis=1), axis=1)
    smallest = np.where(gaps > EQUAL, gaps, 1).min(axis=1)
    return {"chance": np.sqrt(smallest) / 2}
