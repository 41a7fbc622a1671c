"""Rows of a series, and the arrays that hold the last ones of a growing series."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Self

import msgspec
import numpy as np

from sentinel.frames.coarse import Floats, Steps

SPARE = 8
"""How many rows a `Tape` has room for. With more room it is copied less often."""

_FIRST = 2  # of the numbers of a row that stands beside its value


class Rows(msgspec.Struct, frozen=True, gc=False):
    """Consecutive rows, in two arrays, because each array costs time whenever a row is added.

    ``step`` is the step of each row, as the framework counts. ``numbers`` holds its time, the judged value,
    and the columns ``beside`` that, by their places in `View.columns`, with NaN where a value is not known.
    Columns of which no value is known are left out, because most runs log few of the signals that a view asks
    for. ``lists`` holds what is a list beside a row: rows x length. The length grows as the run goes on.
    """

    step: Steps
    numbers: Floats
    beside: tuple[int, ...] = ()
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
        """A column beside the value; NaN where it is not known."""
        return self.with_columns((place,)).numbers[:, _FIRST]

    def with_columns(self, beside: tuple[int, ...]) -> "Rows":
        """The same rows with these columns, in this order."""
        if beside == self.beside:
            return self
        numbers = np.full((len(self), _FIRST + len(beside)), np.nan)
        numbers[:, :_FIRST] = self.numbers[:, :_FIRST]
        known = {place: at for at, place in enumerate(self.beside, _FIRST)}
        for at, place in enumerate(beside, _FIRST):
            if place in known:
                numbers[:, at] = self.numbers[:, known[place]]
        return Rows(self.step, numbers, beside, self.lists)

    def __len__(self) -> int:
        return len(self.step)

    def __getitem__(self, part: slice) -> "Rows":
        lists = tuple(values[part] for values in self.lists) if self.lists else ()
        return Rows(self.step[part], self.numbers[part], self.beside, lists)

    def last(self, count: int) -> "Rows":
        """At most the last ``count`` rows."""
        return self[max(0, len(self) - count) :]

    def copy(self) -> "Rows":
        """The same rows, in arrays of their own."""
        return Rows.joined([self])

    @classmethod
    def joined(cls, parts: Sequence["Rows"]) -> Self:
        """The rows of some parts, one after the other, with all columns that one of them has."""
        beside = parts[0].beside
        if any(part.beside != beside for part in parts):
            beside = tuple(sorted({place for part in parts for place in part.beside}))
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
        """Rows without any row, with this many lists. All series share them."""
        return Rows(np.empty(0, np.int64), np.empty((0, _FIRST)), (), (np.empty((0, 0)),) * lists)

    def dump(self) -> list[Any]:
        """Everything `load` needs."""
        return [self.step, self.numbers, self.beside, list(self.lists)]

    @classmethod
    def load(cls, state: Sequence[Any]) -> "Rows":
        """Undo `dump`."""
        step, numbers, beside, lists = state
        return cls(step, numbers, tuple(beside), tuple(lists)) if len(step) else cls.none(len(lists))


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

    __slots__ = ("_end", "_keep", "_rows")

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
        kept = self._rows[begin : self._end]
        if len(rows) > SPARE:
            joined = Rows.joined([kept, rows])
            self._move(joined.last(self._keep), rows)  # not all that a long log brought at once
            return joined
        if not self._has_room(rows):
            self._move(kept, rows)
            begin = 0
        part = slice(self._end, self._end + len(rows))
        self._rows.step[part] = rows.step
        self._rows.numbers[part] = rows.with_columns(self._rows.beside).numbers
        for room, values in zip(self._rows.lists, rows.lists, strict=True):
            room[part, : values.shape[1]] = values
        self._end = part.stop
        return self._rows[begin : part.stop]

    def _move(self, last: Rows, form: Rows) -> None:
        """Hold the last rows in new arrays, with room for more rows of a form."""
        self._rows, self._end = Rows.joined([last, _blank(form)]), len(last)

    def _has_room(self, rows: Rows) -> bool:
        """Whether there is room for so many rows, for all of their columns and for as long lists."""
        own = self._rows
        return (
            self._end + len(rows) <= len(own)
            and (rows.beside == own.beside or {*rows.beside} <= {*own.beside})
            and all(new.shape[1] <= room.shape[1] for room, new in zip(own.lists, rows.lists, strict=True))
        )


def _blank(rows: Rows) -> Rows:
    """Room for more rows of this form."""
    lists = tuple(np.full((SPARE, values.shape[1]), np.nan) for values in rows.lists)
    return Rows(np.zeros(SPARE, np.int64), np.zeros((SPARE, rows.numbers.shape[1])), rows.beside, lists)
