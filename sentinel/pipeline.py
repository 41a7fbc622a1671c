"""The whole flow on one screen, from logs to decisions about notifications, for many runs at once.

    sources  ->  points  ->  signals  ->  findings  ->  incidents  ->  outcomes
    poll         absorb                   judge         advance        tell

`watch` commits and delivers the outcomes, and `replay` reports them; there is no other difference. A callback
in a training may drive the pipeline as well. This page knows no format, no rule and no sink.
"""

import logging
import math
from collections import Counter, defaultdict
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
from sentinel.detectors.checks import RunCheck
from sentinel.frames.naming import Naming
from sentinel.frames.views import layout, views
from sentinel.ground.guard import Guard
from sentinel.ground.text import clean_text
from sentinel.judging.checking import Checking
from sentinel.judging.tracking import Tracker
from sentinel.runs.absorbed import NOTHING, Absorbed, Arrived
from sentinel.runs.console import ConsoleState
from sentinel.runs.log import RunLog
from sentinel.runs.quiet import Quiet
from sentinel.runs.settling import settle
from sentinel.sources.base import Batch, Run

_log = logging.getLogger(__name__)

POINTS_AT_ONCE = 300_000
"""About how many points are read at once, over all runs. It bounds memory and does not affect findings."""

DetectorFailed = Callable[[str, str, BaseException], None]
"""Called when a detector raises on a run, with the detector's name, the run's id and the error."""


def log_failure(detector: str, run: str, error: BaseException) -> None:
    """Log that a detector raised on a run."""
    what = clean_text(f"{type(error).__name__}: {error}", 300)
    _log.error("detector %s failed on %s: %s", detector, clean_text(run), what)


@dataclass(frozen=True)
class Advance:
    """The result of one poll of one run. After a failure the tracker must not be used again."""

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
        checks = [d for d in self.detectors.values() if isinstance(d, RunCheck)]
        self._checking = Checking(checks, parameters, failed)
        self._failed = failed
        release = version("training-sentinel") if self._views else ""
        shape = repr((release, layout(self._views), bool(checks), sorted(signals.items())))
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
        absorbed = [_absorbed(tracker, limit, read_at, guard) for tracker in trackers]
        past = [
            guard(tracker.log.run, "going on", tracker.book.go_on) if one.points else ()
            for tracker, one in zip(trackers, absorbed, strict=True)
        ]
        verdicts, looked = self._judge(trackers, [one.rows for one in absorbed], guard)
        for tracker, one in zip(trackers, absorbed, strict=True):
            findings = guard(tracker.log.run, "run checks", partial(self._check, tracker, one))
            verdicts.setdefault(tracker.id, []).extend(findings or ())
        changes = _applied(Book.advance, trackers, verdicts, guard)
        return [
            Advance(tracker, one, [*(back or ()), *news], guard.failures.get(tracker.id), looked[tracker.id])
            for tracker, one, back, news in zip(trackers, absorbed, past, changes, strict=True)
        ]

    def conclude(self, trackers: Sequence[Tracker]) -> list[Advance]:
        """Judge runs that are over once more. Gives one advance for each run, in their order.

        If such a run goes on after all, the next `advance` takes back what this brought about.
        """
        guard = Guard()
        for tracker in trackers:
            guard(tracker.log.run, "its last words", partial(settle, tracker.log, math.inf))
        arrived = [guard(t.log.run, "the end of the log", t.log.end) or () for t in trackers]
        verdicts, looked = self._judge(trackers, arrived, guard)
        for tracker in trackers:
            check = partial(self._checking.stretches, tracker.log, concluded=True)
            verdicts.setdefault(tracker.id, []).extend(guard(tracker.log.run, "run checks", check) or ())
        changes = _applied(Book.conclude, trackers, verdicts, guard)
        return [
            Advance(tracker, NOTHING, news, guard.failures.get(tracker.id), looked[tracker.id])
            for tracker, news in zip(trackers, changes, strict=True)
        ]

    def review(self, tracker: Tracker, silence: Quiet) -> list[Change]:
        """The changes that time alone brings to a run under watch; see `Checking.stretches`."""
        settle(tracker.log, silence.seconds)
        return tracker.book.advance(self._checking.stretches(tracker.log, silence=silence))

    def report_failure(self, tracker: Tracker, reason: str) -> Sequence[Change]:
        """The incident that says which stage failed on a run; none if that fails as well."""
        checked = self._checking.stretches(tracker.log, failure=reason)
        return Guard()(tracker.log.run, "reporting", partial(tracker.book.advance, checked)) or ()

    def _check(self, tracker: Tracker, absorbed: Absorbed) -> list[Stretch]:
        """The findings of the run checks, if the poll brought something that they judge."""
        grew = absorbed.points > 0
        if not absorbed.tells_of_run and not (grew and tracker.book.watches_run):
            return []
        silence = Quiet(0.0) if grew else None
        return [*self._checking.stretches(tracker.log, absorbed, silence=silence)]

    def _judge(
        self, trackers: Sequence[Tracker], arrived: Sequence[Sequence[Arrived]], guard: Guard
    ) -> tuple[dict[str, list[Stretch]], dict[str, Counter[tuple[str, str]]]]:
        """Stretches of verdicts by run, and how many rows were judged or held back."""
        if not any(arrived):
            return {}, defaultdict(Counter)
        from sentinel.judging.detection import (
            Detection,  # polars is slow to import, and a listing judges nothing
        )

        looked: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)

        def stretches(some: Sequence[tuple[Tracker, Sequence[Arrived]]]) -> list[Stretch]:
            detection = Detection(self._parameters, self._failed)
            awake = {key for tracker, _ in some for key in tracker.book.awake()}
            found = [*detection.stretches([one for _, rows in some for one in rows], awake)]
            looked.update(detection.looked)
            return found

        runs = [tracker.log.run for tracker in trackers]
        pairs = [*zip(trackers, arrived, strict=True)]
        found: dict[str, list[Stretch]] = {}
        for rows in guard.at_once(runs, "judging", stretches, pairs):
            found.setdefault(rows[0].key.run, []).append(rows)
        return found, looked


def _absorbed(tracker: Tracker, limit: int, read_at: float, guard: Guard) -> Absorbed:
    """What is new in the log of a run; nothing if its reader fails."""
    log = tracker.log
    batch = guard(log.run, f"the {log.run.format} reader", partial(log.poll, limit)) or Batch(log.cursor)
    return guard(log.run, "understanding the log", partial(log.absorb, batch, read_at)) or Absorbed(
        chunks=batch.chunks, complaints=batch.complaints
    )


def _applied(
    apply: Callable[[Book, Iterable[Stretch]], list[Change]],
    trackers: Sequence[Tracker],
    verdicts: Mapping[str, Iterable[Stretch]],
    guard: Guard,
) -> list[Sequence[Change]]:
    """The changes that the verdicts bring to the book of each run."""
    return [
        guard(t.log.run, "advancing incidents", partial(apply, t.book, verdicts.get(t.id, ()))) or ()
        for t in trackers
    ]
