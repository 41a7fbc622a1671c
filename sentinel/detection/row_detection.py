"""Runs the detectors over the new rows of many runs at once, with one frame for each detector.

Their verdicts are stretches of equal severity. Of a hundred thousand rows near a threshold only a few hundred
may begin or end an incident, and a verdict object is made on demand, for such a row only.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, overload

import numpy as np
import polars as pl

from sentinel.catalogue.rules import Known
from sentinel.common.errors import is_defect
from sentinel.detectors.api import Detector, History
from sentinel.detectors.schema import (
    ABOVE,
    BELOW,
    FINDINGS,
    INDEX,
    ONSET,
    SERIES,
    SEVERITY,
    SKIPPED,
    STEP,
    VARIANT,
)
from sentinel.incidents.verdict_merge import Key, Onset, Segment, Verdict
from sentinel.runs.ingested import Arrived
from sentinel.series.history import Window
from sentinel.series.rows import Rows
from sentinel.series.windows import frame, is_due

_AT_ONCE = 2
"""Detectors that judge at once, if polars has as many threads. Of more, most would wait for one another."""

_WORTH_THREADS = 10_000
"""New rows from which on a second thread saves more than it costs."""


@dataclass(frozen=True)
class Judged:
    """A series that was judged: whose verdicts these are, of which signal, over which rows of what log."""

    key: Key
    signal: str
    window: Window
    known: Known | None = None


class Verdicts:
    """The FINDINGS of a detector for some series, by their numbers."""

    def __init__(self, findings: pl.DataFrame, series: Mapping[int, Judged], history: History) -> None:
        self._number = findings[SERIES].to_numpy()
        self._severity = findings[SEVERITY].to_numpy()
        self._rows = findings.select(SERIES, INDEX, STEP, SEVERITY, VARIANT, ONSET, ABOVE, BELOW)
        self._evidence = findings.drop(list(FINDINGS))
        self._series = series
        self._history = history

    def segments(self) -> Iterator[Segment]:
        """Return all of them, in order within each series."""
        changes = np.diff(self._number, prepend=-1) | np.diff(self._severity, prepend=-1)
        begins = [*np.flatnonzero(changes).tolist(), self._rows.height]
        return (_StretchOfRows(self, range(*bounds)) for bounds in pairwise(begins))

    def __getitem__(self, row: int) -> Verdict:
        number, index, step, severity, variant, onset_step, above, below = self._rows.row(row)
        judged = self._series[number]
        rows = judged.window.seen
        place = index - judged.window.begin

        def onset() -> Onset | None:
            if onset_step is not None:
                return onset_step, self._time(judged.window, index, onset_step)
            began = self._first_beyond(rows, place, above, below)
            return None if began is None else (int(rows.step[began]), _known(rows.time[began]))

        return Verdict(
            key=judged.key,
            signal=judged.signal,
            index=index,
            step=step,
            time=_known(rows.time[place]),
            position=int(judged.window.position[index - judged.window.first]),
            severity=severity,
            variant=variant,
            onset=onset,
            evidence=_Evidence(self._evidence, row),
            known=judged.known,
            final=judged.window.ended,
        )

    def _first_beyond(self, rows: Rows, place: int, above: float | None, below: float | None) -> int | None:
        """Return where the points began that lie mostly beyond a value and end with the row at ``place``.

        Going back from there, each point beyond the value adds one to a count, and each other point takes
        two away. The points began where the count is highest before it falls to zero. So one good point
        does not hide what precedes it, but several do. None if the last point is not beyond the value. It
        looks no further back than the verdict does.
        """
        if above is None and below is None:
            return None
        values = rows.value[max(0, place - self._history.recent) : place + 1][::-1]
        high = math.inf if above is None else above
        low = -math.inf if below is None else below
        count = np.where((values > high) | (values < low), 1, -2).cumsum()
        used_up = np.flatnonzero(count <= 0)
        count = count[: used_up[0]] if len(used_up) else count
        return place - int(count.argmax()) if len(count) else None

    def _time(self, window: Window, index: int, step: int) -> float | None:
        """Return the time of a step, if the verdict on row ``index`` may depend on the row of that step.

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
        self._all = verdicts
        self._rows = rows

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
        self._frame = frame
        self._row = row

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


@dataclass(frozen=True)
class RowDetection:
    """``parameters`` are the user's thresholds by detector. ``failed`` is called when a detector raises.

    ``looked`` counts the rows that were looked at so far, by run, detector and the reason why the detector
    held back; an empty reason stands for rows that it judged.
    """

    parameters: Mapping[str, Mapping[str, Any]]
    failed: Callable[[str, str, BaseException], None]
    row_counts: dict[str, Counter[tuple[str, str]]] = field(default_factory=dict)

    def segments(self, arrived: Sequence[Arrived], awake: set[Key]) -> Iterator[Segment]:
        """Yield the verdicts of all judged rows, but clean ones only for keys that are ``awake`` or have a
        finding.

        A clean verdict means something only where there was a finding. Each window stands for itself, so all
        windows of a series are judged in one frame.
        """
        awake_of: dict[str, set[Key]] = {}
        for key in awake:
            awake_of.setdefault(key.detector, set()).add(key)
        shown: dict[str, tuple[Detector, list[Arrived]]] = {}
        for arrival in arrived:
            for detector in arrival.series.view.detectors:
                if is_due(detector, arrival.series.window):
                    shown.setdefault(detector.name, (detector, []))[1].append(arrival)
        rows = sum(arrival.series.window.end - arrival.series.window.first for arrival in arrived)
        threads = min(_AT_ONCE, pl.thread_pool_size())
        with ThreadPoolExecutor(threads) as judges:
            look = judges.map if threads > 1 and rows > _WORTH_THREADS else map
            for (detector, _), parts in zip(shown.values(), look(self._detect, shown.values()), strict=True):
                for due, looked in parts:
                    yield from self._verdicts(detector, due, looked, awake_of.get(detector.name, set()))

    def _detect(
        self, shown: tuple[Detector, Sequence[Arrived]]
    ) -> list[tuple[Sequence[Arrived], pl.DataFrame]]:
        """Return what one detector finds in some series: in all at once, or in each alone if it raises on
        them.
        """
        detector, arrived = shown
        try:
            window = frame(detector, [(arrival.series.view, arrival.series.window) for arrival in arrived])
            return [(arrived, detector.detect(window, self.parameters.get(detector.name)))]
        except BaseException as error:  # a broken detector must not stop the others
            if not is_defect(error):
                raise
            if len(arrived) == 1:
                self.failed(detector.name, arrived[0].run, error)
                return []
            return [part for arrival in arrived for part in self._detect((detector, [arrival]))]

    def _verdicts(
        self, detector: Detector, arrived: Sequence[Arrived], looked: pl.DataFrame, awake: set[Key]
    ) -> Iterator[Segment]:
        """Yield the verdicts of one detector; ``awake`` are its keys, and those with findings join them."""
        self._count(detector, arrived, looked)
        # NaN for null
        number = looked[SERIES].to_numpy()
        severity = looked[SEVERITY].to_numpy()
        is_found = severity > 0
        awake.update(_key(arrived[n], detector) for n in np.unique(number[is_found]))
        runs = {key.run for key in awake}
        heard = [
            n for n, arrival in enumerate(arrived) if arrival.run in runs and _key(arrival, detector) in awake
        ]
        if not heard:
            return
        is_heard, has_ended = np.zeros((2, len(arrived)), bool)
        is_heard[heard] = True
        has_ended[heard] = [arrived[n].series.window.ended for n in heard]
        # If the last row of a run is clean, it was counted before.
        decided = is_found | (~np.isnan(severity) & ~has_ended[number])
        kept = looked.filter(pl.Series(is_heard[number] & decided))
        judged = {n: _judged(arrived[n], detector) for n in heard}
        yield from Verdicts(kept, judged, detector.history).segments()

    def _count(self, detector: Detector, arrived: Sequence[Arrived], looked: pl.DataFrame) -> None:
        """Count the rows of each run. The last row of a run that is over was held back before."""
        number = looked[SERIES].to_numpy()
        reasons = looked[SKIPPED]
        held = reasons.drop_nulls()
        of_reason = {"": reasons.is_null(), **{reason: reasons == reason for reason in held.unique()}}
        for reason, is_so in of_reason.items():
            rows_of = np.bincount(number[is_so.fill_null(False).to_numpy()], minlength=len(arrived))
            for arrival, rows in zip(arrived, rows_of.tolist(), strict=True):
                if rows and not (reason and arrival.series.window.ended):
                    self.row_counts.setdefault(arrival.run, Counter())[detector.name, reason] += rows


def _key(arrival: Arrived, detector: Detector) -> Key:
    """Return the key of the detector's verdicts on these rows."""
    return Key(arrival.run, arrival.stream, arrival.series.attempt, arrival.series.tag, detector.name)


def _judged(arrival: Arrived, detector: Detector) -> Judged:
    """Return what the detector's verdicts on these rows are about."""
    return Judged(
        _key(arrival, detector), arrival.series.view.judged, arrival.series.window, arrival.series.known
    )
