"""What is remembered of one series: its first rows, its last rows and a coarse whole, all bounded.

A *series* is one tag of one attempt of one stream, seen through one *view*: the signals that must be
logged at the same step for a row to count. Rows are a signal's points, numbered from 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sentinel.frames.coarse import Coarse, Floats, Steps, next_checkpoint


@dataclass(frozen=True)
class Rows:
    """Consecutive rows. ``columns`` has one column for the judged value and one for each number beside it.

    ``lists`` holds what is a list beside a row: rows x length, where the length grows as the run goes on.
    """

    step: Steps
    time: Floats
    position: NDArray[np.int64]  # ordinal, in the stream, of the point that completed the row
    columns: Floats  # rows x columns; NaN where a context signal is not known yet
    lists: tuple[Floats, ...]

    def __len__(self) -> int:
        return len(self.step)

    def __getitem__(self, part: slice) -> "Rows":
        lists = tuple(one[part] for one in self.lists)
        return Rows(self.step[part], self.time[part], self.position[part], self.columns[part], lists)

    def last(self, count: int) -> "Rows":
        """No more than the last ``count`` of them."""
        return self[max(0, len(self) - count) :]

    @classmethod
    def joined(cls, parts: Sequence["Rows"]) -> Self:
        """The rows of some parts, one behind the other."""
        return cls(
            np.concatenate([part.step for part in parts]),
            np.concatenate([part.time for part in parts]),
            np.concatenate([part.position for part in parts]),
            np.concatenate([part.columns for part in parts]),
            tuple(_padded(one) for one in zip(*(part.lists for part in parts), strict=True)),
        )

    @classmethod
    def none(cls, columns: int, lists: int) -> Self:
        """No rows, of that many columns and lists."""
        integers = np.empty(0, np.int64)
        return cls(integers, np.empty(0), integers, np.empty((0, columns)), (np.empty((0, 0)),) * lists)

    def dump(self) -> list[Any]:
        """Everything `load` needs."""
        return [self.step, self.time, self.position, self.columns, list(self.lists)]

    @classmethod
    def load(cls, state: list[Any]) -> Self:
        """Undo `dump`."""
        step, time, position, columns, lists = state
        return cls(step, time, position, columns, tuple(lists))


def _padded(parts: Sequence[Floats]) -> Floats:
    """Lists of different lengths below each other."""
    longest = max(part.shape[1] for part in parts)
    return np.concatenate([part if part.shape[1] == longest else _wide(part, longest) for part in parts])


def _wide(part: Floats, width: int) -> Floats:
    return np.pad(part, [(0, 0), (0, width - part.shape[1])], constant_values=np.nan)


@dataclass(frozen=True)
class Window:
    """One series as a detector may see it: rows to judge, and what precedes them."""

    first: int  # index of the first row to judge
    rows: Rows
    head: Rows  # from row 0 on
    recent: Rows  # up to row ``first``
    earlier: Rows  # up to row 0, of the attempt before
    coarse: dict[str, Floats]
    ended: bool = False  # the row to judge is the last one of a run that is over

    @property
    def parts(self) -> tuple[tuple[int, Rows], ...]:
        """The attempt's rows in three parts, each with the index of its first row; a row may be in two."""
        return (0, self.head), (self.first - len(self.recent), self.recent), (self.first, self.rows)


@dataclass
class SeriesHistory:
    """Bounded memory of one series; ``head_rows`` and ``recent_rows`` are what its detectors declare."""

    head_rows: int
    recent_rows: int
    earlier: Rows  # of the attempt before; the series has as many columns and lists
    sliced: bool  # whether one of its detectors looks at the coarse view
    count: int = 0
    head: Rows = field(init=False)
    recent: Rows = field(init=False)
    coarse: Coarse = field(init=False)
    checkpoint: dict[str, Floats] = field(init=False)

    def __post_init__(self) -> None:
        self.head = self.recent = self.earlier[:0]
        self.coarse = Coarse(self.earlier.columns.shape[1])
        self.checkpoint = self.coarse.view()

    def extend(self, rows: Rows) -> Iterator[Window]:
        """Remember rows, and give the windows in which they are judged; none spans two coarse views."""
        while len(rows):
            cut = next_checkpoint(self.count) - self.count if self.sliced else len(rows)
            yield self._push(rows[:cut])
            rows = rows[cut:]

    def end(self) -> Window:
        """The window in which the last row is judged once more, with the coarse view as of now."""
        first, last = self.count - 1, self.recent.last(1)
        ahead = self.recent[: len(self.recent) - 1]
        return Window(first, last, self.head[:first], ahead, self.earlier, self.coarse.view(), ended=True)

    def _push(self, rows: Rows) -> Window:
        window = Window(self.count, rows, self.head, self.recent, self.earlier, self.checkpoint)
        if (room := self.head_rows - len(self.head)) > 0:
            self.head = Rows.joined([self.head, rows[:room]])
        self.recent = Rows.joined([self.recent, rows.last(self.recent_rows)]).last(self.recent_rows)
        self.coarse.push(rows.columns, rows.step)
        before, self.count = self.count, self.count + len(rows)
        if self.count == next_checkpoint(before):
            self.checkpoint = self.coarse.view()
        return window

    def dump(self) -> list[Any]:
        """Everything `load` needs."""
        rows = [part.dump() for part in (self.earlier, self.head, self.recent)]
        shape = self.head_rows, self.recent_rows, self.sliced, self.count
        return [*shape, *rows, self.coarse.dump(), self.checkpoint]

    @classmethod
    def load(cls, state: list[Any]) -> Self:
        """Undo `dump`."""
        head_rows, recent_rows, sliced, count, earlier, head, recent, coarse, checkpoint = state
        series = cls(head_rows, recent_rows, Rows.load(earlier), sliced, count)
        series.head, series.recent = Rows.load(head), Rows.load(recent)
        series.coarse, series.checkpoint = Coarse.load(coarse), checkpoint
        return series
