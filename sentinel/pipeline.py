"""The whole flow on one screen, from logs to decisions about notifications, for many runs at once.

    sources  ->  points  ->  signals  ->  findings  ->  incidents  ->  outcomes
    poll         absorb                   judge         advance        tell

`watch` commits and delivers the outcomes, and `replay` reports them; there is no other difference. A callback
in a training may drive the pipeline as well. This page knows no format, no rule and no sink.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from sentinel.alerts.incident import Change
from sentinel.alerts.lifecycle import Book
from sentinel.alerts.turns import Stretch
from sentinel.detectors.api import Declaration
from sentinel.frames.naming import Naming
from sentinel.frames.views import layout, views
from sentinel.ground.guard import Guard
from sentinel.judging.judging import DetectorFailed, Judging, log_failure
from sentinel.judging.tracking import Tracker
from sentinel.runs.absorbed import Absorbed
from sentinel.runs.console import ConsoleState
from sentinel.runs.log import RunLog
from sentinel.runs.quiet import Quiet
from sentinel.runs.settling import settle
from sentinel.sources.base import Batch, Run

POINTS_AT_ONCE = 300_000
"""About how many points are read at once, over all runs. It bounds memory and does not affect findings."""


@dataclass(frozen=True)
class Advance:
    """What is new in one run. After a failure the tracker must not be used again."""

    tracker: Tracker
    absorbed: Absorbed
    changes: Sequence[Change]
    failure: str | None
    looked: Counter[tuple[str, str]]  # how many rows the detectors judged or held back; see `Detection`

    @property
    def more(self) -> bool:
        """Whether the log goes on and can be read on."""
        return self.absorbed.more and self.failure is None


class Pipeline:
    """Reads and judges runs.

    ``parameters`` are the thresholds by detector that differ from the defaults. ``signals`` gives the meaning
    of the user's own tags. ``failed`` is called when a detector raises, which is logged by default.
    """

    def __init__(
        self,
        detectors: Iterable[Declaration],
        parameters: Mapping[str, Mapping[str, Any]],
        signals: Mapping[str, str],
        failed: DetectorFailed = log_failure,
    ) -> None:
        self.detectors = {detector.name: detector for detector in detectors}
        self._parameters = parameters
        self._views = views(self.detectors.values())
        self._naming = Naming(signals, self._views.asked)
        self._judging = Judging(self.detectors.values(), parameters, failed)
        self._checking = self._judging.checking
        release = version("training-sentinel") if self._views else ""
        shape = repr((release, layout(self._views), bool(self._checking.checks), sorted(signals.items())))
        self._layout = sha256(shape.encode("utf-8", "backslashreplace")).hexdigest()  # every state holds it

    def track(self, run: Run, name: str) -> Tracker:
        """A new tracker for a run, at the start of its log."""
        book = Book(run.id, self.detectors, self._parameters)
        console = ConsoleState() if self._checking.checks else None
        return Tracker(RunLog(run, name, self._naming, self._views, console=console), book, self._layout)

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
        limit, guard = points_at_once // max(len(trackers), 1), Guard()
        news = [_absorbed(tracker, limit, read_at, guard) for tracker in trackers]
        past = [
            (guard(tracker.log.run, "going on", tracker.book.go_on) or ()) if one.points else ()
            for tracker, one in zip(trackers, news, strict=True)
        ]
        verdicts, looked = self._judging.judge(trackers, news, guard)
        changes = [
            [*back, *_applied(tracker.book.advance, tracker, verdicts[tracker.id], guard)]
            for tracker, back in zip(trackers, past, strict=True)
        ]
        return [
            Advance(tracker, one, new, guard.failures.get(tracker.id), looked[tracker.id])
            for tracker, one, new in zip(trackers, news, changes, strict=True)
        ]

    def conclude(self, trackers: Sequence[Tracker]) -> list[Advance]:
        """Judge runs that are over once more. Gives one advance for each run, in their order.

        If such a run goes on after all, the next `advance` takes back what this brought about.
        """
        guard = Guard()
        for tracker in trackers:
            guard(tracker.log.run, "its last words", partial(settle, tracker.log, math.inf))
        news = [Absorbed(guard(t.log.run, "the end of the log", t.log.end) or ()) for t in trackers]
        verdicts, looked = self._judging.judge(trackers, news, guard, concluded=True)
        changes = [_applied(t.book.conclude, t, verdicts[t.id], guard) for t in trackers]
        return [
            Advance(tracker, one, new, guard.failures.get(tracker.id), looked[tracker.id])
            for tracker, one, new in zip(trackers, news, changes, strict=True)
        ]

    def review(self, tracker: Tracker, silence: Quiet) -> list[Change]:
        """The changes that time alone brings to a run under watch; see `Checking.stretches`."""
        settle(tracker.log, silence.seconds)
        return tracker.book.advance(self._checking.stretches(tracker.log, silence=silence))

    def report_failure(self, tracker: Tracker, reason: str) -> Sequence[Change]:
        """The incident that says which stage failed on a run; none if that fails as well."""
        checked = self._checking.stretches(tracker.log, failure=reason)
        return Guard()(tracker.log.run, "reporting", partial(tracker.book.advance, checked)) or ()


def _absorbed(tracker: Tracker, limit: int, read_at: float, guard: Guard) -> Absorbed:
    """What is new in the log of a run; nothing if its reader fails."""
    log = tracker.log
    batch = guard(log.run, f"the {log.run.format} reader", partial(log.poll, limit)) or Batch(log.cursor)
    read = guard(log.run, "understanding the log", partial(log.absorb, batch, read_at))
    return read or Absorbed(chunks=batch.chunks, complaints=batch.complaints)


def _applied(
    apply: Callable[[Iterable[Stretch]], list[Change]],
    tracker: Tracker,
    verdicts: Sequence[Stretch],
    guard: Guard,
) -> Sequence[Change]:
    """The changes that the verdicts bring to the book of a run."""
    return guard(tracker.log.run, "advancing incidents", partial(apply, verdicts)) or ()
