"""Finds the values of other signals beside rows. `sentinel.detectors.schema` says which points count."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from itertools import chain
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.detectors.schema import Every, First, Mean, Standing, Use
from sentinel.series.attempts import Points
from sentinel.series.buckets import Floats, Steps

_KEPT = 2
"""How many points of a tag later rows may need. The last point may have the step of a row that is to come."""

_START = ""
"""A series that never has a row, so that its sums count from the beginning of the attempt."""

_POSITION_BITS = 40
"""Bits of a key that hold a position in the stream. The bits above them hold a place."""

_NOWHERE = -1
"""The place of a tag without points."""

_BEFORE_ALL = np.iinfo(np.int64).min
"""The key of a point before all others. It never counts, and keeps a table from being empty."""

Tags = Mapping[str, Sequence[str]]
"""The tags of each signal, in the order of their appearance."""


@dataclass
class Sum:
    """The sum of a tag since the last row of a series. ``end`` is the number of the next point to add."""

    total: float = 0.0
    count: int = 0
    end: int = 0

    def extend(self, values: Floats, first: int, ends: Steps) -> tuple[Floats, Steps]:
        """Totals and counts for rows that end before the points with the numbers ``ends``.

        ``values`` are those of the tag from point number ``first`` on. The newest values wait for their row.
        """
        stop = max(first + len(values) - 1, self.end, *ends[-1:])
        number = np.arange(self.end, stop)
        row = np.searchsorted(ends, number, side="right")
        totals = np.zeros(len(ends) + 1)
        counts = np.bincount(row, minlength=len(ends) + 1)
        totals[0] = self.total
        counts[0] = counts[0] + self.count
        np.add.at(totals, row, values[number - first])  # one by one: the order of additions is the log's
        self.total = float(totals[-1])
        self.count = int(counts[-1])
        self.end = int(stop)
        return totals[:-1], counts[:-1]


class Asked(msgspec.Struct, frozen=True, gc=False):
    """Rows of one series, given by the points that complete them, and what they ask for."""

    series: str
    rows: Points
    uses: Sequence[Use]


@dataclass(slots=True)
class AsOfJoin:
    """Points of one attempt that rows may ask for.

    A tag has two places in the table: one for its last points, at most one for each step, and one for its
    first point. ``key``, ``step`` and ``value`` hold all points in the order of their places and positions,
    so that one search finds the points for all rows.
    """

    places: dict[str, int] = field(default_factory=dict)  # tag -> place of its last points; its first is next
    key: Steps = field(default_factory=lambda: np.array([_BEFORE_ALL]))
    step: Steps = field(default_factory=lambda: np.zeros(1, np.int64))
    value: Floats = field(default_factory=lambda: np.full(1, np.nan))
    counts: dict[str, int] = field(default_factory=dict)  # tag -> how many points it has, if it has sums
    sums: dict[str, dict[str, Sum]] = field(default_factory=dict)  # tag -> series -> since its last row

    def extend(self, fresh: Mapping[str, Points], uses: Collection[Use], tags: Tags) -> None:
        """Add new points by tag, if one of the ``uses`` asks for them."""
        asked = dict.fromkeys(tag for use in uses for tag in _asked(use, tags))
        for tag in (tag for use in uses if isinstance(use, Mean) for tag in _asked(use, tags)):
            self.sums.setdefault(tag, {_START: Sum()})
        before = {tag: len(self._values(tag)[1]) for tag in self.sums}
        new = [part for tag in asked if tag in fresh for part in self._placed(fresh[tag])]
        if new:
            self._add(new)
        for tag, count in before.items():
            self.counts[tag] = self.counts.get(tag, 0) + len(self._values(tag)[1]) - count

    def _placed(self, points: Points) -> Iterator[tuple[int, Points]]:
        """Yield the points of a tag with their places."""
        if points.tag not in self.places:
            self.places[points.tag] = 2 * len(self.places)
            yield self.places[points.tag] + 1, points.take(slice(1))
        yield self.places[points.tag], points

    def _add(self, new: Sequence[tuple[int, Points]]) -> None:
        """Put points into their places. Of points with the same step only the first counts."""
        keys = [(place << _POSITION_BITS) + points.position for place, points in new]
        self.key = np.concatenate([self.key, *keys])
        self.step = np.concatenate([self.step, *(points.step for _, points in new)])
        self.value = np.concatenate([self.value, *(points.value for _, points in new)])
        self._take(np.argsort(self.key, kind="stable"))
        place = self.key >> _POSITION_BITS
        step = self.step
        repeats = (place[1:] == place[:-1]) & (step[1:] == step[:-1])
        if repeats.any():
            self._take(np.append(0, 1 + np.flatnonzero(~repeats)))

    def _take(self, which: NDArray[Any]) -> None:
        self.key = self.key[which]
        self.step = self.step[which]
        self.value = self.value[which]

    def _values(self, tag: str) -> tuple[int, Floats]:
        """Return the last points of a tag: where they begin in the table, and their values."""
        place = self.places.get(tag, _NOWHERE)
        begin, end = self.key.searchsorted([place << _POSITION_BITS, (place + 1) << _POSITION_BITS])
        return int(begin), self.value[begin:end]

    def values(self, asked: Sequence[Asked], tags: Tags) -> Iterator[list[Floats | None]]:
        """Yield the values beside the rows of some series, with NaN for null.

        There is one array for each use: a value for each row, or rows x tags for `Every`. It is None if the
        signal of the use was never logged.
        """
        if not asked:
            return
        of_use = {use: self._places(use, tags) for use in {use for request in asked for use in request.uses}}
        places = [[of_use[use] for use in request.uses] for request in asked]
        last, known = self._before(
            [(request.rows, [*chain(*own)]) for request, own in zip(asked, places, strict=True)]
        )
        value = np.where(known, self.value[last], np.nan)
        begin = 0
        for request, own in zip(asked, places, strict=True):
            values: list[Floats | None] = []
            for use, them in zip(request.uses, own, strict=True):
                part = slice(begin, begin := begin + len(them) * len(request.rows))
                for tag in _asked(use, tags) if isinstance(use, Mean) else ():
                    value[part] = self._means(tag, request.series, last[part], known[part])
                if isinstance(use, Every):
                    values.append(value[part].reshape(len(them), len(request.rows)).T)
                else:
                    values.append(value[part] if them else None)
            yield values

    def _places(self, use: Use, tags: Tags) -> list[int]:
        """Return the places of the points that a use asks for."""
        places = [self.places[tag] for tag in _asked(use, tags) if tag in self.places]
        return [place + 1 for place in places] if isinstance(use, First) else places

    def _before(self, asked: Sequence[tuple[Points, Sequence[int]]]) -> tuple[Steps, NDArray[np.bool_]]:
        """Return the last point that counts, for each place and each row that asks for it, and whether there
        is one.

        If points before a row have later steps than the row, none of them counts.
        """
        rows = [rows for rows, _ in asked]
        begins = np.cumsum([0, *map(len, rows)])
        pairs = [(place, begins[i], len(rows[i])) for i, (_, places) in enumerate(asked) for place in places]
        of_pair, begin, size = np.array(pairs, np.int64).reshape(-1, 3).T
        place = of_pair.repeat(size)
        row = np.arange(len(place)) + (begin + size - size.cumsum()).repeat(size)
        position = np.concatenate([part.position for part in rows])[row]
        step = np.concatenate([part.step for part in rows])[row]
        last = self.key.searchsorted((place << _POSITION_BITS) + position) - 1
        last -= self._is_at(last, place) & (self.step[last] == step)
        return last, self._is_at(last, place) & (self.step[last] < step)

    def _is_at(self, points: Steps, place: Steps) -> NDArray[np.bool_]:
        is_there: NDArray[np.bool_] = self.key[points] >> _POSITION_BITS == place
        return is_there

    def _means(self, tag: str, series: str, last: Steps, known: NDArray[np.bool_]) -> Floats:
        """Return the mean of a tag since the previous row, for each row of a series."""
        begin, values = self._values(tag)
        sums = self.sums[tag]
        number = self.counts[tag] - len(values)
        since = sums.setdefault(series, replace(sums[_START]))
        ends = np.maximum.accumulate(np.maximum(number + last - begin + 1, since.end))
        totals, counts = since.extend(values, number, ends)
        return np.where(known & (counts > 0), totals / np.maximum(counts, 1), np.nan)

    def newest(self, tag: str) -> float | None:
        """Return the last value of a tag that a use asks for; None if the tag has no value."""
        if tag not in self.places:
            return None
        _, values = self._values(tag)
        return float(values[-1]) if len(values) else None

    def trim(self) -> None:
        """Forget points that no later row can ask for."""
        nothing = np.empty(0, np.int64)
        for tag, sums in self.sums.items():
            _, values = self._values(tag)
            for since in sums.values() if len(values) > _KEPT else ():
                since.extend(values, self.counts[tag] - len(values), nothing)
        place = self.key >> _POSITION_BITS
        last = np.ones(len(self.key), bool)
        last[:-_KEPT] = place[_KEPT:] != place[:-_KEPT]
        self._take(last)

    def dump(self) -> list[Any]:
        """Return everything `load` needs."""
        table = self.key, self.step, self.value
        sums = {
            tag: {key: list(astuple(mean)) for key, mean in of_tag.items()}
            for tag, of_tag in self.sums.items()
        }
        return [self.places, *table, self.counts, sums]

    @classmethod
    def load(cls, state: Sequence[Any]) -> Self:
        """Undo `dump`."""
        places, key, step, value, counts, sums = state
        restored = {tag: {k: Sum(*mean) for k, mean in of_tag.items()} for tag, of_tag in sums.items()}
        return cls(places, key, step, value, counts, restored)


def _asked(use: Use, tags: Tags) -> Sequence[str]:
    """Return the tags that a use asks for, in the order of their appearance."""
    of_signal = tags.get(use.signal, ())
    if isinstance(use, Standing):
        return [use.tag(tag) for tag in of_signal[:1]]
    return of_signal if isinstance(use, Every) else of_signal[:1]
