"""Small curves for a table of runs. Those of a signal have one scale, so noise stays as small as it is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10
from sys import float_info

import numpy as np

# of a curve, in the units of its SVG
_WIDTH = 100
_HEIGHT = 24
_MARGIN = 1

_ORDINARY = 2.5, 97.5  # percentiles of all values of a signal; what lies beyond them is cut
_USUAL = 25.0, 75.0  # percentiles between which the middle half lies
_DIGITS = 2  # of the ends of a scale, so that it stays while the values move a little

_Lead = tuple[str, Sequence[float]]  # a tag and the values of one run


@dataclass(frozen=True)
class Scale:
    """From where to where the curves of a signal are drawn, and between what its middle half lies."""

    low: float
    high: float
    usual: tuple[float, float]

    def up(self, value: float) -> float:
        """Return how high a value is drawn, from 0 to 1."""
        span = self.high / 2 - self.low / 2  # halves, because the whole span may be too large for a number
        if not span:
            return 0.5
        return min(max((value / 2 - self.low / 2) / span, 0.0), 1.0)


@dataclass(frozen=True)
class Spark:
    """A small curve as SVG has it, the band in which the middle half of the signal's values lies, and both in
    words.
    """

    points: str
    top: float
    height: float
    says: str


def scales_of(leads: Iterable[_Lead]) -> Mapping[str, Scale]:
    """Return the scale of each signal, by the last part of its tag."""
    values: dict[str, list[Sequence[float]]] = {}
    for tag, curve in leads:
        if curve:
            values.setdefault(_signal(tag), []).append(curve)
    return {
        name: _scale(np.concatenate([np.asarray(curve) for curve in curves]))
        for name, curves in values.items()
    }


def spark(lead: _Lead, scales: Mapping[str, Scale]) -> Spark | None:
    """Return the small curve of a run; None if it has too few values."""
    tag, values = lead
    if len(values) < 2:
        return None
    scale = scales[_signal(tag)]
    within = _HEIGHT - 2 * _MARGIN

    def down(value: float) -> float:
        return _HEIGHT - _MARGIN - within * scale.up(value)

    points = (f"{i * _WIDTH / (len(values) - 1):.3g},{down(value):.3g}" for i, value in enumerate(values))
    low, high = scale.usual
    says = f"from {scale.low:.3g} to {scale.high:.3g} in all runs; the band holds the middle half"
    return Spark(" ".join(points), round(down(high), 1), round(max(down(low) - down(high), 0.5), 1), says)


def _signal(tag: str) -> str:
    return tag.rpartition("/")[2].casefold()


def _scale(values: "np.typing.NDArray[np.float64]") -> Scale:
    low, high, *middle = np.percentile(values, (*_ORDINARY, *_USUAL), method="nearest").tolist()
    span = high / 2 - low / 2
    # The ends of a scale are multiples of the step, which is 0 if there is no span.
    step = 10.0 ** (floor(log10(span)) - _DIGITS + 1) if span > 0 and isfinite(span) else 0.0
    usual = [round(end / step) * step if step else end for end in middle]
    if not step:
        return Scale(low, high, (usual[0], usual[1]))
    down = floor(low / step) * step
    up = -floor(-high / step) * step
    return Scale(max(down, -float_info.max), min(up, float_info.max), (usual[0], usual[1]))
