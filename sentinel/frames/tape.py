"""The last rows of a growing series, in as little memory as loses nothing: a fleet has very many of them."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sentinel.frames.rows import Rows

SPARE = 8
"""How many more rows a `Tape` has room for. With more room it is copied less often."""

_TIME = 1  # the place of the times among the columns; seconds since the epoch need 64 bits
_HALF: dict[str, DTypeLike] = {"i": np.int32, "f": np.float32}
"""Forms of half the size. TensorBoard logs values of 32 bits, and few trainings have 2**31 steps."""


class Tape:
    """The last rows of a series, with room after them, so that a new row is written beside the others.

    At least ``keep`` rows precede new ones.
    """

    __slots__ = ("_beside", "_columns", "_end", "_keep")

    def __init__(self, rows: Rows, keep: int) -> None:
        self._keep = keep
        self._hold(rows)

    def _hold(self, rows: Rows) -> None:
        """Hold these rows in new arrays."""
        self._end: int = len(rows)
        self._beside: tuple[int, ...] = rows.beside
        self._columns = _columns(rows)
        if len(rows):
            self._columns = [_with_room(column, narrow=n != _TIME) for n, column in enumerate(self._columns)]

    def __getitem__(self, part: slice) -> Rows:
        """Some of the last rows, ``keep`` or more, in arrays of their own."""
        own = slice(*part.indices(self._end))
        step, time, values, *lists = (column[own] for column in self._columns)
        numbers = np.empty((len(step), 1 + values.shape[1]))
        numbers[:, 0], numbers[:, 1:] = time, values
        same_lists = tuple(of_rows.astype(np.float64) for of_rows in lists)
        return Rows(step.astype(np.int64), numbers, self._beside, same_lists)

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
        if self._end + len(rows) > len(self._columns[0]) or not {*rows.beside} <= {*self._beside}:
            return False
        pairs = zip(self._columns, _columns(rows.with_columns(self._beside)), strict=True)
        return all(_written(room[self._end :], column) for room, column in pairs)


def _columns(rows: Rows) -> list[NDArray[Any]]:
    """The steps, the times, the values with what stands beside them, and each list."""
    return [rows.step, rows.time, rows.numbers[:, 1:], *rows.lists]


def _with_room(column: NDArray[Any], narrow: bool) -> NDArray[Any]:
    """A column with room for more rows, in half the size if this is to be tried and loses nothing."""
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
