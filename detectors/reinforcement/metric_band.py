"""A metric of energy-based fine-tuning (EBFT) has left the band that healthy runs keep.

## What it catches
An alignment below 0.1, a diversity above 1, or a cross-feature-matching loss above 100, at 70 % of the last
20 points. It is over when fewer than 70 % of them lie outside the healthy band: above 0.3, below 0.1, and
below 10.

## Why it matters
EBFT rewards text whose features resemble those of the reference. With no alignment the policy learns nothing.
A high diversity says that all answers to a prompt resemble each other, so their rewards do not differ.

## What to do
Read ten completions of one prompt first. If they are near copies, raise the temperature or `diversity_coef`.
If they differ and the alignment stays low, try other `feature_layers` or another `embed_method`. If only the
cross-feature-matching loss is out, halve the learning rate.

## When it is wrong
The bands are those of one framework's guide, and a model or a text of another kind may have its own. So the
detector judges only if `enabled = true` stands under `[detectors.metric-band]`. The first 20 steps do not
count. For a band of your own, and for any other metric, write a rule with `outside` under `[[rules]]`.

## Source
Catalogue A-ebft-alignment, A-ebft-diversity, A-ebft-cfm, with the bands of Axolotl's documentation
(docs/ebft.qmd). Axolotl logs twice the mean similarity between a completion and the reference as alignment,
and twice the mean similarity between completions as diversity.
"""

from collections.abc import Mapping
from typing import Annotated, NamedTuple

import polars as pl

from sentinel.detectors.api import INFO, Cause, History, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import SERIES, SIGNAL, STEP, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import ROUNDING, has_points, is_of, recent_mean, recent_median
from sentinel.detectors.verdict import SkipReason, verdicts

NOW = 20  # points that are judged
EARLY = 20  # steps that do not count


class Band(NamedTuple):
    """Where a metric is healthy and where it is red; red lies below healthy if more is better."""

    healthy: float
    red: float


BANDS: Mapping[Signal, Band] = {
    Signal.EBFT_ALIGNMENT: Band(healthy=0.3, red=0.1),
    Signal.EBFT_DIVERSITY: Band(healthy=0.1, red=1.0),
    Signal.EBFT_CFM_LOSS: Band(healthy=10.0, red=100.0),
}


@detector(
    judges=tuple(BANDS),
    history=History(recent=NOW),
    enabled=False,
    cause=Cause.POLICY,
    evidence={
        "level": Measure("median of the last 20 points", Unit.SAME),
        "healthy": Measure("end of the healthy band", Unit.SAME),
        "out": Measure("of the last 20 points that are red", Unit.SHARE),
    },
    variants={
        "alignment": Variant(
            "EBFT alignment is {level:.3g}; healthy runs stand above {healthy:g}",
            ("A-ebft-alignment", "A-ebft-cfm"),
            (INFO,),
        ),
        "diversity": Variant(
            "EBFT diversity is {level:.3g}; healthy runs stay below {healthy:g}, and above 1 completions of "
            "a prompt are near copies",
            ("A-ebft-diversity", "A-entropy-collapse"),
            (INFO,),
        ),
        "cfm-loss": Variant(
            "the EBFT cross-feature-matching loss is {level:.3g}; healthy runs stay below {healthy:g}",
            ("A-ebft-cfm", "A-ebft-alignment"),
            (INFO,),
        ),
    },
)
def metric_band(
    points: pl.LazyFrame, *, most_out: Annotated[float, "share of the last 20 points that may be red"] = 0.7
) -> pl.LazyFrame:
    signal, healthy, red = (pl.col(column) for column in (SIGNAL, "healthy", "red"))
    banded = points.with_columns(
        healthy=signal.replace_strict({name: band.healthy for name, band in BANDS.items()}),
        red=signal.replace_strict({name: band.red for name, band in BANDS.items()}),
        level=recent_median(VALUE, NOW),
        counts_from=pl.col(STEP).shift(NOW - 1).over(SERIES),
    )
    worse = {
        name: pl.when(red > healthy).then(pl.col(VALUE) > end).otherwise(pl.col(VALUE) < end).cast(pl.Float64)
        for name, end in (("is_red", red), ("is_unhealthy", healthy))
    }
    measured = banded.with_columns(**worse).with_columns(
        out=recent_mean("is_red", NOW), off=recent_mean("is_unhealthy", NOW)
    )
    out = pl.col("out") > most_out - ROUNDING
    return verdicts(
        measured,
        judged={SkipReason.FEW_POINTS: has_points(NOW), SkipReason.EARLY: pl.col("counts_from") >= EARLY},
        found={
            "alignment": out & is_of(Signal.EBFT_ALIGNMENT),
            "diversity": out & is_of(Signal.EBFT_DIVERSITY),
            "cfm-loss": out & is_of(Signal.EBFT_CFM_LOSS),
        },
        lasts=pl.col("off") > most_out - ROUNDING,
    )
