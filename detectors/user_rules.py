"""Detectors made from a person's own thresholds: a signal above, below or outside a bound, a change of it, or
its absence.

Such a detector has no page in the catalogue and no guards. It judges what it is told to.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import polars as pl
from msgspec.structs import replace

from sentinel.detectors.api import Detector, History, Maturity, Severity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.run_checks import Expected, RunCheck, RunFinding, RunView, run_check
from sentinel.detectors.schema import SERIES, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.stats import of_buckets
from sentinel.detectors.verdict import verdicts

EXACT_ROWS = 255
"""Rows in which a lowest or highest value is exact. Older ones are known by buckets of the whole attempt."""

_MIN_CLEAR_ROWS = 10  # clean rows that end an incident, at least
_VARIANT = "broken"
_LOWEST = "lowest"
_HIGHEST = "highest"
_MISSING_SECONDS = "missing_seconds"
_LAST_STEP = "last_step"
_EXTREMES: Mapping[str, Measure] = MappingProxyType(
    {_LOWEST: Measure("lowest so far", Unit.SAME), _HIGHEST: Measure("highest so far", Unit.SAME)}
)
_ABSENCE: Mapping[str, Measure] = MappingProxyType(
    {
        _MISSING_SECONDS: Measure("not logged for", Unit.SECONDS),
        _LAST_STEP: Measure("last logged at", Unit.STEP),
    }
)

EVIDENCE: Mapping[str, Measure] = MappingProxyType({**_EXTREMES, **_ABSENCE})
"""What a person sees beside the finding of any such detector."""

SAYS: Mapping[str, Any] = MappingProxyType(
    {"value": 0.0, "step": 0, "tag": "", "signal": "", "lasted": "", _LOWEST: 0.0, _HIGHEST: 0.0}
)
"""What the message of a rule about values may hold, each with an example."""

SAYS_OF_ABSENCE: Mapping[str, Any] = MappingProxyType(
    {"tag": "", "step": 0, "lasted": "", _LAST_STEP: 0, _MISSING_SECONDS: 0.0}
)
"""The same for a rule about tags that are missing."""


class Bounds(msgspec.Struct, frozen=True):
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
        texts = [
            *([f"above {self.above:g}"] if self.above is not None else ()),
            *([f"below {self.below:g}"] if self.below is not None else ()),
        ]
        if texts:
            return f"{{tag}} is {{value:.4g}}, and should not be {' or '.join(texts)}"
        if self.rises_by is not None:
            return f"{{tag}} rose from {{lowest:.4g}} to {{value:.4g}}, by more than {self.rises_by:g}"
        return f"{{tag}} fell from {{highest:.4g}} to {{value:.4g}}, by more than {self.falls_by:g}"

    @property
    def broken(self) -> pl.Expr:
        """Holds for the rows that are wrong."""
        value = pl.col(VALUE)
        never = pl.lit(False)
        return pl.any_horizontal(
            never if self.above is None else value > self.above,
            never if self.below is None else value < self.below,
            never if self.rises_by is None else value - pl.col(_LOWEST) > self.rises_by,
            never if self.falls_by is None else pl.col(_HIGHEST) - value > self.falls_by,
        )


def own_rule(
    name: str, signal: Signal, bounds: Bounds, for_points: int, severity: Severity, message: str
) -> Detector:
    """Return a detector called ``name`` that fires when ``for_points`` points in a row break the bounds.

    ``message`` is a format string as in `Variant`; empty for the usual one.
    """

    @detector(
        judges=(signal,),
        history=History(recent=EXACT_ROWS, coarse=True),
        variants={_VARIANT: Variant(message or bounds.message, (), (severity,))},
        evidence=_EXTREMES,
        maturity=Maturity.STABLE,
        hold=for_points,
        clear=max(for_points, _MIN_CLEAR_ROWS),
    )
    def rule(points: pl.LazyFrame) -> pl.LazyFrame:
        value = pl.col(VALUE)
        lowest = value.rolling_min(EXACT_ROWS + 1, min_samples=1).over(SERIES)
        highest = value.rolling_max(EXACT_ROWS + 1, min_samples=1).over(SERIES)
        extremes = points.with_columns(
            pl.min_horizontal(lowest, of_buckets(pl.col("coarse_low").list.min())).alias(_LOWEST),
            pl.max_horizontal(highest, of_buckets(pl.col("coarse_high").list.max())).alias(_HIGHEST),
        )
        return verdicts(extremes, found={_VARIANT: bounds.broken})

    return replace(rule, name=name, doc=_doc(name))


def own_absence(name: str, expected: Expected, severity: Severity, message: str) -> RunCheck:
    """Return a run check called ``name`` that fires when a tag is missing for longer than expected.

    It ends when the tag is logged again. ``message`` is a format string; empty for the usual one.
    """
    usual = "{tag} was last logged at step {last_step}, {missing_seconds:duration} ago, and the run goes on"

    @run_check(
        reads=f"when `{expected.signal}` was last logged",
        expects=expected,
        evidence=_ABSENCE,
        variants={_VARIANT: Variant(message or usual, (), (severity,))},
        maturity=Maturity.STABLE,
    )
    def rule(run: RunView) -> Iterator[RunFinding]:
        for absence in run.absences:
            if absence.rule == expected:
                yield RunFinding(
                    index=absence.index,
                    variant=None if absence.over else _VARIANT,
                    tag=absence.tag,
                    step=absence.step,
                    time=absence.time,
                    onset_step=absence.last_step,
                    onset_time=absence.last_time,
                    evidence={_MISSING_SECONDS: absence.seconds, _LAST_STEP: absence.last_step},
                )

    return replace(rule, name=name, doc=_doc(name))


def _doc(name: str) -> str:
    return f"{name}: a rule of your own, in sentinel.toml under `[[rules]]`."
