"""The last rows of a growing series, in as little memory as loses nothing: a fleet has very many of them."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sentinel.frames.rows import Rows

SPARE = 8
"""How many more rows a `Tape` has room for. With more room it is copied less often."""

_HALF: dict[str, tuple[DTypeLike, float]] = {"int64": (np.int32, 0), "float64": (np.float32, np.nan)}
"""Forms of half the size, each with what is nothing in it.

TensorBoard logs values of 32 bits, and few trainings have 2**31 steps.
"""


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
        self._columns = [*map(_with_room, _columns(rows))]

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
        if not self._has_room(rows):
            joined = Rows.joined([self[begin:], rows])
            self._hold(joined.last(self._keep))  # not all that a long log brought at once
            return joined
        part = slice(self._end, self._end + len(rows))
        for room, new in zip(self._columns, _columns(rows.with_columns(self._beside)), strict=True):
            room[(part, *map(slice, new.shape[1:]))] = new
        self._end = part.stop
        return self[begin:]

    def _has_room(self, rows: Rows) -> bool:
        """Whether there is room for so many rows, such columns, such numbers and as long lists."""
        return (
            {*rows.beside} <= {*self._beside}
            and self._end + len(rows) <= len(self._columns[0])
            and all(
                new.shape[1:] <= room.shape[1:] and _fits(new, room.dtype)
                for room, new in zip(self._columns, _columns(rows), strict=True)
            )
        )


def _columns(rows: Rows) -> list[NDArray[Any]]:
    """The steps, the times, the values with what stands beside them, and each list."""
    return [rows.step, rows.time, rows.numbers[:, 1:], *rows.lists]


def _with_room(values: NDArray[Any]) -> NDArray[Any]:
    """The values in the smallest form that holds them, with room for more rows."""
    half, blank = _HALF[values.dtype.name]
    form = half if _fits(values, half) else values.dtype
    room = np.full((len(values) + SPARE, *values.shape[1:]), blank, form)
    room[: len(values)] = values
    return room


def _fits(values: NDArray[Any], form: DTypeLike) -> bool:
    """Whether the values are the same in this form."""
    if values.dtype == form:
        return True
    with np.errstate(over="ignore"):
        same = values.astype(form) == values
    return bool(same.all() or (same | (values != values)).all())  # NaN differs from itself
