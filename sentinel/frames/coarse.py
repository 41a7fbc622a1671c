"""Summarises a whole attempt in a bounded number of buckets.

A bucket has 1, 2, 4, ... rows: as many as are needed for `MAX_BUCKETS` buckets to cover the series. The place
of a bucket depends only on row numbers, and sums are added row by row. So the buckets of a series are the
same, however its rows arrived.
"""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

MAX_BUCKETS = 64
FIRST_CHECKPOINT = 256

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


@dataclass
class Coarse:
    """The lowest, the mean and the highest finite value of each bucket, and its first step and row.

    A bucket has ``width`` rows, the last one fewer, and ``finite`` of them have a finite value. A row has
    ``columns`` columns: the judged value, then its context. The buckets take memory from the first row on.
    """

    columns: int
    rows: int = 0
    width: int = 1
    low: Floats = field(init=False)
    high: Floats = field(init=False)
    total: Floats = field(init=False)
    finite: Floats = field(init=False)
    step: Steps = field(init=False)
    first: Floats = field(init=False)

    def __post_init__(self) -> None:
        self._make(0)

    def _make(self, buckets: int) -> None:
        """Empty buckets."""
        self.low, self.high = np.full(buckets, np.inf), np.full(buckets, -np.inf)
        self.total, self.finite = np.zeros(buckets), np.zeros(buckets)
        self.step, self.first = np.zeros(buckets, np.int64), np.full((buckets, self.columns), np.nan)

    def push(self, rows: Floats, steps: Steps) -> None:
        """Add rows (rows x columns) at the end of the series."""
        if self.rows == 0 < len(rows):
            self._make(MAX_BUCKETS)
        while len(rows):
            room = MAX_BUCKETS * self.width - self.rows
            if room == 0:
                self._widen()
                continue
            part, rows = rows[:room], rows[room:]
            step, steps = steps[:room], steps[room:]
            index = self.rows + np.arange(len(part))
            bucket, begins = index // self.width, index % self.width == 0
            known = np.isfinite(part[:, 0])
            value, into = part[known, 0], bucket[known]
            np.minimum.at(self.low, into, value)
            np.maximum.at(self.high, into, value)
            np.add.at(self.total, into, value)  # one by one, in the order of the log
            np.add.at(self.finite, into, 1)
            self.step[bucket[begins]] = step[begins]
            self.first[bucket[begins]] = part[begins]
            self.rows += len(part)

    def _widen(self) -> None:
        half = MAX_BUCKETS // 2
        merges = (
            ("low", np.minimum, np.inf),
            ("high", np.maximum, -np.inf),
            ("total", np.add, 0.0),
            ("finite", np.add, 0.0),
        )
        for name, merge, blank in merges:
            old = getattr(self, name)
            setattr(self, name, np.concatenate([merge(old[::2], old[1::2]), np.full(half, blank)]))
        self.step = np.concatenate([self.step[::2], np.zeros(half, np.int64)])
        self.first = np.concatenate([self.first[::2], np.full((half, self.columns), np.nan)])
        self.width *= 2

    @property
    def buckets(self) -> int:
        """How many buckets hold at least one row."""
        return -(-self.rows // self.width)

    def view(self) -> dict[str, Floats]:
        """The coarse columns of a WINDOW frame, as arrays; NaN for a bucket without a finite value."""
        count = self.finite[: self.buckets]
        parts = {"coarse_low": self.low, "coarse_mean": self.total, "coarse_high": self.high}
        found = {name: np.where(count > 0, part[: self.buckets], np.nan) for name, part in parts.items()}
        found["coarse_mean"] /= np.maximum(count, 1)
        return found

    def dump(self) -> list[Any]:
        """Everything `load` needs."""
        parts = self.low, self.high, self.total, self.finite, self.step
        return [self.columns, self.rows, self.width, *parts, self.first]

    @classmethod
    def load(cls, state: list[Any]) -> Self:
        """Undo `dump`."""
        columns, rows, width, *parts = state
        coarse = cls(columns, rows, width)
        coarse.low, coarse.high, coarse.total, coarse.finite, coarse.step, coarse.first = parts
        return coarse
