"""The days (UTC) on which a log has points, counted from the epoch.

Days that follow one another make a span, so a log takes as many spans as it has pauses of a day.
"""

from bisect import bisect_right
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

DAY_SECONDS = 86400.0
_MAX_DAY = 100_000  # in the year 2243: a clock that is further off is broken, and its days must be few
_MAX_DAY_SPANS = 100  # of a log, which is a pause each week for two years

Span = tuple[int, int]
"""The first and the last of some days that follow one another."""


def day_of(time: float) -> int:
    """Return the day of a time in seconds since the epoch."""
    return int(min(max(time // DAY_SECONDS, 0), _MAX_DAY))


def spans_with(spans: Sequence[Span], times: NDArray[np.float64]) -> list[Span]:
    """Add the days of finite times to spans, and return the spans in order.

    If they are too many, the first ones become one, with the pauses between them.
    """
    days = np.clip(times // DAY_SECONDS, 0, _MAX_DAY)
    low = int(days.min())
    high = int(days.max())
    if spans and spans[-1][0] <= low and high <= spans[-1][1]:
        return [*spans]
    new_days = ((day, day) for day in np.unique(days).astype(int).tolist())
    merged: list[Span] = []
    for first, last in sorted([*spans, *new_days]):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    if len(merged) > _MAX_DAY_SPANS:
        merged[: 1 - _MAX_DAY_SPANS] = [(merged[0][0], merged[-_MAX_DAY_SPANS][1])]
    return merged


class Extent(msgspec.Struct, frozen=True):
    """When a log has points, by its own clock: its first and its last time, and the days with points.

    The times are None without a clock. Without ``spans`` all days between the times have points.
    """

    first: float | None = None
    last: float | None = None
    spans: Sequence[Span] = ()

    @property
    def whole(self) -> Sequence[Span]:
        """The spans of its days, in order; none without a clock."""
        if self.spans or self.first is None or self.last is None:
            return self.spans
        return [(day_of(self.first), day_of(self.last))]

    def days(self, since: float = 0.0) -> list[int]:
        """Return its days in order, from the day of a time on, in seconds since the epoch."""
        begin = day_of(since)
        return [day for first, last in self.whole for day in range(max(first, begin), last + 1)]


def last_before(days: Sequence[int], day: int) -> int:
    """Return the last of some days, which are in order, that is not after ``day``; else the first one."""
    return days[max(bisect_right(days, day) - 1, 0)]
