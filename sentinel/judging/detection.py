"""Runs the detectors over the new rows of many runs at once, with one frame for each detector."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from sentinel.alerts.turns import Key, Stretch
from sentinel.detectors.api import Detector
from sentinel.detectors.schema import HELD_BACK, SERIES, SEVERITY
from sentinel.frames.windows import frame, is_due
from sentinel.ground.errors import is_defect
from sentinel.judging.verdicts import Judged, Verdicts
from sentinel.runs.absorbed import Arrived

_AT_ONCE = 2
"""Detectors that judge at once, if polars has as many threads. Of more, most would wait for one another."""

_WORTH_THREADS = 10_000
"""New rows from which on a second thread saves more than it costs."""


@dataclass(frozen=True)
class Detection:
    """``parameters`` are the user's thresholds by detector. ``failed`` is called when a detector raises.

    ``looked`` counts the rows that were looked at so far, by run, detector and the reason why the detector
    held back; an empty reason stands for rows that it judged.
    """

    parameters: Mapping[str, Mapping[str, Any]]
    failed: Callable[[str, str, BaseException], None]
    looked: dict[str, Counter[tuple[str, str]]] = field(default_factory=dict)

    def stretches(self, arrived: Sequence[Arrived], awake: set[Key]) -> Iterator[Stretch]:
        """The verdicts of all judged rows, but clean ones only for keys that are ``awake`` or have a finding.

        A clean verdict means something only where there was a finding. Each window stands for itself, so all
        windows of a series are judged in one frame.
        """
        awake_of: dict[str, set[Key]] = {}
        for key in awake:
            awake_of.setdefault(key.detector, set()).add(key)
        shown: dict[str, tuple[Detector, list[Arrived]]] = {}
        for one in arrived:
            for detector in one.series.view.detectors:
                if is_due(detector, one.series.window):
                    shown.setdefault(detector.name, (detector, []))[1].append(one)
        rows = sum(one.series.window.end - one.series.window.first for one in arrived)
        with ThreadPoolExecutor(min(_AT_ONCE, pl.thread_pool_size())) as judges:
            look = judges.map if rows > _WORTH_THREADS else map
            for (detector, _), parts in zip(shown.values(), look(self._look, shown.values()), strict=True):
                for due, looked in parts:
                    yield from self._verdicts(detector, due, looked, awake_of.get(detector.name, set()))

    def _look(
        self, shown: tuple[Detector, Sequence[Arrived]]
    ) -> list[tuple[Sequence[Arrived], pl.DataFrame]]:
        """What one detector finds in some series: in all at once, or in each alone if it raises on them."""
        detector, arrived = shown
        try:
            window = frame(detector, [(one.series.view, one.series.window) for one in arrived])
            return [(arrived, detector.look(window, self.parameters.get(detector.name)))]
        except BaseException as error:  # a broken detector must not stop the others
            if not is_defect(error):
                raise
            if len(arrived) == 1:
                self.failed(detector.name, arrived[0].run, error)
                return []
            return [part for one in arrived for part in self._look((detector, [one]))]

    def _verdicts(
        self, detector: Detector, arrived: Sequence[Arrived], looked: pl.DataFrame, awake: set[Key]
    ) -> Iterator[Stretch]:
        """The verdicts of one detector; ``awake`` are its keys, and those with findings join them."""
        self._count(detector, arrived, looked)
        number, severity = looked[SERIES].to_numpy(), looked[SEVERITY]
        is_found = (severity > 0).fill_null(False).to_numpy()
        awake.update(_key(arrived[n], detector) for n in np.unique(number[is_found]))
        runs = {key.run for key in awake}
        heard = [n for n, one in enumerate(arrived) if one.run in runs and _key(one, detector) in awake]
        if not heard:
            return
        is_heard, has_ended = np.zeros((2, len(arrived)), bool)
        is_heard[heard], has_ended[heard] = True, [arrived[n].series.window.ended for n in heard]
        # Clean, the last row of a run was counted before.
        decided = is_found | (severity.is_not_null().to_numpy() & ~has_ended[number])
        kept = looked.filter(pl.Series(is_heard[number] & decided))
        judged = {n: _judged(arrived[n], detector) for n in heard}
        yield from Verdicts(kept, judged, detector.history).stretches()

    def _count(self, detector: Detector, arrived: Sequence[Arrived], looked: pl.DataFrame) -> None:
        """Count the rows of each run. The last row of a run that is over was held back before."""
        is_judged = looked[HELD_BACK].is_null()
        judged = np.bincount(looked[SERIES].filter(is_judged), minlength=len(arrived))
        counts = [(number, "", rows) for number, rows in enumerate(judged.tolist()) if rows]
        if not is_judged.all():
            counts += looked.drop_nulls(HELD_BACK).group_by(SERIES, HELD_BACK).len().iter_rows()
        for number, reason, rows in counts:
            one = arrived[number]
            if not reason or not one.series.window.ended:
                self.looked.setdefault(one.run, Counter())[detector.name, reason] += rows


def _key(one: Arrived, detector: Detector) -> Key:
    """The key of the detector's verdicts on these rows."""
    return Key(one.run, one.stream, one.series.attempt, one.series.tag, detector.name)


def _judged(one: Arrived, detector: Detector) -> Judged:
    """What the detector's verdicts on these rows are about."""
    return Judged(_key(one, detector), one.series.view.judged, one.series.window, one.series.known)
