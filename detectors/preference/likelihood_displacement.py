"""Chosen and rejected answers both become unlikely, and the margin between them no longer grows.

## What it catches
Log-probabilities of the chosen answer, and of the rejected one, that are far below those of the first
twenty points (by a fifth and by three times their scatter), while the margin is no larger than it was
fifty points before. And a chosen answer that lost half of its log-probability with a growing margin.

## Why it matters
A preference loss sees the difference alone, so it may push both answers down. The probability goes to
texts that nobody asked for, and generations degrade although the loss falls.

## What to do
Lower the learning rate, raise `beta` (0.3 to 0.5), add a supervised term on the chosen answers
(`loss_type=["sigmoid", "sft"]` of TRL, or ORPO), and check that the reference is frozen. Drop pairs that
hardly differ.

## When it is wrong
Both falling while the margin grows is how DPO usually goes. Log-probabilities are sums over an answer,
so batches of long answers lower them; the scatter of the first points allows for that.

## Source
Catalogue L9; Razin et al. 2024, arXiv:2410.08847, on likelihood displacement.
"""

from typing import Annotated

import polars as pl

from sentinel.detectors.api import CRITICAL, INFO, Cause, History, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import INDEX, SERIES, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import has_points, now_and_then, recent_median, start_median
from sentinel.detectors.verdict import SkipReason, verdicts

LEVEL_POINTS = 20  # points of the start and of the present level
MARGIN_POINTS = 50  # points over which the margin ought to grow


@detector(
    judges=(Signal.LOGPS_CHOSEN,),
    uses=(Signal.LOGPS_REJECTED, Signal.PREFERENCE_MARGIN),
    history=History(recent=LEVEL_POINTS + MARGIN_POINTS, head=LEVEL_POINTS),
    cause=Cause.POLICY,
    evidence={
        "level": Measure("chosen answers now", Unit.SAME),
        "start": Measure("chosen answers at the start", Unit.SAME),
        "rejected": Measure("rejected answers now", Unit.SAME),
        "rejected_start": Measure("rejected answers at the start", Unit.SAME),
        "margin": Measure("margin now", Unit.NONE),
        "margin_before": Measure("margin before", Unit.NONE),
        "scatter": Measure("scatter of the points", Unit.SAME),
    },
    variants={
        "both": Variant(
            "the log-probability of chosen answers fell from {start:.4g} to {level:.4g} nats, that of"
            " rejected ones from {rejected_start:.4g} to {rejected:.4g}, and the margin no longer "
            "grows ({margin_before:.3g} to {margin:.3g})",
            ("L9",),
            (CRITICAL,),
        ),
        "chosen": Variant(
            "the log-probability of chosen answers fell from {start:.4g} to {level:.4g} nats while "
            "the margin grew to {margin:.3g}",
            ("L9",),
            (INFO,),
        ),
    },
)
def likelihood_displacement(
    points: pl.LazyFrame,
    *,
    fall: Annotated[float, "share of its start by which a log-probability falls far"] = 0.2,
    scatters: Annotated[float, "multiple of the scatter of the first points that a fall must exceed"] = 3.0,
    large_fall: Annotated[float, "fall, as a share of its start, that is worth knowing"] = 0.5,
) -> pl.LazyFrame:
    level, start, rejected, first = (
        pl.col(column) for column in ("level", "start", "rejected", "rejected_start")
    )
    scatter = pl.col(VALUE).filter(pl.col(INDEX) < LEVEL_POINTS).std().over(SERIES)
    grows = pl.col("margin") > pl.col("margin_before")
    both = (start - level > fall * start.abs()) & (start - level > scatters * pl.col("scatter"))
    both = both & (first - rejected > fall * first.abs()) & ~grows
    return verdicts(
        points.with_columns(
            **now_and_then(VALUE, LEVEL_POINTS, start=LEVEL_POINTS),
            scatter=scatter,
            rejected=recent_median(Signal.LOGPS_REJECTED, LEVEL_POINTS, at_least=1),
            rejected_start=start_median(Signal.LOGPS_REJECTED, LEVEL_POINTS),
            margin=recent_median(Signal.PREFERENCE_MARGIN, LEVEL_POINTS, at_least=1),
            margin_before=recent_median(
                Signal.PREFERENCE_MARGIN, LEVEL_POINTS, skip=MARGIN_POINTS, at_least=1
            ),
        ),
        judged={SkipReason.FEW_POINTS: has_points(LEVEL_POINTS + MARGIN_POINTS)},
        found={"both": both, "chosen": (start - level > large_fall * start.abs()) & grows},
        below=(start + level) / 2,
    )
