"""Rows of a series, and the last ones of a growing series in little memory."""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import DTypeLike, NDArray

from sentinel.series.buckets import Floats, Steps

SPARE = 8
"""How many more rows a `RowBuffer` has room for. With more room it is copied less often."""

_TIME = 1  # index of the times among the arrays; seconds since the epoch need 64 bits

_HALF: dict[str, DTypeLike] = {"i": np.int32, "f": np.float32}
"""Forms of half the size. TensorBoard logs values of 32 bits, and few trainings have 2**31 steps."""

_VALUE_COLUMNS = 2  # numbers of a row, time and value, that precede the columns beside the value


class Rows(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Consecutive rows, in two arrays, because each array costs time whenever a row is added.

    ``step`` is the step of each row, as the framework counts. ``numbers`` holds its time, the judged value,
    and the ``columns`` beside that, numbered as in `SeriesSpec.columns`, with NaN where a value is not known.
    Columns of which no value is known are left out, because most runs log few of the signals that a spec asks
    for. ``lists`` holds what is a list beside a row: rows x length. The length grows as the run goes on.
    """

    step: Steps
    numbers: Floats
    columns: tuple[int, ...] = ()
    lists: tuple[Floats, ...] = ()

    @property
    def time(self) -> Floats:
        """Seconds since the epoch; NaN where the log has none."""
        return self.numbers[:, 0]

    @property
    def value(self) -> Floats:
        """The judged value."""
        return self.numbers[:, 1]

    def column(self, index: int) -> Floats:
        """Return a column beside the value; NaN where it is not known."""
        return self.with_columns((index,)).numbers[:, _VALUE_COLUMNS]

    def with_columns(self, columns: tuple[int, ...]) -> "Rows":
        """Return the same rows with these columns, in this order."""
        if columns == self.columns:
            return self
        numbers = np.full((len(self), _VALUE_COLUMNS + len(columns)), np.nan)
        numbers[:, :_VALUE_COLUMNS] = self.numbers[:, :_VALUE_COLUMNS]
        numbers_column = {index: i for i, index in enumerate(self.columns, _VALUE_COLUMNS)}
        for i, index in enumerate(columns, _VALUE_COLUMNS):
            if index in numbers_column:
                numbers[:, i] = self.numbers[:, numbers_column[index]]
        return Rows(self.step, numbers, columns, self.lists)

    def __len__(self) -> int:
        return len(self.step)

    def __getitem__(self, part: slice) -> "Rows":
        lists = tuple(values[part] for values in self.lists) if self.lists else ()
        return Rows(self.step[part], self.numbers[part], self.columns, lists)

    def last(self, count: int) -> "Rows":
        """Return at most the last ``count`` rows."""
        return self[max(0, len(self) - count) :]

    @classmethod
    def joined(cls, parts: Sequence["Rows"]) -> Self:
        """Return the rows of some parts, one after the other, with all columns that one of them has."""
        columns = parts[0].columns
        if any(part.columns != columns for part in parts):
            columns = tuple(sorted({index for part in parts for index in part.columns}))
            parts = [part.with_columns(columns) for part in parts]
        return cls(
            np.concatenate([part.step for part in parts]),
            np.concatenate([part.numbers for part in parts]),
            columns,
            tuple(padded(same_list) for same_list in zip(*(part.lists for part in parts), strict=True)),
        )

    @staticmethod
    @cache
    def none(lists: int) -> "Rows":
        """Return rows without any row, with this many lists. All series share them."""
        return Rows(np.empty(0, np.int64), np.empty((0, _VALUE_COLUMNS)), (), (np.empty((0, 0)),) * lists)


def padded(parts: Sequence[Floats]) -> Floats:
    """Return lists of different lengths as one array, with NaN at the end of the shorter ones."""
    width = max(part.shape[1] for part in parts)
    return np.concatenate(
        [
            part
            if part.shape[1] == width
            else np.pad(part, [(0, 0), (0, width - part.shape[1])], constant_values=np.nan)
            for part in parts
        ]
    )


def finite_or_none(time: float) -> float | None:
    """Return the time of a row, or None for one that is not known."""
    return float(time) if math.isfinite(time) else None


class RowBuffer:
    """The last rows of a series, with room after them, so that a new row is written beside the others.

    It remembers at least the last ``min_rows``.
    """

    __slots__ = ("_arrays", "_columns", "_end", "_min_rows")

    def __init__(self, rows: Rows, min_rows: int) -> None:
        self._min_rows = min_rows
        self._reset(rows)

    def _reset(self, rows: Rows) -> None:
        """Put these rows, and no others, into new arrays."""
        self._end: int = len(rows)
        self._columns: tuple[int, ...] = rows.columns
        self._arrays = _arrays(rows)
        if len(rows):  # a series without rows takes no memory
            self._arrays = [_with_room(array, narrow=i != _TIME) for i, array in enumerate(self._arrays)]

    def __getitem__(self, part: slice) -> Rows:
        """Return a copy of some of its rows."""
        filled = slice(*part.indices(self._end))
        step, time, values, *lists = (array[filled] for array in self._arrays)
        numbers = np.empty((len(step), 1 + values.shape[1]))
        numbers[:, 0] = time
        numbers[:, 1:] = values
        wide_lists = tuple(values.astype(np.float64) for values in lists)
        return Rows(step.astype(np.int64), numbers, self._columns, wide_lists)

    def append(self, rows: Rows) -> Rows:
        """Add rows. Return them after the last ``min_rows`` rows before them."""
        begin = max(0, self._end - self._min_rows)
        with np.errstate(over="ignore"):  # a value beyond 32 bits is written again in 64
            if self._write(rows):
                self._end += len(rows)
                return self[begin:]
        joined = Rows.joined([self[begin:], rows]) if self._end else rows
        self._reset(joined.last(self._min_rows))  # not all that a long log brought at once
        return joined

    def _write(self, rows: Rows) -> bool:
        """Write rows behind the others. Return whether there is room, and nothing is lost."""
        if self._end + len(rows) > len(self._arrays[0]) or not {*rows.columns} <= {*self._columns}:
            return False
        pairs = zip(self._arrays, _arrays(rows.with_columns(self._columns)), strict=True)
        return all(_write_into(room[self._end :], array) for room, array in pairs)


def _arrays(rows: Rows) -> list[NDArray[Any]]:
    """Return the steps, the times, the values with the columns beside them, and each list."""
    return [rows.step, rows.time, rows.numbers[:, 1:], *rows.lists]


def _with_room(column: NDArray[Any], narrow: bool) -> NDArray[Any]:
    """Return a column with room for more rows: in half the size if it is ``narrow`` and nothing is lost."""
    dtype = _HALF[column.dtype.kind] if narrow else column.dtype
    room = np.empty((len(column) + SPARE, *column.shape[1:]), dtype)
    with np.errstate(over="ignore"):
        if _write_into(room, column):
            return room
    return _with_room(column, narrow=False)


def _write_into(room: NDArray[Any], column: NDArray[Any]) -> bool:
    """Write a column into some room. Return whether it fits and is the same there."""
    if column.shape[1:] > room.shape[1:]:
        return False
    target = room[: len(column)]
    if column.shape != target.shape:
        target[:] = np.nan  # after shorter lists
        target = target[:, : column.shape[1]]
    target[...] = column
    if target.dtype == column.dtype:
        return True
    same = target == column
    return bool(same.all() or (same | (column != column)).all())  # NaN differs from itself
