"""Detectors made from a person's own thresholds: a signal above, below or outside a bound, or a change of it.

Such a detector has no page in the catalogue and no guards. It judges what it is told to.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import polars as pl

from detectors.api import Detector, History, Maturity, Severity, Variant, detector
from detectors.evidence import Measure, Unit
from detectors.schema import SERIES, VALUE
from detectors.signals import Signal
from detectors.verdict import verdicts

LOOKS_BACK = 255
"""Rows in which a lowest or highest value is exact. Older ones are known by buckets of the whole attempt."""

_CLEAR = 10  # clean rows that end an incident, at least
_VARIANT = "broken"
_LOWEST, _HIGHEST = "lowest", "highest"
_EXTREMES: Mapping[str, Measure] = MappingProxyType(
    {_LOWEST: Measure("lowest so far", Unit.SAME), _HIGHEST: Measure("highest so far", Unit.SAME)}
)


SAYS: Mapping[str, Any] = MappingProxyType(
    {"value": 0.0, "step": 0, "tag": "", "signal": "", "lasted": "", _LOWEST: 0.0, _HIGHEST: 0.0}
)
"""What a message may hold, each with an example."""


@dataclass(frozen=True)
class Bounds:
    """When a value is wrong; None does not count. ``rises_by`` and ``falls_by`` compare it with its lowest
    and highest value of the attempt so far, in the unit of the signal.
    """

    above: float | None = None
    below: float | None = None
    rises_by: float | None = None
    falls_by: float | None = None

    @property
    def message(self) -> str:
        """What is said of a value that is wrong."""
        said = [
            *([f"above {self.above:g}"] if self.above is not None else ()),
            *([f"below {self.below:g}"] if self.below is not None else ()),
        ]
        if said:
            return f"{{tag}} is {{value:.4g}}, and should not be {' or '.join(said)}"
        if self.rises_by is not None:
            return f"{{tag}} rose from {{lowest:.4g}} to {{value:.4g}}, by more than {self.rises_by:g}"
        return f"{{tag}} fell from {{highest:.4g}} to {{value:.4g}}, by more than {self.falls_by:g}"

    @property
    def broken(self) -> pl.Expr:
        """Holds for the rows that are wrong."""
        value, never = pl.col(VALUE), pl.lit(False)
        return pl.any_horizontal(
            never if self.above is None else value > self.above,
            never if self.below is None else value < self.below,
            never if self.rises_by is None else value - pl.col(_LOWEST) > self.rises_by,
            never if self.falls_by is None else pl.col(_HIGHEST) - value > self.falls_by,
        )


def own_rule(
    name: str, signal: Signal, bounds: Bounds, for_points: int, severity: Severity, message: str
) -> Detector:
    """A detector called ``name`` that fires when ``for_points`` points in a row break the bounds.

    ``message`` is a format string as in `Variant`; empty for the usual one.
    """

    @detector(
        judges=(signal,),
        history=History(recent=LOOKS_BACK, coarse=True),
        variants={_VARIANT: Variant(message or bounds.message, ())},
        evidence=_EXTREMES,
        maturity=Maturity.STABLE,
        hold=for_points,
        clear=max(for_points, _CLEAR),
    )
    def rule(points: pl.LazyFrame) -> pl.LazyFrame:
        value = pl.col(VALUE)
        lowest = value.rolling_min(LOOKS_BACK + 1, min_samples=1).over(SERIES)
        highest = value.rolling_max(LOOKS_BACK + 1, min_samples=1).over(SERIES)
        extremes = points.with_columns(
            pl.min_horizontal(lowest, pl.col("coarse_low").list.min()).alias(_LOWEST),
            pl.max_horizontal(highest, pl.col("coarse_high").list.max()).alias(_HIGHEST),
        )
        return verdicts(extremes, found={_VARIANT: bounds.broken}, otherwise=severity)

    return replace(rule, name=name, page=f"{name}: a rule of your own, in sentinel.toml under `[[rules]]`.")
