"""Finds the values of other signals beside rows: an as-of join, like `merge_asof` of pandas.

`sentinel.detectors.schema` says which points count. The points of all tags lie in one table, sorted by a
packed key: the slot of the tag in the high bits, the position in the stream in the low ones. So one
binary search finds the last point before each row, for all tags and all rows together.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from sentinel.detectors.schema import Every, First, Mean, Standing, Use
from sentinel.series.attempts import Points
from sentinel.series.buckets import Floats, Steps

_POINTS_PER_SLOT = 2
"""Points of a tag that later rows may need. The last point may have the step of a row that is to come."""

_START = ""
"""A series that never has a row, so that its sums count from the beginning of the attempt."""

_POSITION_BITS = 40
"""Bits of a key that hold a position in the stream. The bits above them hold a slot."""

_NO_SLOT = -1
"""The slot of a tag without points."""

_BEFORE_ALL = np.iinfo(np.int64).min
"""The key of a point before all others. It never counts, and keeps a table from being empty."""

Tags = Mapping[str, Sequence[str]]
"""The tags of each signal, in the order of their appearance."""


class Sum(msgspec.Struct, array_like=True):
    """The sum of a tag since the last row of a series. ``end`` is the number of the next point to add."""

    total: float = 0.0
    count: int = 0
    end: int = 0

    def extend(self, values: Floats, first: int, ends: Steps) -> tuple[Floats, Steps]:
        """Return totals and counts for rows that end before the points with the numbers ``ends``.

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


class JoinRequest(msgspec.Struct, frozen=True, gc=False):
    """Rows of one series, given by the points that complete them, and the columns to join to them."""

    series: str
    rows: Points
    uses: Sequence[Use]


class AsOfJoin(msgspec.Struct, array_like=True):
    """Points of one attempt that rows may ask for: a table with the columns ``key``, ``step`` and ``value``.

    A tag has two slots in the table: one for its last points, at most one for each step, and the next one
    for its first point.
    """

    # tag -> slot of its last points; its first is next
    slots: dict[str, int] = msgspec.field(default_factory=dict)
    key: Steps = msgspec.field(default_factory=lambda: np.array([_BEFORE_ALL]))
    step: Steps = msgspec.field(default_factory=lambda: np.zeros(1, np.int64))
    value: Floats = msgspec.field(default_factory=lambda: np.full(1, np.nan))
    # tag -> how many points it has, if it has sums
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    # tag -> series -> since its last row
    sums: dict[str, dict[str, Sum]] = msgspec.field(default_factory=dict)

    def extend(self, fresh: Mapping[str, Points], uses: Collection[Use], tags: Tags) -> None:
        """Add new points by tag, if one of the ``uses`` asks for them."""
        used_tags = dict.fromkeys(tag for use in uses for tag in _tags_of(use, tags))
        for use in uses:
            if isinstance(use, Mean):
                for tag in _tags_of(use, tags):
                    self.sums.setdefault(tag, {_START: Sum()})
        counts_before = {tag: len(self._values(tag)[1]) for tag in self.sums}
        new_points = [
            with_slot for tag in used_tags if tag in fresh for with_slot in self._with_slots(fresh[tag])
        ]
        if new_points:
            self._add_points(new_points)
        for tag, count in counts_before.items():
            self.counts[tag] = self.counts.get(tag, 0) + len(self._values(tag)[1]) - count

    def _with_slots(self, points: Points) -> Iterator[tuple[int, Points]]:
        """Yield the points of a tag with their slots."""
        if points.tag not in self.slots:
            self.slots[points.tag] = 2 * len(self.slots)
            yield self.slots[points.tag] + 1, points.take(slice(1))
        yield self.slots[points.tag], points

    def _add_points(self, new_points: Sequence[tuple[int, Points]]) -> None:
        """Put points into their slots. Of points with the same step only the first counts."""
        keys = [(slot << _POSITION_BITS) + points.position for slot, points in new_points]
        self.key = np.concatenate([self.key, *keys])
        self.step = np.concatenate([self.step, *(points.step for _, points in new_points)])
        self.value = np.concatenate([self.value, *(points.value for _, points in new_points)])
        self._take_rows(np.argsort(self.key, kind="stable"))
        slot = self.key >> _POSITION_BITS
        step = self.step
        repeats = (slot[1:] == slot[:-1]) & (step[1:] == step[:-1])
        if repeats.any():
            self._take_rows(np.append(0, 1 + np.flatnonzero(~repeats)))

    def _take_rows(self, which: NDArray[Any]) -> None:
        self.key = self.key[which]
        self.step = self.step[which]
        self.value = self.value[which]

    def _values(self, tag: str) -> tuple[int, Floats]:
        """Return the last points of a tag: where they begin in the table, and their values."""
        slot = self.slots.get(tag, _NO_SLOT)
        begin, end = self.key.searchsorted([slot << _POSITION_BITS, (slot + 1) << _POSITION_BITS])
        return int(begin), self.value[begin:end]

    def values(self, requests: Sequence[JoinRequest], tags: Tags) -> Iterator[list[Floats | None]]:
        """Yield the values beside the rows of each request, with NaN for null.

        There is one array for each use: a value for each row, or rows x tags for `Every`. It is None if the
        signal of the use was never logged.
        """
        if not requests:
            return
        uses = {use for request in requests for use in request.uses}
        slots = {use: self._slots(use, tags) for use in uses}
        index, is_match = self._last_before(
            [(r.rows, [slot for use in r.uses for slot in slots[use]]) for r in requests]
        )
        value = np.where(is_match, self.value[index], np.nan)
        end = 0
        for request in requests:
            columns: list[Floats | None] = []
            for use in request.uses:
                begin = end
                end += len(slots[use]) * len(request.rows)
                part = slice(begin, end)
                if isinstance(use, Mean):
                    for tag in _tags_of(use, tags):
                        value[part] = self._means(tag, request.series, index[part], is_match[part])
                if isinstance(use, Every):
                    columns.append(value[part].reshape(len(slots[use]), len(request.rows)).T)
                else:
                    columns.append(value[part] if slots[use] else None)
            yield columns

    def _slots(self, use: Use, tags: Tags) -> list[int]:
        """Return the slots of the points that a use asks for."""
        slots = [self.slots[tag] for tag in _tags_of(use, tags) if tag in self.slots]
        return [slot + 1 for slot in slots] if isinstance(use, First) else slots

    def _last_before(
        self, lookups: Sequence[tuple[Points, Sequence[int]]]
    ) -> tuple[Steps, NDArray[np.bool_]]:
        """Find the last point that counts at each slot for each row, and whether there is one.

        The answers come lookup by lookup, then slot by slot, then row by row. If points before a row have
        later steps than the row, none of them counts.
        """
        all_rows = [rows for rows, _ in lookups]
        offsets = np.cumsum([0, *map(len, all_rows)])[:-1]
        # A block for each slot of each lookup: the slot, where its rows begin in all rows, their number.
        blocks = [
            (slot, offset, len(rows))
            for (rows, slots), offset in zip(lookups, offsets, strict=True)
            for slot in slots
        ]
        block_slot, block_offset, block_size = np.array(blocks, np.int64).reshape(-1, 3).T
        slot = block_slot.repeat(block_size)
        row = np.arange(len(slot)) + (block_offset + block_size - block_size.cumsum()).repeat(block_size)
        position = np.concatenate([rows.position for rows in all_rows])[row]
        step = np.concatenate([rows.step for rows in all_rows])[row]
        index = self.key.searchsorted((slot << _POSITION_BITS) + position) - 1
        # A point of the row's own step does not count, but the one before it may.
        index -= self._is_at(index, slot) & (self.step[index] == step)
        return index, self._is_at(index, slot) & (self.step[index] < step)

    def _is_at(self, index: Steps, slot: Steps) -> NDArray[np.bool_]:
        """Return whether the points with these indices in the table are at these slots."""
        has_slot: NDArray[np.bool_] = self.key[index] >> _POSITION_BITS == slot
        return has_slot

    def _means(self, tag: str, series: str, index: Steps, is_match: NDArray[np.bool_]) -> Floats:
        """Return the mean of a tag since the previous row, for each row of a series.

        ``index`` is that of the last point of the tag before each row, if it ``is_match``.
        """
        begin, values = self._values(tag)
        sums = self.sums[tag]
        first_number = self.counts[tag] - len(values)  # number of the first point in the table
        since_row = sums.setdefault(series, replace(sums[_START]))
        ends = np.maximum.accumulate(np.maximum(first_number + index - begin + 1, since_row.end))
        totals, counts = since_row.extend(values, first_number, ends)
        return np.where(is_match & (counts > 0), totals / np.maximum(counts, 1), np.nan)

    def newest(self, tag: str) -> float | None:
        """Return the last value of a tag that a use asks for; None if the tag has no value."""
        if tag not in self.slots:
            return None
        _, values = self._values(tag)
        return float(values[-1]) if len(values) else None

    def trim(self) -> None:
        """Forget points that no later row can ask for."""
        nothing = np.empty(0, np.int64)
        for tag, sums in self.sums.items():
            _, values = self._values(tag)
            if len(values) > _POINTS_PER_SLOT:
                for since_row in sums.values():
                    since_row.extend(values, self.counts[tag] - len(values), nothing)
        slot = self.key >> _POSITION_BITS
        is_last = np.ones(len(self.key), bool)
        is_last[:-_POINTS_PER_SLOT] = slot[_POINTS_PER_SLOT:] != slot[:-_POINTS_PER_SLOT]
        self._take_rows(is_last)


def _tags_of(use: Use, tags: Tags) -> Sequence[str]:
    """Return the tags that a use asks for, in the order of their appearance."""
    signal_tags = tags.get(use.signal, ())
    if isinstance(use, Standing):
        return [use.tag(tag) for tag in signal_tags[:1]]
    return signal_tags if isinstance(use, Every) else signal_tags[:1]
