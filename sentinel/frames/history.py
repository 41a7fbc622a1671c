"""What is remembered of one series: its first rows, its last rows and a coarse whole, all bounded.

A *series* is one tag of one attempt of one stream, seen through one *view*: the signals that must be
logged at the same step for a row to count. Rows are a signal's finite points, numbered from 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sentinel.frames.coarse import Coarse, Floats, Steps, next_checkpoint


@dataclass(frozen=True)
class Rows:
    """Consecutive rows. ``columns`` has one column for the judged value and one for each context signal."""

    step: Steps
    time: Floats
    position: NDArray[np.int64]  # ordinal, in the stream, of the point that completed the row
    columns: Floats  # rows x columns; NaN where a context signal is not known yet

    def __len__(self) -> int:
        return len(self.step)

    def __getitem__(self, part: slice) -> "Rows":
        return Rows(self.step[part], self.time[part], self.position[part], self.columns[part])


class Kept(NamedTuple):
    """Rows held for later windows: ``start`` is the index of the first one."""

    start: int
    step: Steps
    time: Floats
    columns: Floats

    def then(self, rows: Rows) -> "Kept":
        """These rows with others behind them."""
        return Kept(
            self.start,
            np.concatenate([self.step, rows.step]),
            np.concatenate([self.time, rows.time]),
            np.concatenate([self.columns, rows.columns]),
        )

    def first(self, count: int) -> "Kept":
        """No more than the first ``count`` of them."""
        return Kept(self.start, self.step[:count], self.time[:count], self.columns[:count])

    def last(self, count: int) -> "Kept":
        """No more than the last ``count`` of them."""
        drop = max(0, len(self.step) - count)
        return Kept(self.start + drop, self.step[drop:], self.time[drop:], self.columns[drop:])

    def copy(self) -> "Kept":
        """The same rows without the larger arrays that they are parts of."""
        return Kept(self.start, self.step.copy(), self.time.copy(), self.columns.copy())


@dataclass(frozen=True)
class Window:
    """One series as a detector may see it: rows to judge, and what precedes them."""

    first: int  # index of the first row to judge
    rows: Rows
    head: Kept
    recent: Kept
    coarse: dict[str, Floats]


@dataclass
class SeriesHistory:
    """Bounded memory of one series; ``head_rows`` and ``recent_rows`` are what its detectors declare."""

    head_rows: int
    recent_rows: int
    width: int  # number of columns
    sliced: bool  # whether one of its detectors looks at the coarse view
    count: int = 0
    head: Kept = field(init=False)
    recent: Kept = field(init=False)
    coarse: Coarse = field(init=False)
    checkpoint: dict[str, Floats] = field(init=False)

    def __post_init__(self) -> None:
        blank = Kept(0, np.empty(0, np.int64), np.empty(0), np.empty((0, self.width)))
        self.head = self.recent = blank
        self.coarse = Coarse(self.width)
        self.checkpoint = self.coarse.view()

    def slices(self, rows: Rows) -> Iterator[Rows]:
        """``rows`` cut where the coarse view changes, so that a window never spans two of them."""
        index = self.count
        while len(rows) and self.sliced:
            cut = next_checkpoint(index) - index
            yield rows[:cut]
            index, rows = index + cut, rows[cut:]
        if len(rows):
            yield rows

    def push(self, rows: Rows) -> Window:
        """Remember one of `slices`, and give the window in which its rows are judged."""
        window = Window(self.count, rows, self.head, self.recent, self.checkpoint)
        if (room := self.head_rows - len(self.head.step)) > 0:
            self.head = self.head.then(rows[:room])
        self.recent = self.recent.then(rows).last(self.recent_rows).copy()
        self.coarse.push(rows.columns, rows.step)
        before, self.count = self.count, self.count + len(rows)
        if self.count == next_checkpoint(before):
            self.checkpoint = self.coarse.view()
        return window

    def dump(self) -> list[Any]:
        """Everything `load` needs."""
        return [
            self.head_rows, self.recent_rows, self.width, self.sliced, self.count,
            list(self.head), list(self.recent), self.coarse.dump(), self.checkpoint,
        ]  # fmt: skip

    @classmethod
    def load(cls, state: list[Any]) -> Self:
        """Undo `dump`."""
        *shape, head, recent, coarse, checkpoint = state
        series = cls(*shape)
        series.head, series.recent = Kept(*head), Kept(*recent)
        series.coarse, series.checkpoint = Coarse.load(coarse), checkpoint
        return series
