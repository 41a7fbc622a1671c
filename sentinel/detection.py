"""Runs the detectors over newly arrived rows of any number of runs at once, one frame a detector."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from detectors.api import Detector
from detectors.schema import SERIES, SEVERITY
from sentinel.alerts.turns import Key, Stretch
from sentinel.frames.history import SeriesHistory, Window
from sentinel.frames.windows import frame, is_due
from sentinel.runs.log import Arrived
from sentinel.verdicts import Judged, Verdicts

Seen = tuple[Arrived, Window]


@dataclass(frozen=True)
class Detection:
    """``parameters`` are the user's, by detector; ``failed`` hears of a detector that raised on a run."""

    parameters: Mapping[str, Mapping[str, Any]]
    failed: Callable[[str, str, Exception], None]

    def stretches(self, arrived: Sequence[Arrived], awake: set[Key]) -> Iterator[Stretch]:
        """A verdict for every row judged, but clean ones only for keys that are ``awake``.

        A clean verdict means something only where there was a finding; keys with findings join ``awake``.
        """
        for windows in _rounds(arrived):
            shown: dict[str, tuple[Detector, list[Seen]]] = {}
            for one, window in windows:
                for detector in one.rows.view.detectors:
                    if is_due(detector, window):
                        shown.setdefault(detector.name, (detector, []))[1].append((one, window))
            for detector, series in shown.values():
                yield from self._judge(detector, series, awake)

    def _judge(self, detector: Detector, series: Sequence[Seen], awake: set[Key]) -> Iterator[Stretch]:
        try:
            window = frame(detector, [(one.rows.view, window) for one, window in series])
            found = detector.run(window, self.parameters.get(detector.name))
        except Exception as error:  # noqa: BLE001  a broken detector must not stop the others
            if len(series) == 1:
                self.failed(detector.name, series[0][0].run, error)
                return
            for one in series:
                yield from self._judge(detector, [one], awake)
            return
        keys = [_key(one, detector) for one, _ in series]
        awake.update(keys[i] for i in found.filter(pl.col(SEVERITY) > 0)[SERIES].unique())
        heard = pl.Series([key in awake for key in keys], dtype=pl.Boolean)
        kept = found.filter(heard.gather(found[SERIES]))
        judged = [
            Judged(key, one.rows.view.judged, window) for key, (one, window) in zip(keys, series, strict=True)
        ]
        yield from Verdicts(kept, judged, detector.history).stretches()


def _rounds(arrived: Sequence[Arrived]) -> Iterator[list[Seen]]:
    """Windows to judge; a series has at most one in a round, and its rounds follow its rows."""
    parts: dict[int, list[tuple[Arrived, SeriesHistory]]] = {}  # in which a series arrived, by its history
    for one in arrived:
        history = one.rows.attempt.history(one.rows.view, one.rows.tag)
        parts.setdefault(id(history), []).append((one, history))
    series = [_windows(one) for one in parts.values()]
    while seen := [window for windows in series if (window := next(windows, None))]:
        yield seen


def _windows(parts: Sequence[tuple[Arrived, SeriesHistory]]) -> Iterator[Seen]:
    for one, history in parts:
        for rows in history.slices(one.rows.rows):
            yield one, history.push(rows)


def _key(one: Arrived, detector: Detector) -> Key:
    """Whose verdicts the detector's are on these rows."""
    return Key(one.run, one.stream, one.rows.attempt.number, one.rows.tag, detector.name)
