"""Rows of a series."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Self

import msgspec
import numpy as np

from sentinel.frames.coarse import Floats, Steps

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
