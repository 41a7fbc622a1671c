"""The verdicts of one detector over many series, as stretches of equal severity.

Of a hundred thousand rows near a threshold only a few hundred may begin or end an incident. A verdict object
is made on demand, for such a row only.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, overload

import numpy as np
import polars as pl

from sentinel.alerts.turns import Key, Stretch, Verdict
from sentinel.catalogue.rules import Known
from sentinel.detectors.api import History
from sentinel.detectors.schema import ABOVE, BELOW, FINDINGS, INDEX, ONSET, SERIES, SEVERITY, STEP, VARIANT
from sentinel.frames.history import Window
from sentinel.frames.rows import Rows


@dataclass(frozen=True)
class Judged:
    """A series that was judged: whose verdicts these are, of which signal, over which rows of what log."""

    key: Key
    signal: str
    window: Window
    known: Known | None = None


class Verdicts:
    """The FINDINGS of a detector for some series, by their numbers."""

    def __init__(self, found: pl.DataFrame, series: Mapping[int, Judged], history: History) -> None:
        self._number, self._severity = found[SERIES].to_numpy(), found[SEVERITY].to_numpy()
        self._rows = found.select(SERIES, INDEX, STEP, SEVERITY, VARIANT, ONSET, ABOVE, BELOW)
        self._evidence = found.drop(list(FINDINGS))
        self._series = series
        self._history = history

    def stretches(self) -> Iterator[Stretch]:
        """All of them, in order within each series."""
        changes = np.diff(self._number, prepend=-1) | np.diff(self._severity, prepend=-1)
        begins = [*np.flatnonzero(changes).tolist(), self._rows.height]
        return (_StretchOfRows(self, range(*bounds)) for bounds in pairwise(begins))

    def __getitem__(self, row: int) -> Verdict:
        number, index, step, severity, variant, onset_step, above, below = self._rows.row(row)
        one = self._series[number]
        rows, place = one.window.seen, index - one.window.begin
        if onset_step is not None:
            onset = onset_step, self._time(one.window, index, onset_step)
        elif (began := self._first_beyond(rows, place, above, below)) is not None:
            onset = int(rows.step[began]), _known(rows.time[began])
        else:
            onset = None, None
        return Verdict(
            key=one.key,
            signal=one.signal,
            index=index,
            step=step,
            time=_known(rows.time[place]),
            position=int(rows.position[place]),
            severity=severity,
            variant=variant,
            onset_step=onset[0],
            onset_time=onset[1],
            evidence=_Evidence(self._evidence, row),
            known=one.known,
            final=one.window.ended,
        )

    def _first_beyond(self, rows: Rows, place: int, above: float | None, below: float | None) -> int | None:
        """Where the points began that lie mostly beyond a value and end with the row at ``place``.

        Backwards from there, a point beyond counts one and another takes two away. The stretch is where the
        count is highest before it is used up. So a good point does not hide what precedes it, but some of
        them do. None if the count never begins. It looks no further back than the verdict does.
        """
        if above is None and below is None:
            return None
        values = rows.value[max(0, place - self._history.recent) : place + 1][::-1]
        high, low = math.inf if above is None else above, -math.inf if below is None else below
        count = np.where((values > high) | (values < low), 1, -2).cumsum()
        used_up = np.flatnonzero(count <= 0)
        count = count[: used_up[0]] if len(used_up) else count
        return place - int(count.argmax()) if len(count) else None

    def _time(self, window: Window, index: int, step: int) -> float | None:
        """The time of a step, if the verdict on row ``index`` may depend on the row of that step.

        Other rows may be present by chance, depending on how the log was cut into polls.
        """
        for start, rows in (0, window.head), (window.begin, window.seen):
            at = int(np.searchsorted(rows.step, step))
            seen = start + at < self._history.head or index - self._history.recent <= start + at
            if at < len(rows) and rows.step[at] == step and seen:
                return _known(rows.time[at])
        return None


class _StretchOfRows(Sequence[Verdict]):
    """A stretch: some rows of `Verdicts`."""

    __slots__ = ("_all", "_rows")

    def __init__(self, verdicts: Verdicts, rows: range) -> None:
        self._all, self._rows = verdicts, rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> Verdict: ...
    @overload
    def __getitem__(self, at: slice) -> "_StretchOfRows": ...
    def __getitem__(self, at: int | slice) -> "Verdict | _StretchOfRows":
        if isinstance(at, slice):
            return _StretchOfRows(self._all, self._rows[at])
        return self._all[self._rows[at]]


class _Evidence(Mapping[str, Any]):
    """A row of a frame that is read on first use."""

    __slots__ = ("__dict__", "_frame", "_row")

    def __init__(self, frame: pl.DataFrame, row: int) -> None:
        self._frame, self._row = frame, row

    @cached_property
    def _values(self) -> dict[str, Any]:
        return self._frame.row(self._row, named=True)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return self._frame.width


def _known(time: float) -> float | None:
    return float(time) if math.isfinite(time) else None
