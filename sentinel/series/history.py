"""Remembers one series in bounded memory: its first rows, its last rows, and coarse buckets of all rows.

A *series* is one tag in one attempt of one stream, for one `SeriesSpec`. The spec says which signals must be
logged at the same step for a row to count. Rows are the points of a signal, numbered from 0.
"""

from collections.abc import Collection, Iterator
from typing import Any, Self

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from sentinel.common.conversion import converter
from sentinel.detectors.interims import STAGES, is_interim, next_interim
from sentinel.detectors.stats import Ints
from sentinel.series.buckets import Buckets, Floats, Steps, next_checkpoint
from sentinel.series.rows import SPARE, RowBuffer, Rows


class Window(msgspec.Struct, frozen=True, gc=False):
    """The rows of one series to judge, and what a detector may see of the rows before them."""

    first: int  # index of the first row to judge
    end: int  # index after the last one
    recent: Rows  # the rows that precede the rows to judge, then these
    position: NDArray[np.int64]  # of each row to judge: the ordinal, in the stream, of its last point
    head: Rows  # from row 0 on
    earlier: Rows  # up to row 0, of the attempt before
    coarse: dict[str, Floats]
    continues: bool = False  # the attempt goes on with a loss that had fallen
    ended: bool = False  # the row to judge is the last one of a run that is over
    interim: bool = False  # in its last row the run so far is judged as a whole
    stage: float = 0.0  # of `interims.STAGES`, if it is done in this row
    courses: dict[str, Floats] = {}  # of other signals, by column, if it is

    @property
    def begin(self) -> int:
        """Index of the first row of ``recent``."""
        return self.end - len(self.recent)

    @property
    def rows(self) -> Rows:
        """The rows to judge."""
        return self.recent.last(self.end - self.first)


_NO_BUCKETS = Buckets().view()


class SeriesHistory:
    """Bounded memory of one series. ``head_rows`` and ``recent_rows`` are what its detectors declare.

    ``earlier`` holds rows of the attempt before, with as many lists. ``sliced`` says whether one of its
    detectors asks for the coarse view. The buckets of all rows have the columns ``plotted``, too.
    """

    __slots__ = (
        "_buffer",
        "_checkpoint",
        "_coarse",
        "_head",
        "_head_rows",
        "_plotted",
        "_recent_rows",
        "_sliced",
        "_stages",
        "count",
        "earlier",
        "position",
    )

    def __init__(
        self, head_rows: int, recent_rows: int, earlier: Rows, sliced: bool, plotted: Collection[int]
    ) -> None:
        self.count = 0
        self.position = -1  # of the last row, as `Window` has it
        self.earlier = earlier
        self._head: Rows | None = None  # the last rows begin with it, until the buffer forgets row 0
        self._head_rows = head_rows
        self._recent_rows = max(recent_rows, SPARE)
        self._sliced = sliced
        self._plotted = plotted
        self._buffer = RowBuffer(Rows.none(len(earlier.lists)), self._recent_rows)
        self._coarse: Buckets | None = None  # until a row is forgotten
        self._checkpoint = _NO_BUCKETS
        self._stages = 0  # of the plan that are done

    @property
    def head(self) -> Rows:
        """The first rows."""
        return self._buffer[: self._head_rows] if self._head is None else self._head

    @property
    def recent(self) -> Rows:
        return self._buffer[-self._recent_rows :]

    def last_steps(self, rows: int) -> Steps:
        """Return the steps of at most that many last rows. At least `SPARE` rows are remembered."""
        return self._buffer[-min(rows, self._recent_rows) :].step

    @property
    def coarse(self) -> Buckets:
        """Buckets of the whole attempt. Each call makes them anew until a row is forgotten."""
        return self._buckets_with(self._buffer[:])

    def _buckets_with(self, rows: Rows) -> Buckets:
        """Return the buckets, after adding those of the last rows that are not in them yet."""
        coarse = self._coarse or Buckets()
        new_rows = rows.last(self.count - coarse.rows)
        plotted = {index: new_rows.column(index) for index in new_rows.columns if index in self._plotted}
        coarse.push(new_rows.value, new_rows.step, plotted)
        return coarse

    def extend(self, rows: Rows, position: NDArray[np.int64], stages: Ints | None = None) -> Iterator[Window]:
        """Remember rows, and yield the windows to judge. A window never spans two coarse views, nor, where
        ``stages`` says how many of the plan are done in each row, one in which the run so far is judged as a
        whole.
        """
        while len(rows):
            ends = [self.count + len(rows)]
            ends += [next_checkpoint(self.count)] if self._sliced else []
            if stages is not None:
                ends += [next_interim(self.count)]
                ends += [self.count + 1 + int(row) for row in np.flatnonzero(stages > self._stages)[:1]]
            room = min(ends) - self.count
            window = self._push(rows[:room], position[:room])
            if stages is not None:
                window = self._as_interim(window, int(stages[room - 1]))
                stages = stages[room:]
            yield window
            rows = rows[room:]
            position = position[room:]

    def _as_interim(self, window: Window, stages: int) -> Window:
        """Return the window with what its last row is, in which so many stages of the plan are done."""
        is_stage = stages > self._stages
        self._stages = max(self._stages, stages)
        stage = STAGES[stages - 1] if is_stage else 0.0
        is_whole = is_stage or is_interim(self.count)
        return replace(window, interim=True, stage=stage) if is_whole else window

    def end(self) -> Window:
        """Return the window in which the last row is judged again, with the present coarse view."""
        last_index = self.count - 1
        return Window(
            first=last_index,
            end=self.count,
            recent=self.recent,
            position=np.array([self.position]),
            head=self.head[:last_index],
            earlier=self.earlier,
            coarse=self.coarse.view(),
            ended=True,
        )

    def _push(self, rows: Rows, position: NDArray[np.int64]) -> Window:
        """Remember rows, and return their window, which has the head and the coarse view from before them."""
        first_index = self.count
        head = self.head
        coarse = self._checkpoint
        recent = self._buffer.append(rows)
        self.count = first_index + len(rows)
        self.position = int(position[-1])
        if self._head is None and self.count > self._recent_rows:
            self._head = head
        room = self._head_rows - len(head)
        if self._head is not None and room > 0:
            self._head = Rows.joined([head, rows[:room]])
        if self.count - (self._coarse.rows if self._coarse else 0) > self._recent_rows:
            self._coarse = self._buckets_with(recent)
        if self._sliced and self.count == next_checkpoint(first_index):
            self._checkpoint = self.coarse.view()
        return Window(first_index, self.count, recent, position, head, self.earlier, coarse)

    def dump(self) -> "SeriesState":
        """Return everything that `load` needs."""
        checkpoint = None if self._checkpoint is _NO_BUCKETS else self._checkpoint
        rows = (self.earlier, self._head, self.recent)
        shape = (self._head_rows, self._recent_rows, self._sliced, self._plotted)
        return SeriesState(*shape, self.count, self.position, *rows, self._coarse, checkpoint, self._stages)

    @classmethod
    def load(cls, state: Any) -> Self:
        """Undo `dump`. Raises msgspec.ValidationError for what it did not make."""
        stored = _to_state(state)
        earlier = stored.earlier if len(stored.earlier) else Rows.none(len(stored.earlier.lists))
        series = cls(stored.head_rows, stored.recent_rows, earlier, stored.sliced, stored.plotted)
        series.count = stored.count
        series.position = stored.position
        series._head = stored.head
        series._buffer = RowBuffer(stored.recent, stored.recent_rows)
        series._coarse = stored.coarse
        series._checkpoint = stored.checkpoint or _NO_BUCKETS
        series._stages = stored.stages
        return series


class SeriesState(msgspec.Struct, array_like=True):
    """What is stored of a `SeriesHistory`."""

    head_rows: int
    recent_rows: int
    sliced: bool
    plotted: Collection[int]
    count: int
    position: int
    earlier: Rows
    head: Rows | None  # None: the recent rows begin with it
    recent: Rows
    coarse: Buckets | None  # None: the recent rows are all rows
    checkpoint: dict[str, Floats] | None
    stages: int  # of the plan that are done


_to_state = converter(SeriesState)
