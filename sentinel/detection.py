"""Runs the detectors over the new rows of many runs at once, with one frame for each detector."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from detectors.api import Detector
from detectors.schema import SERIES, SEVERITY
from sentinel.alerts.turns import Key, Stretch
from sentinel.errors import is_defect
from sentinel.frames.windows import frame, is_due
from sentinel.runs.log import Arrived
from sentinel.verdicts import Judged, Verdicts


@dataclass(frozen=True)
class Detection:
    """``parameters`` are the user's thresholds by detector. ``failed`` is called when a detector raises."""

    parameters: Mapping[str, Mapping[str, Any]]
    failed: Callable[[str, str, BaseException], None]

    def stretches(self, arrived: Sequence[Arrived], awake: set[Key]) -> Iterator[Stretch]:
        """The verdicts of all judged rows, but clean ones only for keys that are ``awake``.

        A clean verdict means something only where there was a finding; keys with findings join ``awake``.
        Each window stands for itself, so all windows of a series are judged in one frame.
        """
        shown: dict[str, tuple[Detector, list[Arrived]]] = {}
        for one in arrived:
            for detector in one.series.view.detectors:
                if is_due(detector, one.series.window):
                    shown.setdefault(detector.name, (detector, []))[1].append(one)
        for detector, due in shown.values():
            yield from self._judge(detector, due, awake)

    def _judge(self, detector: Detector, arrived: Sequence[Arrived], awake: set[Key]) -> Iterator[Stretch]:
        try:
            window = frame(detector, [(one.series.view, one.series.window) for one in arrived])
            found = detector.run(window, self.parameters.get(detector.name))
        except BaseException as error:  # a broken detector must not stop the others
            if not is_defect(error):
                raise
            if len(arrived) == 1:
                self.failed(detector.name, arrived[0].run, error)
                return
            for one in arrived:
                yield from self._judge(detector, [one], awake)
            return
        keys = [_key(one, detector) for one in arrived]
        awake.update(keys[i] for i in found.filter(pl.col(SEVERITY) > 0)[SERIES].unique())
        heard = pl.Series([key in awake for key in keys], dtype=pl.Boolean)
        ended = pl.Series([one.series.window.ended for one in arrived], dtype=pl.Boolean)
        decided = ~ended.gather(found[SERIES]) | (found[SEVERITY] > 0)  # clean, the row was counted before
        kept = found.filter(heard.gather(found[SERIES]) & decided)
        judged = [
            Judged(key, one.series.view.judged, one.series.window, one.series.known)
            for key, one in zip(keys, arrived, strict=True)
        ]
        yield from Verdicts(kept, judged, detector.history).stretches()


def _key(one: Arrived, detector: Detector) -> Key:
    """The key of the detector's verdicts on these rows."""
    return Key(one.run, one.stream, one.series.attempt, one.series.tag, detector.name)
