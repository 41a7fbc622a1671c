"""A series in one line of text, with marks under it."""

import math
from collections.abc import Sequence

from sentinel.frames.coarse import Coarse

_BARS = "▁▂▃▄▅▆▇█"
_LOG_RATIO = 1000.0  # above this, a positive series is drawn by its logarithm


def sparkline(values: Sequence[float]) -> str:
    """One bar a value, lowest to highest, and a gap for NaN; by logarithm where it spans decades."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return ""
    low, high = min(known), max(known)
    if low > 0 and high / low > _LOG_RATIO:
        return sparkline([math.log(value) for value in values])
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(" " if math.isnan(v) else _BARS[round((v - low) * scale)] for v in values)


def marks(coarse: Coarse, steps: Sequence[tuple[int, str]]) -> str:
    """A line of the sparkline's length with each mark under the bucket that its step lies in."""
    first_steps = coarse.step[: coarse.buckets].tolist()
    line = [" "] * len(first_steps)
    for step, mark in steps:
        at = sum(first <= step for first in first_steps) - 1
        line[max(at, 0)] = mark
    return "".join(line).rstrip()
