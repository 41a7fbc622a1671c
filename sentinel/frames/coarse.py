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
    ("low", np.minimum, np.inf),
    ("high", np.maximum, -np.inf),
    ("total", np.add, 0.0),
    ("finite", np.add, 0.0),
)
"""How the columns of two buckets become one, and what an empty bucket has."""

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

    A bucket has ``width`` rows, the last one fewer, and ``finite`` of them have a finite value. ``first`` has
    the columns beside the value in the first row of each bucket, by their places in `View.columns`. The
    buckets take memory from the first row on.
    """

    rows: int = 0
    width: int = 1
    low: Floats = field(init=False, default_factory=lambda: _NO_FLOATS)
    high: Floats = field(init=False, default_factory=lambda: _NO_FLOATS)
    total: Floats = field(init=False, default_factory=lambda: _NO_FLOATS)
    finite: Floats = field(init=False, default_factory=lambda: _NO_FLOATS)
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
        self.low, self.high = np.full(MAX_BUCKETS, np.inf), np.full(MAX_BUCKETS, -np.inf)
        self.total, self.finite = np.zeros(MAX_BUCKETS), np.zeros(MAX_BUCKETS)
        self.step = np.zeros(MAX_BUCKETS, np.int64)

    def _fill(self, values: Floats, steps: Steps, beside: Mapping[int, Floats]) -> None:
        """Add rows for which there is room."""
        index = self.rows + np.arange(len(values))
        bucket, begins = index // self.width, index % self.width == 0
        known = np.isfinite(values)
        value, into = values[known], bucket[known]
        np.minimum.at(self.low, into, value)
        np.maximum.at(self.high, into, value)
        np.add.at(self.total, into, value)  # one by one, in the order of the log
        self.finite += np.bincount(into, minlength=MAX_BUCKETS)
        self.step[bucket[begins]] = steps[begins]
        for place, column in beside.items():
            if place not in self.first:
                self.first[place] = np.full(MAX_BUCKETS, np.nan)
            self.first[place][bucket[begins]] = column[begins]
        self.rows += len(values)

    def widen(self) -> None:
        """Make one bucket of each two."""
        for name, merge, blank in _MERGES:
            old = getattr(self, name)
            setattr(self, name, _halved(merge(old[::2], old[1::2]), blank))
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

    def view(self) -> dict[str, Floats]:
        """The coarse columns of a WINDOW frame, as arrays; NaN for a bucket without a finite value."""
        count = self.finite[: self.buckets]
        parts = {"coarse_low": self.low, "coarse_mean": self.total, "coarse_high": self.high}
        means = {name: np.where(count > 0, part[: self.buckets], np.nan) for name, part in parts.items()}
        means["coarse_mean"] /= np.maximum(count, 1)
        return means

    def dump(self) -> list[Any]:
        """Everything `load` needs."""
        return [self.rows, self.width, self.low, self.high, self.total, self.finite, self.step, self.first]

    @classmethod
    def load(cls, state: Sequence[Any]) -> Self:
        """Undo `dump`."""
        rows, width, *parts = state
        coarse = cls(rows, width)
        coarse.low, coarse.high, coarse.total, coarse.finite, coarse.step, coarse.first = parts
        return coarse


def _halved(column: NDArray[Any], blank: float) -> NDArray[Any]:
    """A column of buckets after each two became one, with blank ones behind it."""
    return np.concatenate([column, np.full(MAX_BUCKETS - len(column), blank, column.dtype)])
