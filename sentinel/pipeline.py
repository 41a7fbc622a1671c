"""The whole flow on one screen: what lies in logs becomes changes of incidents, many runs at once.

    sources  ->  points  ->  signals  ->  findings  ->  incidents
    poll         absorb                   verdicts      advance

`watch` commits and delivers what comes out, `replay` reports it; there is no other difference.
This page knows no format, no rule and no sink.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from detectors.api import Detector
from sentinel.alerts.incident import Change
from sentinel.alerts.lifecycle import Book, Verdict
from sentinel.config import Config
from sentinel.detection import Detection
from sentinel.frames.naming import Naming
from sentinel.frames.views import views
from sentinel.sources.base import Batch, Complaint, Run
from sentinel.tracking import Tracker

POINTS_AT_ONCE = 200_000
"""About how many points are taken in at once, over all runs; bounds memory, decides nothing."""

DetectorFailed = Callable[[str, str, Exception], None]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Step:
    """What one poll of one run brought."""

    tracker: Tracker
    points: int
    more: bool  # the log goes on
    complaints: Sequence[Complaint]
    changes: Sequence[Change]


class Pipeline:
    """Detectors and names as configured. ``failed`` hears of a detector that raised on a run."""

    def __init__(self, config: Config, failed: DetectorFailed) -> None:
        self.detectors: dict[str, Detector] = {d.name: d for d in config.enabled_detectors}
        self._parameters = {name: config.parameters(name) for name in self.detectors}
        self._naming = Naming(config.signals)
        self._views = views(self.detectors.values())
        shapes = [(v.key, v.columns, v.head_rows, v.recent_rows) for v in self._views]
        self._layout = repr((version("training-sentinel"), shapes, sorted(config.signals.items())))
        self._detection = Detection(self._parameters, failed)

    def track(self, run: Run, name: str) -> Tracker:
        """A run to advance, from its log's start."""
        book = Book(run.id, self.detectors, self._parameters)
        return Tracker(run, name, self._layout, self._naming, self._views, book)

    def advance(self, trackers: Sequence[Tracker]) -> list[Step]:
        """Read on in some runs and judge what is new; one step a run, in their order."""
        limit = POINTS_AT_ONCE // max(len(trackers), 1)
        batches = [_poll(tracker, limit) for tracker in trackers]
        arrived = [rows for t, batch in zip(trackers, batches, strict=True) for rows in t.absorb(batch)]
        awake = {key for tracker in trackers for key in tracker.book.awake()}
        verdicts: dict[str, list[Verdict]] = {}
        for verdict in self._detection.verdicts(arrived, awake):
            verdicts.setdefault(verdict.key.run, []).append(verdict)
        return [
            Step(
                tracker,
                sum(chunk.value.size for chunk in batch.chunks),
                batch.more,
                [*batch.complaints, *tracker.complaints],
                tracker.book.advance(verdicts.get(tracker.run.id, ())),
            )
            for tracker, batch in zip(trackers, batches, strict=True)
        ]


def _poll(tracker: Tracker, limit: int) -> Batch:
    try:
        return tracker.run.source.poll(tracker.cursor, limit)
    except Exception as error:  # noqa: BLE001  a broken source must not stop the other runs
        _log.exception("cannot read %s", tracker.run.path)
        problem = f"the {tracker.run.format} reader failed: {type(error).__name__}"
        return Batch(tracker.cursor, complaints=[Complaint(tracker.run.path, "", problem)])
