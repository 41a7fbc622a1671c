"""The whole flow on one screen, from logs to decisions about notifications, for many runs at once.

    sources  ->  points  ->  signals  ->  findings  ->  incidents  ->  outcomes
    poll         absorb                   judge         advance        tell

`watch` commits and delivers the outcomes, and `replay` reports them; there is no other difference. A callback
in a training may drive the pipeline as well. This page knows no format, no rule and no sink.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from socket import gethostname
from typing import Any

from sentinel.common.fault_isolation import Guard
from sentinel.detection.engine import DetectorFailed, Judging, log_failure
from sentinel.detectors.api import Declaration
from sentinel.incidents.incident import Change
from sentinel.incidents.lifecycle import Book
from sentinel.run_pipeline import Advance, Tracker
from sentinel.runs.console import ConsoleState
from sentinel.runs.end_inference import settle
from sentinel.runs.inactivity import Quiet
from sentinel.runs.log import RunLog
from sentinel.series.naming import Naming
from sentinel.series.specs import layout, views
from sentinel.sources.base import Run

POINTS_AT_ONCE = 300_000
"""About how many points are read at once, over all runs. It bounds memory and does not affect findings."""


class Pipeline:
    """Reads and judges runs.

    ``parameters`` are the thresholds by detector that differ from the defaults. ``signals`` gives the meaning
    of the user's own tags. ``failed`` is called when a detector raises, which is logged by default. ``host``
    is what notifications call the machine on which logs lie, by default this one.
    """

    def __init__(
        self,
        detectors: Iterable[Declaration],
        parameters: Mapping[str, Mapping[str, Any]],
        signals: Mapping[str, str],
        failed: DetectorFailed = log_failure,
        host: str = "",
    ) -> None:
        self.detectors = {detector.name: detector for detector in detectors}
        self._parameters = parameters
        self._host = host
        self._views = views(self.detectors.values())
        self._naming = Naming(signals, self._views.asked)
        self._judging = Judging(self.detectors.values(), parameters, failed)
        self.checking = self._judging.checking
        release = version("training-sentinel") if self._views else ""
        shape = repr((release, layout(self._views), bool(self.checking.checks), sorted(signals.items())))
        self._layout = sha256(shape.encode("utf-8", "backslashreplace")).hexdigest()  # every state holds it

    def track(self, run: Run, name: str) -> Tracker:
        """A new tracker for a run, at the start of its log."""
        book = Book(run.id, self.detectors, self._parameters)
        console = ConsoleState() if self.checking.checks else None
        log = RunLog(run, name, self._naming, self._views, console=console)
        return Tracker(log, book, self._layout, self._host, gethostname())

    def advance(
        self,
        trackers: Sequence[Tracker],
        points_at_once: int = POINTS_AT_ONCE,
        read_at: float = math.nan,
    ) -> list[Advance]:
        """Poll some runs and judge what is new. Gives one advance for each run, in their order.

        ``read_at`` is the time awake of a watch, which counts where a log has no times; NaN in a replay.
        Whatever a run holds, this does not raise and does not change the results of another run.
        """
        limit = points_at_once // max(len(trackers), 1)
        guard = Guard()
        news = [tracker.absorb(limit, read_at, guard) for tracker in trackers]
        past = [
            (guard(tracker.log.run, "going on", tracker.book.go_on) or ()) if absorbed.points else ()
            for tracker, absorbed in zip(trackers, news, strict=True)
        ]
        verdicts, looked = self._judging.judge(trackers, news, guard)
        changes = [
            [*back, *tracker.apply(verdicts[tracker.id], guard)]
            for tracker, back in zip(trackers, past, strict=True)
        ]
        return [
            Advance(tracker, absorbed, new, guard.failures.get(tracker.id), looked[tracker.id])
            for tracker, absorbed, new in zip(trackers, news, changes, strict=True)
        ]

    def conclude(self, trackers: Sequence[Tracker]) -> list[Advance]:
        """Judge runs that are over once more. Gives one advance for each run, in their order.

        If such a run goes on after all, the next `advance` takes back what this brought about.
        """
        guard = Guard()
        news = [tracker.end(guard) for tracker in trackers]
        verdicts, looked = self._judging.judge(trackers, news, guard, concluded=True)
        changes = [tracker.apply(verdicts[tracker.id], guard, concluded=True) for tracker in trackers]
        return [
            Advance(tracker, absorbed, new, guard.failures.get(tracker.id), looked[tracker.id])
            for tracker, absorbed, new in zip(trackers, news, changes, strict=True)
        ]

    def review(self, tracker: Tracker, silence: Quiet) -> list[Change]:
        """The changes that time alone brings to a run under watch; see `Checking.stretches`."""
        settle(tracker.log, silence.seconds)
        return tracker.book.advance(self.checking.stretches(tracker.log, silence=silence))

    def report_failure(self, tracker: Tracker, reason: str) -> Sequence[Change]:
        """The incident that says which stage failed on a run; none if that fails as well."""
        checked = self.checking.stretches(tracker.log, failure=reason)
        return Guard()(tracker.log.run, "reporting", partial(tracker.book.advance, checked)) or ()
