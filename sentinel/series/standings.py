"""How outcomes of an attempt stand, as points that rows may ask for.

`sentinel.detectors.reading.standing` says what is read, and when.
"""

import msgspec
import numpy as np

from sentinel.detectors.reading.roles import PARTS
from sentinel.detectors.reading.standing import FIRST_LOOK, next_look, standing
from sentinel.series.attempts import Points
from sentinel.series.buckets import Buckets


def _no_buckets() -> Buckets:
    return Buckets(extremes=False)


class Standing(msgspec.Struct, array_like=True):
    """The course of one tag in an attempt, and the number of its points at the next look."""

    buckets: Buckets = msgspec.field(default_factory=_no_buckets)
    look: int = FIRST_LOOK

    def extend(self, points: Points, tag: str) -> Points:
        """Add points, and return how the series stands at each look among them, as points of another tag."""
        higher_is_better = PARTS[points.signal].higher_is_better
        begin = 0
        indices = []
        values = []
        while self.look - self.buckets.rows <= len(points) - begin:
            end = begin + self.look - self.buckets.rows
            self.buckets.push(points.value[begin:end], points.step[begin:end])
            indices.append(end - 1)
            values.append(standing(self.buckets.mean, higher_is_better=higher_is_better))
            self.look = next_look(self.look)
            begin = end
        self.buckets.push(points.value[begin:], points.step[begin:])
        kept_rows = np.array(indices, np.int64)
        standing_points = points.take(kept_rows).with_value(np.array(values))
        return Points(
            tag,
            standing_points.signal,
            standing_points.step,
            standing_points.time,
            standing_points.position,
            standing_points.value,
        )
