"""Rows of a series, and the arrays that hold the last ones of a growing series."""

from collections.abc import Sequence
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.frames.coarse import Floats, Steps

SPARE = 16
"""How many rows a `Tape` has room for. With more room it is copied less often."""


class Rows(msgspec.Struct, frozen=True, gc=False):
    """Consecutive rows, in two arrays, because each array costs time whenever a row is added.

    ``places`` holds two whole numbers for each row: its step and the ordinal, in the stream, of the point
    that completed it. ``numbers`` holds its time, the judged value, and what stands beside that (NaN where it
    is not known). ``lists`` holds what is a list beside a row: rows x length, where the length grows as the
    run goes on.
    """

    places: Steps
    numbers: Floats
    lists: tuple[Floats, ...] = ()

    @property
    def step(self) -> Steps:
        """The step of each row, as the framework counts."""
        return self.places[:, 0]

    @property
    def position(self) -> NDArray[np.int64]:
        """The ordinal, in the stream, of the point that completed each row."""
        return self.places[:, 1]

    @property
    def time(self) -> Floats:
        """Seconds since the epoch; NaN where the log has none."""
        return self.numbers[:, 0]

    @property
    def columns(self) -> Floats:
        """The judged value, then a column for each number beside it."""
        return self.numbers[:, 1:]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, part: slice) -> "Rows":
        lists = tuple(one[part] for one in self.lists) if self.lists else ()
        return Rows(self.places[part], self.numbers[part], lists)

    def last(self, count: int) -> "Rows":
        """At most the last ``count`` rows."""
        return self[max(0, len(self) - count) :]

    def copy(self) -> "Rows":
        """The same rows, in arrays of their own."""
        return Rows.joined([self])

    @classmethod
    def joined(cls, parts: Sequence["Rows"]) -> Self:
        """The rows of some parts, one after the other."""
        return cls(
            np.concatenate([part.places for part in parts]),
            np.concatenate([part.numbers for part in parts]),
            tuple(padded(one) for one in zip(*(part.lists for part in parts), strict=True)),
        )

    @classmethod
    def none(cls, columns: int, lists: int) -> Self:
        """Rows without any row, with this many columns and lists."""
        empty = (np.empty((0, 0)),) * lists
        return cls(np.empty((0, 2), np.int64), np.empty((0, 1 + columns)), empty)

    def dump(self) -> list[Any]:
        """Everything `load` needs."""
        return [self.places, self.numbers, list(self.lists)]

    @classmethod
    def load(cls, state: list[Any]) -> Self:
        """Undo `dump`."""
        places, numbers, lists = state
        return cls(places, numbers, tuple(lists))


def padded(parts: Sequence[Floats]) -> Floats:
    """Lists of different lengths as one array, with NaN at the end of the shorter ones."""
    longest = max(part.shape[1] for part in parts)
    return np.concatenate([part if part.shape[1] == longest else _wide(part, longest) for part in parts])


def _wide(part: Floats, width: int) -> Floats:
    return np.pad(part, [(0, 0), (0, width - part.shape[1])], constant_values=np.nan)


class Tape:
    """The last rows of a series, with room after them, so that a new row is written beside the others.

    Rows that were given out are never overwritten: when the room is used up, the last rows move to new
    arrays. At least ``keep`` rows precede new ones.
    """

    def __init__(self, rows: Rows, keep: int) -> None:
        self._rows = rows
        self._end = len(rows)
        self._keep = keep

    @property
    def rows(self) -> Rows:
        """The last rows, ``keep`` or more."""
        return self._rows[: self._end]

    def append(self, rows: Rows) -> Rows:
        """Add rows. Returns them behind the last ``keep`` rows that precede them."""
        begin = max(0, self._end - self._keep)
        kept, end = self._rows[begin : self._end], self._end + len(rows)
        if rows.lists or len(rows) > SPARE:
            found = Rows.joined([kept, rows])
            self._rows = found.last(self._keep).copy()  # not what a long log brought at once
            self._end = len(self._rows)
            return found
        if end > len(self._rows):
            room = np.zeros((SPARE, 2), np.int64), np.zeros((SPARE, rows.numbers.shape[1]))
            self._rows = Rows.joined([kept, Rows(*room)])
            begin, self._end, end = 0, len(kept), len(kept) + len(rows)
        self._rows.places[self._end : end] = rows.places
        self._rows.numbers[self._end : end] = rows.numbers
        self._end = end
        return self._rows[begin:end]
