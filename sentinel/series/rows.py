"""Rows of a series, and the last ones of a growing series in little memory."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import DTypeLike, NDArray

from sentinel.series.buckets import Floats, Steps

SPARE = 8
"""How many more rows a `RowBuffer` has room for. With more room it is copied less often."""

_TIME = 1  # the place of the times among the columns; seconds since the epoch need 64 bits
_HALF: dict[str, DTypeLike] = {"i": np.int32, "f": np.float32}
"""Forms of half the size. TensorBoard logs values of 32 bits, and few trainings have 2**31 steps."""

_FIRST = 2  # of the numbers of a row that stands beside its value


class Rows(msgspec.Struct, frozen=True, gc=False):
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

    def column(self, place: int) -> Floats:
        """Return a column beside the value; NaN where it is not known."""
        return self.with_columns((place,)).numbers[:, _FIRST]

    def with_columns(self, beside: tuple[int, ...]) -> "Rows":
        """Return the same rows with these columns, in this order."""
        if beside == self.columns:
            return self
        numbers = np.full((len(self), _FIRST + len(beside)), np.nan)
        numbers[:, :_FIRST] = self.numbers[:, :_FIRST]
        known = {place: at for at, place in enumerate(self.columns, _FIRST)}
        for at, place in enumerate(beside, _FIRST):
            if place in known:
                numbers[:, at] = self.numbers[:, known[place]]
        return Rows(self.step, numbers, beside, self.lists)

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
        beside = parts[0].columns
        if any(part.columns != beside for part in parts):
            beside = tuple(sorted({place for part in parts for place in part.columns}))
            parts = [part.with_columns(beside) for part in parts]
        return cls(
            np.concatenate([part.step for part in parts]),
            np.concatenate([part.numbers for part in parts]),
            beside,
            tuple(padded(same_list) for same_list in zip(*(part.lists for part in parts), strict=True)),
        )

    @staticmethod
    @cache
    def none(lists: int) -> "Rows":
        """Return rows without any row, with this many lists. All series share them."""
        return Rows(np.empty(0, np.int64), np.empty((0, _FIRST)), (), (np.empty((0, 0)),) * lists)

    def dump(self) -> list[Any]:
        """Return everything `load` needs."""
        return [self.step, self.numbers, self.columns, list(self.lists)]

    @classmethod
    def load(cls, state: Sequence[Any]) -> "Rows":
        """Undo `dump`."""
        step, numbers, beside, lists = state
        return cls(step, numbers, tuple(beside), tuple(lists)) if len(step) else cls.none(len(lists))


def padded(parts: Sequence[Floats]) -> Floats:
    """Return lists of different lengths as one array, with NaN at the end of the shorter ones."""
    longest = max(part.shape[1] for part in parts)
    return np.concatenate([part if part.shape[1] == longest else _wide(part, longest) for part in parts])


def _wide(part: Floats, width: int) -> Floats:
    return np.pad(part, [(0, 0), (0, width - part.shape[1])], constant_values=np.nan)


class RowBuffer:
    """The last rows of a series, with room after them, so that a new row is written beside the others.

    At least ``keep`` rows precede new ones.
    """

    __slots__ = ("_arrays", "_columns", "_end", "_keep")

    def __init__(self, rows: Rows, keep: int) -> None:
        self._keep = keep
        self._hold(rows)

    def _hold(self, rows: Rows) -> None:
        """Hold these rows in new arrays."""
        self._end: int = len(rows)
        self._columns: tuple[int, ...] = rows.columns
        self._arrays = _arrays(rows)
        if len(rows):  # a series without rows takes no memory
            self._arrays = [_with_room(array, narrow=n != _TIME) for n, array in enumerate(self._arrays)]

    def __getitem__(self, part: slice) -> Rows:
        """Return some of the rows that it holds, in arrays of their own: the last ``keep`` or more are
        there.
        """
        own = slice(*part.indices(self._end))
        step, time, values, *lists = (array[own] for array in self._arrays)
        numbers = np.empty((len(step), 1 + values.shape[1]))
        numbers[:, 0] = time
        numbers[:, 1:] = values
        same_lists = tuple(of_rows.astype(np.float64) for of_rows in lists)
        return Rows(step.astype(np.int64), numbers, self._columns, same_lists)

    def append(self, rows: Rows) -> Rows:
        """Add rows. Returns them behind the last ``keep`` rows that precede them."""
        begin = max(0, self._end - self._keep)
        with np.errstate(over="ignore"):  # a value beyond 32 bits is written again in 64
            if self._takes(rows):
                self._end += len(rows)
                return self[begin:]
        joined = Rows.joined([self[begin:], rows]) if self._end else rows
        self._hold(joined.last(self._keep))  # not all that a long log brought at once
        return joined

    def _takes(self, rows: Rows) -> bool:
        """Write rows behind the others, if there is room for them, and they are the same in it."""
        if self._end + len(rows) > len(self._arrays[0]) or not {*rows.columns} <= {*self._columns}:
            return False
        pairs = zip(self._arrays, _arrays(rows.with_columns(self._columns)), strict=True)
        return all(_written(room[self._end :], array) for room, array in pairs)


def _arrays(rows: Rows) -> list[NDArray[Any]]:
    """Return the steps, the times, the values with what stands beside them, and each list."""
    return [rows.step, rows.time, rows.numbers[:, 1:], *rows.lists]


def _with_room(column: NDArray[Any], narrow: bool) -> NDArray[Any]:
    """Return a column with room for more rows, in half the size if this is to be tried and loses nothing."""
    room = np.empty(
        (len(column) + SPARE, *column.shape[1:]), _HALF[column.dtype.kind] if narrow else column.dtype
    )
    with np.errstate(over="ignore"):
        if _written(room, column):
            return room
    return _with_room(column, narrow=False)


def _written(room: NDArray[Any], column: NDArray[Any]) -> bool:
    """Write a column into some room. Says whether it is the same there."""
    if column.shape[1:] > room.shape[1:]:
        return False
    own = room[: len(column)]
    if column.shape != own.shape:
        own[:] = np.nan  # after shorter lists
        own = own[:, : column.shape[1]]
    own[...] = column
    if own.dtype == column.dtype:
        return True
    same = own == column
    return bool(same.all() or (same | (column != column)).all())  # NaN differs from itself
