"""The values of other signals that stand beside rows; `detectors.context` says which points count."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from detectors.context import Every, First, Mean, Use
from sentinel.frames.coarse import Floats, Steps
from sentinel.frames.points import Points

_KEPT = 2
"""Points of a tag that later rows may ask for: the last one may have the step of a row yet to come."""

_START = ""
"""The series that never has a row: what is summed up there is since the attempt began."""


@dataclass
class Sum:
    """Values of a tag since the last row of a series; ``end`` is the number of the next point to add."""

    total: float = 0.0
    count: int = 0
    end: int = 0

    def extend(self, points: Points, first: int, ends: Steps) -> tuple[Floats, Steps]:
        """Totals and counts for rows that end before the points numbered ``ends``; the rest is kept.

        ``points`` are the tag's from number ``first`` on. The newest waits until there is a row behind it.
        """
        stop = max(first + len(points) - 1, self.end, *ends[-1:])
        number = np.arange(self.end, stop)
        row = np.searchsorted(ends, number, side="right")
        totals, counts = np.zeros(len(ends) + 1), np.bincount(row, minlength=len(ends) + 1)
        totals[0], counts[0] = self.total, counts[0] + self.count
        np.add.at(
            totals, row, points.value[number - first]
        )  # one by one: the order of additions is the log's
        self.total, self.count, self.end = float(totals[-1]), int(counts[-1]), int(stop)
        return totals[:-1], counts[:-1]


@dataclass
class Context:
    """What is kept of the tags of one attempt, so that rows may ask for it."""

    recent: dict[str, Points] = field(default_factory=dict)  # tag -> its last points, one of each step
    first: dict[str, Points] = field(default_factory=dict)  # tag -> its first point
    counts: dict[str, int] = field(default_factory=dict)  # tag -> how many points it has
    sums: dict[str, dict[str, Sum]] = field(default_factory=dict)  # tag -> series -> since its last row

    def extend(
        self, fresh: Mapping[str, Points], uses: Collection[Use], tags: Mapping[str, Sequence[str]]
    ) -> None:
        """Take in new points by tag, as far as the ``uses`` ask for them; ``tags`` are each signal's."""
        asked = {tag for use in uses for tag in _asked(use, tags)}
        for tag in asked & fresh.keys():
            earlier = self.recent.get(tag)
            points = self.recent[tag] = fresh[tag].after(earlier)
            self.counts[tag] = self.counts.get(tag, 0) + len(points) - (len(earlier) if earlier else 0)
            self.first.setdefault(tag, points.take([0]))
        for tag in {tag for use in uses if isinstance(use, Mean) for tag in _asked(use, tags)}:
            self.sums.setdefault(tag, {_START: Sum()})

    def beside(self, rows: Points, use: Use, tags: Mapping[str, Sequence[str]], series: str) -> Floats:
        """What stands beside each row of a series: rows x tags for `Every`, else one column. NaN is null."""
        found = [self._of_tag(rows, use, tag, series) for tag in _asked(use, tags) if tag in self.recent]
        if isinstance(use, Every):
            return np.column_stack([np.empty((len(rows), 0)), *found])
        return found[0] if found else np.full(len(rows), np.nan)

    def _of_tag(self, rows: Points, use: Use, tag: str, series: str) -> Floats:
        points = self.first[tag] if isinstance(use, First) else self.recent[tag]
        last, known = _before(rows, points)
        if not isinstance(use, Mean):
            return np.where(known, points.value[last], np.nan)
        sums, number = self.sums[tag], self.counts[tag] - len(points)
        since = sums.setdefault(series, replace(sums[_START]))
        ends = np.maximum.accumulate(np.maximum(number + last + 1, since.end))
        totals, counts = since.extend(points, number, ends)
        return np.where(known & (counts > 0), totals / np.maximum(counts, 1), np.nan)

    def trim(self) -> None:
        """Forget what no row to come can ask for."""
        nothing = np.empty(0, np.int64)
        for tag, points in self.recent.items():
            if len(points) > _KEPT:
                for since in self.sums.get(tag, {}).values():
                    since.extend(points, self.counts[tag] - len(points), nothing)
                self.recent[tag] = points.tail(_KEPT)

    def dump(self) -> list[Any]:
        """Everything `load` needs."""
        return [
            {tag: points.dump() for tag, points in self.recent.items()},
            {tag: points.dump() for tag, points in self.first.items()},
            self.counts,
            {tag: {key: list(astuple(one)) for key, one in sums.items()} for tag, sums in self.sums.items()},
        ]

    @classmethod
    def load(cls, state: list[Any]) -> Self:
        """Undo `dump`."""
        recent, first, counts, sums = state
        return cls(
            {tag: Points.load(points) for tag, points in recent.items()},
            {tag: Points.load(points) for tag, points in first.items()},
            counts,
            {tag: {key: Sum(*one) for key, one in of_tag.items()} for tag, of_tag in sums.items()},
        )


def _asked(use: Use, tags: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """The tags that a use asks for, in the order of their appearance."""
    of_signal = tags.get(use.signal, ())
    return of_signal if isinstance(use, Every) else of_signal[:1]


def _before(rows: Points, points: Points) -> tuple[Steps, NDArray[np.bool_]]:
    """For each row the place of the last point that counts beside it, and whether there is one.

    Where points that precede a row have later steps than it has, none is known to count.
    """
    last = np.searchsorted(points.position, rows.position) - 1
    last = np.where((last >= 0) & (points.step[last] == rows.step), last - 1, last)
    return last, (last >= 0) & (points.step[last] < rows.step)
