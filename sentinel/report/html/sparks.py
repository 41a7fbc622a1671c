"""Small curves for a table of runs. Those of a tag in runs of one training program have one scale, so noise
stays as small as it is.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import floor, isfinite, log10
from sys import float_info

import msgspec
import numpy as np

from sentinel.report.sparkline import LOG_RATIO
from sentinel.series.thumbnails import Lead

# of a curve, in the units of its SVG
_SPARK_WIDTH = 100
_SPARK_HEIGHT = 24
_SPARK_MARGIN = 1

_ORDINARY = 2.5, 97.5  # percentiles of all values of a signal; what lies beyond them is cut
_MIDDLE_HALF = 25.0, 75.0  # percentiles between which the middle half lies
_SCALE_DIGITS = 2  # of the ends of a scale, so that it stays while the values move a little


class Scale(msgspec.Struct, frozen=True):
    """From where to where curves are drawn, and between what their middle half lies. All four are powers of
    ten if it is logarithmic.
    """

    low: float
    high: float
    usual: tuple[float, float]
    is_logarithmic: bool = False

    def up(self, curve_value: float) -> float:
        """Return how high a value is drawn, from 0 to 1."""
        if self.is_logarithmic:
            curve_value = log10(max(curve_value, float_info.min))
        return self._share(curve_value)

    @property
    def band(self) -> tuple[float, float]:
        """How high the ends of the middle half are drawn."""
        low, high = self.usual
        return self._share(low), self._share(high)

    def __str__(self) -> str:
        low, high = (
            10 ** min(end, float_info.max_10_exp) if self.is_logarithmic else end
            for end in (self.low, self.high)
        )
        return f"from {low:.3g} to {high:.3g}{', logarithmic' if self.is_logarithmic else ''}"

    def _share(self, curve_value: float) -> float:
        span = self.high / 2 - self.low / 2  # halves, because the whole span may be too large for a number
        if not span:
            return 0.5
        return min(max((curve_value / 2 - self.low / 2) / span, 0.0), 1.0)


class Spark(msgspec.Struct, frozen=True):
    """A small curve as SVG has it, the band in which the middle half of the values lies, where the trouble of
    the run began (None without one), and the scale in words.
    """

    points: str
    top: float
    height: float
    onset: float | None
    says: str


Scales = Mapping[Hashable, Scale]


def scales_of(leads: Iterable[Lead]) -> Scales:
    """Return the scale of each tag of each training program."""
    curves_by_kind: dict[Hashable, list[Sequence[float]]] = {}
    for lead in leads:
        if lead.values:
            curves_by_kind.setdefault(_curve_kind(lead), []).append(lead.values)
    return {
        kind: _scale(np.concatenate([np.asarray(curve) for curve in curves]))
        for kind, curves in curves_by_kind.items()
    }


def spark(lead: Lead, scales: Scales) -> Spark | None:
    """Return the small curve of a run; None if it has too few values."""
    if len(lead.values) < 2:
        return None
    scale = scales[_curve_kind(lead)]
    across_points = [_across(lead, index) for index in range(len(lead.values))]
    heights = [_down(scale.up(value)) for value in lead.values]
    points = (f"{across:.3g},{down:.3g}" for across, down in zip(across_points, heights, strict=True))
    low, high = map(_down, scale.band)
    return Spark(
        points=" ".join(points),
        top=round(high, 1),
        height=round(max(low - high, 0.5), 1),
        onset=None if lead.onset is None else round(_across(lead, lead.onset), 1),
        says=f"{scale} in all runs that log the same; the band holds the middle half",
    )


def _across(lead: Lead, point_index: int) -> float:
    """Return how far right a value stands."""
    return point_index * _SPARK_WIDTH / (len(lead.values) - 1)


def _down(up: float) -> float:
    """Return how far below the upper edge stands what is so high, from 0 to 1."""
    return _SPARK_HEIGHT - _SPARK_MARGIN - (_SPARK_HEIGHT - 2 * _SPARK_MARGIN) * up


def _curve_kind(lead: Lead) -> Hashable:
    return lead.program, lead.tag.rpartition("/")[2].casefold()


def _scale(curve_values: "np.typing.NDArray[np.float64]") -> Scale:
    low, high = np.percentile(curve_values, _ORDINARY, method="nearest").tolist()
    if curve_values.min() > 0 and high / low >= LOG_RATIO:
        return _rounded(np.log10(curve_values), is_logarithmic=True)
    return _rounded(curve_values, is_logarithmic=False)


def _rounded(curve_values: "np.typing.NDArray[np.float64]", *, is_logarithmic: bool) -> Scale:
    """Return a scale whose ends move seldom."""
    low, high, *middle = np.percentile(curve_values, (*_ORDINARY, *_MIDDLE_HALF), method="nearest").tolist()
    span = high / 2 - low / 2
    # The ends of a scale are multiples of the step, which is 0 if there is no span.
    step = 10.0 ** (floor(log10(span)) - _SCALE_DIGITS + 1) if span > 0 and isfinite(span) else 0.0
    usual = [round(end / step) * step if step else end for end in middle]
    if not step:
        return Scale(low, high, (usual[0], usual[1]), is_logarithmic)
    down = floor(low / step) * step
    up = -floor(-high / step) * step
    ends = (max(down, -float_info.max), min(up, float_info.max))
    return Scale(*ends, (usual[0], usual[1]), is_logarithmic)
