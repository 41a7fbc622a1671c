"""Runs the detectors over the new rows of many runs at once, with one frame for each detector.

Their verdicts are segments of equal severity. Of a hundred thousand rows near a threshold only a few hundred
may begin or end an incident, and a verdict object is made on demand, for such a row only.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any, overload

import msgspec
import numpy as np
import polars as pl

from sentinel.common.errors import is_defect
from sentinel.detection.second_opinions import opinions
from sentinel.detectors.api import Detector
from sentinel.detectors.reading.looks import Look
from sentinel.detectors.schema import (
    ABOVE,
    BELOW,
    FINDINGS,
    INDEX,
    INTERIM,
    LOOK,
    ONSET,
    SERIES,
    SEVERITY,
    SKIPPED,
    STEP,
    VARIANT,
)
from sentinel.detectors.stats import first_of_mostly
from sentinel.incidents.verdict_merge import Key, Onset, Segment, Verdict
from sentinel.series.history import Window
from sentinel.series.rows import Rows, finite_or_none
from sentinel.series.stream import SeriesRows
from sentinel.series.windows import frame, is_due

_NO_LOOK = -1
"""In place of a look, for rows at which no card was read."""

_MAX_DETECTOR_THREADS = 2
"""Detectors that judge at once, if polars has as many threads. Of more, most would wait for one another."""

_MIN_ROWS_FOR_THREADS = 10_000
"""New rows from which on a second thread saves more than it costs."""


class Verdicts:
    """The FINDINGS of a detector for some series, by their numbers."""

    def __init__(self, findings: pl.DataFrame, series: Mapping[int, SeriesRows], detector: Detector) -> None:
        self._number = findings[SERIES].to_numpy()
        self._severity = findings[SEVERITY].to_numpy()
        self._look = findings[LOOK].fill_null(_NO_LOOK).to_numpy()
        self._is_interim = findings[INTERIM].is_not_null().to_numpy()
        self._rows = findings.select(
            SERIES, INDEX, STEP, SEVERITY, VARIANT, ONSET, ABOVE, BELOW, LOOK, INTERIM
        )
        self._evidence = findings.drop(list(FINDINGS))
        self._series = series
        self._detector = detector

    def segments(self) -> Iterator[tuple[SeriesRows, Segment]]:
        """Yield the verdicts in segments of one series and one severity, in order within each series.

        A look is a segment of its own.
        """
        changes = np.diff(self._number, prepend=-1) | np.diff(self._severity, prepend=-1)
        is_look = (self._look != _NO_LOOK) | self._is_interim
        changes |= is_look | np.append(False, is_look[:-1])
        begins = [*np.flatnonzero(changes).tolist(), self._rows.height]
        for begin, end in pairwise(begins):
            yield self._series[int(self._number[begin])], _RowSegment(self, range(begin, end))

    def __getitem__(self, row: int) -> Verdict:
        number, index, step, severity, variant, onset_step, above, below, look, interim = self._rows.row(row)
        series = self._series[number]
        window = series.window
        rows = window.recent
        recent_row = index - window.begin

        def onset() -> Onset | None:
            if onset_step is not None:
                return onset_step, self._time(window, index, onset_step)
            first = self._first_beyond(rows, recent_row, above, below)
            return None if first is None else (int(rows.step[first]), finite_or_none(rows.time[first]))

        def level(count: int) -> float | None:
            first = max(0, recent_row + 1 - min(count, self._detector.history.recent))
            return float(np.median(rows.value[first : recent_row + 1]))

        return Verdict(
            key=_key(series, self._detector),
            signal=series.spec.judged,
            index=index,
            step=step,
            time=finite_or_none(rows.time[recent_row]),
            position=int(window.position[index - window.first]),
            severity=severity,
            variant=variant,
            onset=onset,
            limits=(above, below),
            level=level,
            evidence=_Evidence(self._evidence, row),
            known=series.known,
            final=window.ended,
            look=None if look is None else Look(look),
            is_of_card=variant in self._detector.reads,
            interim=interim,
        )

    def _first_beyond(self, rows: Rows, row: int, above: float | None, below: float | None) -> int | None:
        """Return the row of the first of the points that lie mostly beyond a value and end at ``row``.

        None if the last point is not beyond the value. It looks no further back than the verdict does.
        """
        if above is None and below is None:
            return None
        begin = max(0, row - self._detector.history.recent)
        values = rows.value[begin : row + 1]
        high = math.inf if above is None else above
        low = -math.inf if below is None else below
        first = first_of_mostly((values > high) | (values < low))
        return None if first is None else begin + first

    def _time(self, window: Window, index: int, step: int) -> float | None:
        """Return the time of a step, if the verdict on row ``index`` may depend on the row of that step.

        Other rows may be present by chance, depending on how the log was cut into polls.
        """
        history = self._detector.history
        for begin, rows in (0, window.head), (window.begin, window.recent):
            row = int(np.searchsorted(rows.step, step))
            is_in_history = begin + row < history.head or index - history.recent <= begin + row
            if is_in_history and row < len(rows) and rows.step[row] == step:
                return finite_or_none(rows.time[row])
        return None


class _RowSegment(Sequence[Verdict]):
    """A segment: some rows of `Verdicts`."""

    __slots__ = ("_all", "_rows")

    def __init__(self, verdicts: Verdicts, rows: range) -> None:
        self._all = verdicts
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Verdict: ...
    @overload
    def __getitem__(self, index: slice) -> "_RowSegment": ...
    def __getitem__(self, index: int | slice) -> "Verdict | _RowSegment":
        if isinstance(index, slice):
            return _RowSegment(self._all, self._rows[index])
        return self._all[self._rows[index]]


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


class RowDetection(msgspec.Struct, frozen=True):
    """The detectors of rows, with the user's thresholds by detector. ``failed`` is called when one raises.

    ``row_counts`` counts the rows of each run by detector and by the reason why the detector skipped them; an
    empty reason stands for rows that it judged.
    """

    parameters: Mapping[str, Mapping[str, Any]]
    failed: Callable[[str, str, BaseException], None]
    row_counts: dict[str, Counter[tuple[str, str]]] = msgspec.field(default_factory=dict)

    def segments(
        self, new_rows: Sequence[SeriesRows], tracked_keys: set[Key]
    ) -> Iterator[tuple[SeriesRows, Segment]]:
        """Yield the verdicts on new rows, each segment with its rows, but clean ones only for
        ``tracked_keys`` and for keys with a finding, and what the forest says of the outcomes.

        A clean verdict means something only where there was a finding. Each window stands for itself, so all
        windows of a series are judged in one frame.
        """
        tracked_by_detector: dict[str, set[Key]] = {}
        for key in tracked_keys:
            tracked_by_detector.setdefault(key.detector, set()).add(key)
        tasks: dict[str, tuple[Detector, list[SeriesRows]]] = {}
        for series in new_rows:
            for detector in series.spec.detectors:
                if is_due(detector, series.window):
                    tasks.setdefault(detector.name, (detector, []))[1].append(series)
        row_count = sum(series.window.end - series.window.first for series in new_rows)
        threads = min(_MAX_DETECTOR_THREADS, pl.thread_pool_size())
        with ThreadPoolExecutor(threads) as executor:
            map_tasks = executor.map if threads > 1 and row_count > _MIN_ROWS_FOR_THREADS else map
            for (detector, _), frames in zip(
                tasks.values(), map_tasks(self._detect, tasks.values()), strict=True
            ):
                tracked = tracked_by_detector.get(detector.name, set())
                for all_series, findings in frames:
                    yield from self._verdicts(detector, all_series, findings, tracked)
        yield from opinions(new_rows, self.failed)

    def _detect(
        self, task: tuple[Detector, Sequence[SeriesRows]]
    ) -> list[tuple[Sequence[SeriesRows], pl.DataFrame]]:
        """Run one detector over some series in one frame; if it raises, over each series alone.

        Return the series of each frame with the findings. A series on which the detector raises is left out.
        """
        detector, new_rows = task
        try:
            window = frame(detector, [(series.spec, series.window) for series in new_rows])
            return [(new_rows, detector.detect(window, self.parameters.get(detector.name)))]
        except BaseException as error:  # a broken detector must not stop the others
            if not is_defect(error):
                raise
            if len(new_rows) == 1:
                self.failed(detector.name, new_rows[0].run, error)
                return []
            return [verdicts for series in new_rows for verdicts in self._detect((detector, [series]))]

    def _verdicts(
        self, detector: Detector, all_series: Sequence[SeriesRows], findings: pl.DataFrame, tracked: set[Key]
    ) -> Iterator[tuple[SeriesRows, Segment]]:
        """Yield the verdicts of one detector. ``tracked`` are its keys, and those with findings join them."""
        self._count(detector, all_series, findings)
        # NaN for null
        number = findings[SERIES].to_numpy()
        severity = findings[SEVERITY].to_numpy()
        is_finding = severity > 0
        tracked.update(
            _key(all_series[series_number], detector) for series_number in np.unique(number[is_finding])
        )
        runs = {key.run for key in tracked}
        selected = {
            series_number: series
            for series_number, series in enumerate(all_series)
            if series.run in runs and _key(series, detector) in tracked
        }
        if not selected:
            return
        is_selected, has_ended = np.zeros((2, len(all_series)), bool)
        is_selected[[*selected]] = True
        has_ended[[*selected]] = [series.window.ended for series in selected.values()]
        # If the last row of a run is clean, it was counted before, but for what the cards say at the end.
        is_new = (
            ~has_ended[number] | (findings[LOOK].is_not_null() | findings[INTERIM].is_not_null()).to_numpy()
        )
        is_decided = is_finding | (~np.isnan(severity) & is_new)
        rows = findings.filter(pl.Series(is_selected[number] & is_decided))
        yield from Verdicts(rows, selected, detector).segments()

    def _count(self, detector: Detector, all_series: Sequence[SeriesRows], findings: pl.DataFrame) -> None:
        """Count the rows of each run. The last row of a run that is over was skipped before."""
        counts = findings.group_by(SERIES, SKIPPED, maintain_order=True).len()
        for series_number, reason, rows in counts.iter_rows():
            series = all_series[series_number]
            if reason is None or not series.window.ended:
                self.row_counts.setdefault(series.run, Counter())[detector.name, reason or ""] += rows


def _key(series: SeriesRows, detector: Detector) -> Key:
    """Return the key of the detector's verdicts on these rows."""
    return Key(series.run, series.stream, series.attempt, series.tag, detector.name)
