"""Whole curves in bounded memory, for plots: of each few rows the lowest and the highest value."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentinel.sources.base import Chunk, of_each_tag, order_by_tag

BUCKETS = 512
"""The most groups of rows of a curve, each with two values at most."""

_MAX_CURVE_VALUES = 8 * BUCKETS  # of a curve, until they are thinned

MAX_CURVES = 256
"""The most curves that are kept of one run."""


class Point(NamedTuple):
    """A point of a curve. ``attempt`` counts from 0 how often the step has gone back."""

    attempt: int
    step: int
    value: float
    time: float  # seconds since the epoch; NaN where the log has no time


class _Values(NamedTuple):
    """The values that remain, in the order of their rows; ``bucket`` numbers groups of ``width`` rows."""

    width: int
    bucket: NDArray[np.int64]
    step: NDArray[np.int64]
    value: NDArray[np.float64]
    time: NDArray[np.float64]


class Curve:
    """The points of one tag, in the order in which they were logged.

    All groups hold as many rows, so every part of a run is drawn as finely. Values that are not finite are
    left out; ``lost_at`` is the step of the first of them. ``rows`` counts the others.
    """

    def __init__(self) -> None:
        self.lost_at: int | None = None
        self.rows = 0
        self._values = _Values(1, np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))

    def add(self, step: NDArray[np.int64], value: NDArray[np.float64], time: NDArray[np.float64]) -> None:
        """Add rows in the order of the log."""
        finite = np.isfinite(value)
        if self.lost_at is None and not finite.all():
            self.lost_at = int(step[~finite][0])
        step = step[finite]
        value = value[finite]
        time = time[finite]
        width, *columns = self._values
        bucket = (self.rows + np.arange(len(step))) // width
        self.rows += len(step)
        pairs = zip(columns, (bucket, step, value, time), strict=True)
        self._values = _Values(width, *(np.concatenate(pair) for pair in pairs))
        if len(self._values.value) > _MAX_CURVE_VALUES:
            self._values = self._thinned(BUCKETS)

    def points(self, most: int = 2 * BUCKETS) -> list[Point]:
        """Return at most this many points, an even number of them."""
        values = self._thinned(max(most // 2, 1))
        attempt = np.cumsum(np.diff(values.step, prepend=values.step[:1]) < 0)
        columns = (column.tolist() for column in (attempt, values.step, values.value, values.time))
        return [Point(*row) for row in zip(*columns, strict=True)]

    @property
    def only_value(self) -> float | None:
        """The one value that all rows have; None if there are more, none, or one that is not finite."""
        values = np.unique(self._values.value)
        return float(values[0]) if len(values) == 1 and self.lost_at is None else None

    def _thinned(self, buckets: int) -> _Values:
        """Return the lowest and the highest value of each group of rows, of at most this many groups."""
        width, bucket, step, value, time = self._values
        while self.rows > buckets * width:
            width *= 2
            bucket = bucket // 2
        order = np.lexsort((value, bucket))
        begins = np.flatnonzero(np.diff(bucket[order], prepend=-1))
        ends = np.append(begins[1:], len(order)) - 1
        rows = np.unique(np.concatenate([order[begins], order[ends]])) if len(order) else order
        return _Values(width, bucket[rows], step[rows], value[rows], time[rows])


class Curves:
    """The curves of a run by tag; of a run with very many tags, the first ones."""

    def __init__(self) -> None:
        self.of: dict[str, Curve] = {}

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Add the points of a poll."""
        for tag, rows in by_tag(chunks):
            if tag in self.of or len(self.of) < MAX_CURVES:
                self.of.setdefault(tag, Curve()).add(rows.step, rows.value, rows.time)


class CurvePoints(NamedTuple):
    """Points of one tag, in the order of the log."""

    step: NDArray[np.int64]
    value: NDArray[np.float64]
    time: NDArray[np.float64]  # seconds since the epoch; NaN where the log has no time


def by_tag(chunks: Iterable[Chunk]) -> Iterator[tuple[str, CurvePoints]]:
    for chunk in (chunk.flat for chunk in chunks if chunk.value.size):
        order = order_by_tag(chunk.tag)
        tag = chunk.tag[order]
        step = chunk.step[order]
        value = chunk.value[order]
        time = chunk.time[order]
        for part in of_each_tag(tag):
            yield chunk.tags[tag[part.start]], CurvePoints(step[part], value[part], time[part])
