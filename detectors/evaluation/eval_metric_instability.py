"""The metric on held-out data leaps up and down from one evaluation to the next.

## What it catches
An accuracy, average precision or overlap that changes by more than 0.08 in the median evaluation, goes up
and down in turn (at 70 % of them), and gets nowhere meanwhile: over the last twelve evaluations.

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
An evaluation on a few dozen samples scatters as much by chance. Few-shot episodes and generated answers,
which are sampled anew each time, do so as well. The finding is informative for that reason.

## Source
Catalogue V2, O5, O18, V7: signs that alternate at 70 % of eight evaluations, and an amplitude far above the
trend. Real runs that learn change by at most 0.03 in the median evaluation.
"""

from typing import Annotated

import polars as pl

from detectors.api import Cause, History, Maturity, Severity, Variant, detector
from detectors.evidence import Measure, Unit
from detectors.schema import INDEX, SERIES, SIGNAL, VALUE
from detectors.signals import Signal
from detectors.stats import ROUNDING, recent_mean, recent_median
from detectors.verdict import verdicts

REACH = 12  # evaluations
LEAPS = 5  # times the mean change over them: what alternates goes nowhere


@detector(
    judges=(Signal.EVAL_ACCURACY, Signal.MEAN_AVERAGE_PRECISION, Signal.MEAN_INTERSECTION_OVER_UNION),
    history=History(recent=REACH + 2),
    maturity=Maturity.STABLE,
    cause=Cause.EVALUATION,
    evidence={
        "name": Measure("metric", Unit.TEXT),
        "leap": Measure("median change between evaluations", Unit.SAME),
        "turns": Measure("changes that go back", Unit.SHARE),
    },
    variants={
        "leaps": Variant(
            "{name} changes by {leap:.2g} from evaluation to evaluation, up and down in turn",
            ("V2", "O5", "O18", "V7"),
        )
    },
)
def eval_metric_instability(
    points: pl.LazyFrame,
    *,
    least_leap: Annotated[float, "median change between two evaluations that is too large"] = 0.08,
    least_turns: Annotated[
        float, "share of the changes whose direction is the opposite of the one before"
    ] = 0.7,
) -> pl.LazyFrame:
    """See the module's page."""
    change = pl.col(VALUE).diff().over(SERIES)
    measured = points.with_columns(
        change=change,
        size=change.abs(),
        turned=(change * change.shift(1).over(SERIES) < 0).cast(pl.Float64),
        name=pl.col(SIGNAL).str.replace("eval_", "").str.replace_all("_", " "),
    ).with_columns(
        leap=recent_median("size", REACH),
        turns=recent_mean("turned", REACH),
        drift=recent_mean("change", REACH).abs(),
    )
    leap = pl.col("leap")
    return verdicts(
        measured,
        judged=pl.col(INDEX) > REACH,
        found={
            "leaps": (leap > least_leap)
            & (pl.col("turns") > least_turns - ROUNDING)
            & (leap > LEAPS * pl.col("drift"))
        },
        lasts=(leap > least_leap / 2) & (pl.col("turns") > least_turns / 2),
        otherwise=Severity.INFO,
    )
