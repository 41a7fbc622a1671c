"""Remembers one series in bounded memory: its first rows, its last rows, and coarse buckets of all rows.

A *series* is one tag in one attempt of one stream, seen through one *view*. The view says which signals must
be logged at the same step for a row to count. Rows are the points of a signal, numbered from 0.
"""

from collections.abc import Iterator
from typing import Any, Self

import msgspec

from sentinel.frames.coarse import Coarse, Floats, next_checkpoint
from sentinel.frames.rows import SPARE, Rows, Tape


class Window(msgspec.Struct, frozen=True, gc=False):
    """What a detector may see of one series: the rows to judge, and what precedes them."""

    first: int  # index of the first row to judge
    end: int  # index after the last one
    seen: Rows  # the rows that precede the rows to judge, then these
    head: Rows  # from row 0 on
    earlier: Rows  # up to row 0, of the attempt before
    coarse: dict[str, Floats]
    ended: bool = False  # the row to judge is the last one of a run that is over

    @property
    def begin(self) -> int:
        """Index of the first row of ``seen``."""
        return self.end - len(self.seen)

    @property
    def rows(self) -> Rows:
        """The rows to judge."""
        return self.seen.last(self.end - self.first)


class SeriesHistory:
    """Bounded memory of one series. ``head_rows`` and ``recent_rows`` are what its detectors declare.

    ``earlier`` holds rows of the attempt before, with as many columns and lists. ``sliced`` says whether one
    of its detectors asks for the coarse view.
    """

    def __init__(self, head_rows: int, recent_rows: int, earlier: Rows, sliced: bool) -> None:
        self.count = 0
        self.earlier = earlier
        self.head = earlier[:0]
        self._head_rows = head_rows
        self._recent_rows = max(recent_rows, SPARE)
        self._sliced = sliced
        self._tape = Tape(self.head, self._recent_rows)
        self._coarse = Coarse(earlier.columns.shape[1])
        self._checkpoint = self._coarse.view()

    @property
    def recent(self) -> Rows:
        """The last rows."""
        return self._tape.rows.last(self._recent_rows).copy()

    @property
    def coarse(self) -> Coarse:
        """Buckets of the whole attempt. Rows are added when a detector asks, or before they are forgotten."""
        self._slice(self._tape.rows)
        return self._coarse

    def _slice(self, rows: Rows) -> None:
        waiting = rows.last(self.count - self._coarse.rows)
        self._coarse.push(waiting.columns, waiting.step)

    def extend(self, rows: Rows) -> Iterator[Window]:
        """Remember rows, and give the windows to judge. A window never spans two coarse views."""
        while len(rows):
            cut = next_checkpoint(self.count) - self.count if self._sliced else len(rows)
            yield self._push(rows[:cut])
            rows = rows[cut:]

    def end(self) -> Window:
        """The window in which the last row is judged again, with the present coarse view."""
        first, coarse = self.count - 1, self.coarse.view()
        return Window(first, self.count, self.recent, self.head[:first], self.earlier, coarse, ended=True)

    def _push(self, rows: Rows) -> Window:
        first, head, coarse = self.count, self.head, self._checkpoint
        seen, self.count = self._tape.append(rows), first + len(rows)
        if (room := self._head_rows - len(head)) > 0:
            self.head = Rows.joined([head, rows[:room]])
        if self.count - self._coarse.rows > self._recent_rows:
            self._slice(seen)
        if self._sliced and self.count == next_checkpoint(first):
            self._checkpoint = self.coarse.view()
        return Window(first, self.count, seen, head, self.earlier, coarse)

    def dump(self) -> list[Any]:
        """Everything `load` needs."""
        shape = self._head_rows, self._recent_rows, self._sliced, self.count
        rows = [part.dump() for part in (self.earlier, self.head, self.recent)]
        return [*shape, *rows, self._coarse.dump(), self._checkpoint]

    @classmethod
    def load(cls, state: list[Any]) -> Self:
        """Undo `dump`."""
        head_rows, recent_rows, sliced, count, earlier, head, recent, coarse, checkpoint = state
        series = cls(head_rows, recent_rows, Rows.load(earlier), sliced)
        series.count, series.head = count, Rows.load(head)
        series._tape = Tape(Rows.load(recent), recent_rows)
        series._coarse, series._checkpoint = Coarse.load(coarse), checkpoint
        return series
