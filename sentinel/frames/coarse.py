"""Summarises a whole attempt in a bounded number of buckets.

A bucket has 1, 2, 4, ... rows: as many as are needed for `MAX_BUCKETS` buckets to cover the series. The place
of a bucket depends only on row numbers, and sums are added row by row. So the buckets of a series are the
same, however its rows arrived.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

MAX_BUCKETS = 64
FIRST_CHECKPOINT = 256

_NO_FLOATS, _NO_STEPS = np.empty(0), np.empty(0, np.int64)  # of all series without buckets

_MERGES = (
    (np.add, 0.0),
    (np.add, 0.0),
    (np.minimum, np.inf),
    (np.maximum, -np.inf),
)
"""How two buckets become one, and what an empty bucket has: by total, finite, low and high."""

Floats = NDArray[np.float64]
Steps = NDArray[np.int64]


def next_checkpoint(rows: int) -> int:
    """The first row count above ``rows`` at which detectors get a fresh coarse view.

    These are 256, then four for each doubling: 320, 384, 448, 512, 640, ... So the view never lags by more
    than a fifth of the series.
    """
    if rows < FIRST_CHECKPOINT:
        return FIRST_CHECKPOINT
    quarter = 1 << (rows.bit_length() - 3)
    return (rows // quarter + 1) * quarter


@dataclass(slots=True)
class Coarse:
    """The lowest, the mean and the highest finite value of each bucket, and its first step and row.

    A bucket has ``width`` rows, the last one fewer. ``numbers`` are the sum of its finite values, how many
    these are, and with ``extremes`` the lowest and the highest one: 2 or 4 x buckets. They share one array,
    because a fleet has very many. ``first`` has the columns beside the value in the first row of each bucket,
    by their places in `View.columns`. The buckets take memory from the first row on.
    """

    rows: int = 0
    width: int = 1
    extremes: bool = True
    numbers: Floats = field(init=False, default_factory=lambda: _NO_FLOATS)
    step: Steps = field(init=False, default_factory=lambda: _NO_STEPS)
    first: dict[int, Floats] = field(init=False, default_factory=dict)

    def push(self, values: Floats, steps: Steps, beside: Mapping[int, Floats] | None = None) -> None:
        """Add rows at the end of the series, with some of the columns beside the values."""
        if self.rows == 0 < len(values):
            self._make()
        begin = 0
        while begin < len(values):
            room = MAX_BUCKETS * self.width - self.rows
            if room == 0:
                self.widen()
                continue
            part = slice(begin, begin + room)
            self._fill(values[part], steps[part], {n: column[part] for n, column in (beside or {}).items()})
            begin += room

    def _make(self) -> None:
        """Make empty buckets."""
        blanks = [blank for _, blank in (_MERGES if self.extremes else _MERGES[:2])]
        self.numbers = np.repeat(np.array(blanks), MAX_BUCKETS).reshape(-1, MAX_BUCKETS)
        self.step = np.zeros(MAX_BUCKETS, np.int64)

    def _fill(self, values: Floats, steps: Steps, beside: Mapping[int, Floats]) -> None:
        """Add rows for which there is room."""
        index = self.rows + np.arange(len(values))
        bucket, begins = index // self.width, index % self.width == 0
        known = np.isfinite(values)
        value, into = values[known], bucket[known]
        np.add.at(self.numbers[0], into, value)  # one by one, in the order of the log
        self.numbers[1] += np.bincount(into, minlength=MAX_BUCKETS)
        if self.extremes:
            np.minimum.at(self.numbers[2], into, value)
            np.maximum.at(self.numbers[3], into, value)
        self.step[bucket[begins]] = steps[begins]
        for place, column in beside.items():
            if place not in self.first:
                self.first[place] = np.full(MAX_BUCKETS, np.nan)
            self.first[place][bucket[begins]] = column[begins]
        self.rows += len(values)

    def widen(self) -> None:
        """Make one bucket of each two."""
        merged = zip(self.numbers, _MERGES, strict=False)
        self.numbers = np.stack(
            [_halved(merge(old[::2], old[1::2]), blank) for old, (merge, blank) in merged]
        )
        self.step = _halved(self.step[::2], 0)
        self.first = {place: _halved(column[::2], np.nan) for place, column in self.first.items()}
        self.width *= 2

    def widened(self, width: int) -> Self:
        """The same rows in buckets of at least this ``width``, as they are once the series is longer."""
        wide = copy(self)
        while wide.width < width:
            wide.widen()
        return wide

    @property
    def buckets(self) -> int:
        """How many buckets hold at least one row."""
        return -(-self.rows // self.width)

    @property
    def mean(self) -> Floats:
        """The mean of the finite values of each bucket; NaN without one."""
        total, count = self.numbers[:2, : self.buckets] if self.rows else (_NO_FLOATS, _NO_FLOATS)
        return np.where(count > 0, total, np.nan) / np.maximum(count, 1)

    @property
    def low(self) -> Floats:
        """The lowest finite value of each bucket; NaN without one. Needs ``extremes``, as `high` does."""
        return self._known(2)

    @property
    def high(self) -> Floats:
        """The highest finite value of each bucket; NaN without one."""
        return self._known(3)

    def _known(self, column: int) -> Floats:
        if not self.rows:
            return _NO_FLOATS
        return np.where(self.numbers[1] > 0, self.numbers[column], np.nan)[: self.buckets]

    def view(self) -> dict[str, Floats]:
        """The coarse columns of a WINDOW frame, as arrays; NaN for a bucket without a finite value."""
        return {"coarse_low": self.low, "coarse_mean": self.mean, "coarse_high": self.high}

    def dump(self) -> list[Any]:
        """Everything `load` needs."""
        return [self.rows, self.width, self.extremes, self.numbers, self.step, self.first]

    @classmethod
    def load(cls, state: Sequence[Any]) -> Self:
        """Undo `dump`."""
        rows, width, extremes, *parts = state
        coarse = cls(rows, width, extremes)
        coarse.numbers, coarse.step, coarse.first = parts
        return coarse


def _halved(column: NDArray[Any], blank: float) -> NDArray[Any]:
    """A column of buckets after each two became one, with blank ones behind it."""
    return np.concatenate([column, np.full(MAX_BUCKETS - len(column), blank, column.dtype)])
