"""Draws a series in one line of text, with marks below it."""

import math
from collections.abc import Sequence

_SPARKLINE_BARS = "▁▂▃▄▅▆▇█"
LOG_RATIO = 1000.0
"""From this ratio of its ends on, which are three decades, a positive series is drawn by its logarithm."""


def sparkline(curve_values: Sequence[float]) -> str:
    """Draw one bar for each value, a gap for NaN.

    A positive series that spans decades is drawn by its logarithm.
    """
    finite = [value for value in curve_values if not math.isnan(value)]
    if not finite:
        return ""
    low = min(finite)
    high = max(finite)
    if low > 0 and high / low >= LOG_RATIO:
        return sparkline([math.log(value) for value in curve_values])
    top = len(_SPARKLINE_BARS) - 1
    span = high / 2 - low / 2  # halves, because the whole span may be too large for a number

    def bar(value: float) -> str:
        if math.isnan(value):
            return " "
        return _SPARKLINE_BARS[round((value / 2 - low / 2) / span * top) if span else 0]

    return "".join(map(bar, curve_values))


def marks(first_steps: Sequence[int], steps: Sequence[tuple[int, str]]) -> str:
    """Return a line as long as the sparkline, with each mark below the bucket of its step.

    ``first_steps`` are those with which the buckets begin.
    """
    mark_line = [" "] * len(first_steps)
    for step, mark in steps:
        column = sum(first <= step for first in first_steps) - 1
        mark_line[max(column, 0)] = mark
    return "".join(mark_line).rstrip()
