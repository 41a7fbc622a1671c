"""Summarises a whole attempt in a bounded number of buckets.

A bucket has 1, 2, 4, ... rows: as many as are needed for `MAX_BUCKETS` buckets to cover the series. The place
of a bucket depends only on row numbers, and sums are added row by row. So the buckets of a series are the
same, however its rows arrived.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

MAX_BUCKETS = 64
"""The most buckets of a series."""

FIRST_CHECKPOINT = 256
"""The row count at which detectors get the first coarse view."""

Floats = NDArray[np.float64]
Steps = NDArray[np.int64]

_NO_TABLE = np.empty((0, 0))  # of all series without rows


class _Column(NamedTuple):
    """How two buckets become one, and what a bucket without rows has."""

    merge: Callable[[Floats, Floats], Floats]
    blank: float


_TOTAL, _LOW, _HIGH = range(3)
_OF_THE_VALUE = (_Column(np.add, 0.0), _Column(np.minimum, np.inf), _Column(np.maximum, -np.inf))
_BESIDE_THE_VALUE = _Column(lambda first, _: first, np.nan)


def next_checkpoint(rows: int) -> int:
    """Return the first row count above ``rows`` at which detectors get a fresh coarse view.

    These are 256, then four for each doubling: 320, 384, 448, 512, 640, ... So the view never lags by more
    than a fifth of the series.
    """
    if rows < FIRST_CHECKPOINT:
        return FIRST_CHECKPOINT
    quarter = 1 << (rows.bit_length() - 3)
    return (rows // quarter + 1) * quarter


class Buckets(msgspec.Struct, array_like=True):
    """The lowest, the mean and the highest finite value of each bucket, and its first step and row.

    A bucket has ``width`` rows, the last one fewer. ``table`` has all columns, because a fleet has very many
    arrays: the sum of the finite values, with ``extremes`` the lowest and the highest one, and those columns
    that stand beside the value, numbered as in `SeriesSpec.columns`, in the first row. ``missing`` counts the
    values that are not finite; None if there are none. The buckets take memory from the first row on.

    Most logs count evenly: the step of a row is ``origin`` plus ``pace`` for each row before it. ``steps``
    holds the first step of each bucket as soon as one of them is another.
    """

    rows: int = 0
    width: int = 1
    origin: int = 0
    pace: int | None = None
    steps: Steps | None = None
    extremes: bool = True
    columns: tuple[int, ...] = ()
    table: Floats = msgspec.field(default_factory=lambda: _NO_TABLE)
    missing: Floats | None = None

    def push(self, values: Floats, steps: Steps, beside: Mapping[int, Floats] | None = None) -> None:
        """Add rows at the end of the series, with some of the columns beside the values."""
        columns = beside or {}
        if not len(values):
            return
        if not self.rows:
            self.table = _blank(self._value_columns)
        new_columns = tuple(index for index in columns if index not in self.columns)
        if new_columns:
            self.columns += new_columns
            self.table = np.concatenate([self.table, _blank([_BESIDE_THE_VALUE] * len(new_columns))])
        begin = 0
        while begin < len(values):
            room = MAX_BUCKETS * self.width - self.rows
            if room == 0:
                self.widen()
                continue
            part = slice(begin, begin + room)
            in_part = {index: column[part] for index, column in columns.items()}
            self._fill(values[part], steps[part], in_part)
            begin += room

    @property
    def _value_columns(self) -> Sequence[_Column]:
        """The columns of the table that summarise the value."""
        return _OF_THE_VALUE if self.extremes else _OF_THE_VALUE[:_LOW]

    def _fill(self, values: Floats, steps: Steps, beside: Mapping[int, Floats]) -> None:
        """Add rows for which there is room."""
        index = self.rows + np.arange(len(values))
        bucket = index // self.width
        begins = index % self.width == 0
        is_finite = np.isfinite(values)
        finite = values[is_finite]
        finite_bucket = bucket[is_finite]
        if len(finite) < len(values):
            missing = np.bincount(bucket[~is_finite], minlength=MAX_BUCKETS).astype(np.float64)
            self.missing = missing if self.missing is None else self.missing + missing
        np.add.at(self.table[_TOTAL], finite_bucket, finite)  # one by one, in the order of the log
        if self.extremes:
            np.minimum.at(self.table[_LOW], finite_bucket, finite)
            np.maximum.at(self.table[_HIGH], finite_bucket, finite)
        self._add_steps(index[begins], steps[begins])
        for column_index, column in beside.items():
            self._column_beside(column_index)[bucket[begins]] = column[begins]
        self.rows += len(values)

    def _add_steps(self, rows: Steps, steps: Steps) -> None:
        """Add the steps of rows that begin buckets."""
        if not len(rows):
            return
        if rows[0] == 0:
            self.origin = int(steps[0])
        if self.pace is None and rows[-1] > 0:
            self.pace = int((steps[rows == 1] - self.origin)[0])
        if self.steps is None and (steps != self._even(rows)).any():
            self.steps = np.pad(self.step, (0, MAX_BUCKETS - self.buckets))
        if self.steps is not None:
            self.steps[rows // self.width] = steps

    def _column_beside(self, index: int) -> Floats:
        """Return the column of the table for a column beside the value."""
        column: Floats = self.table[len(self._value_columns) + self.columns.index(index)]
        return column

    def widen(self) -> None:
        """Make one bucket of each two."""
        columns = [*self._value_columns, *[_BESIDE_THE_VALUE] * len(self.columns)]
        wider = _blank(columns)
        for wider_row, old, column in zip(wider, self.table, columns, strict=True):
            wider_row[: MAX_BUCKETS // 2] = column.merge(old[::2], old[1::2])
        if self.missing is not None:
            merged = self.missing[::2] + self.missing[1::2]
            self.missing = np.concatenate([merged, np.zeros(MAX_BUCKETS - len(merged))])
        if self.steps is not None:
            self.steps = np.pad(self.steps[::2], (0, MAX_BUCKETS // 2))
        self.table = wider
        self.width *= 2

    def widened(self, width: int) -> Self:
        """Return the same rows in buckets of at least this ``width``, as a longer series has them."""
        wide = copy(self)
        while wide.width < width:
            wide.widen()
        return wide

    @property
    def buckets(self) -> int:
        """How many buckets hold at least one row."""
        return -(-self.rows // self.width)

    @property
    def step(self) -> Steps:
        """The first step of each bucket."""
        if self.steps is not None:
            return self.steps[: self.buckets]
        return self._even(self.width * np.arange(self.buckets))

    def _even(self, rows: Steps) -> Steps:
        """Return the steps of rows of a log that counts evenly."""
        return self.origin + (self.pace or 0) * rows

    @property
    def mean(self) -> Floats:
        """The mean of the finite values of each bucket; NaN without one."""
        count = np.full(self.buckets, float(self.width))
        count[-1:] = self.rows - (self.buckets - 1) * self.width
        if self.missing is not None:
            count -= self.missing[: self.buckets]
        total = np.where(count > 0, self._column(_TOTAL), np.nan)
        mean: Floats = total / np.maximum(count, 1)
        return mean

    @property
    def low(self) -> Floats:
        """The lowest finite value of each bucket; NaN without one. Needs ``extremes``, as `high` does."""
        return self._extreme(_LOW)

    @property
    def high(self) -> Floats:
        """The highest finite value of each bucket; NaN without one."""
        return self._extreme(_HIGH)

    @property
    def first(self) -> dict[int, Floats]:
        """The columns beside the value in the first row of each bucket, by their indices."""
        return {index: self._column_beside(index)[: self.buckets] for index in self.columns}

    def _extreme(self, number: int) -> Floats:
        values = self._column(number)
        return np.where(np.isfinite(values), values, np.nan)

    def _column(self, number: int) -> Floats:
        column: Floats = self.table[number, : self.buckets] if self.rows else np.empty(0)
        return column

    def view(self) -> dict[str, Floats]:
        """Return the coarse columns of a WINDOW frame, as arrays; NaN for a bucket without a finite value."""
        return {"coarse_low": self.low, "coarse_mean": self.mean, "coarse_high": self.high}


def _blank(columns: Sequence[_Column]) -> Floats:
    """Return a table of buckets without rows."""
    table = np.empty((len(columns), MAX_BUCKETS))
    table.T[:] = [column.blank for column in columns]
    return table
