"""Defers notifications: those of a run's initial scan, and those that rest on a single point."""

import math
from collections.abc import Iterable, Sequence

from sentinel.common.clock import Clock
from sentinel.common.days import DAY_SECONDS
from sentinel.detectors.api import Declaration
from sentinel.incidents.incident import Change, Event
from sentinel.notifications.decide import FirstLook, SinkPolicy
from sentinel.storage.outbox import Outbox
from sentinel.watch.recorder import ChangesByRun
from sentinel.watch.watched import WatchedRun


class Deferral:
    """Decides of which runs the notifications are deferred, and releases them.

    What an initial scan finds is deferred until that scan is done. For runs that were over, that is until
    all initial scans are. An incident that began with one point, such as one NaN, and that the next one may
    make worse, is deferred for the ``seconds`` between two polls. So a person gets one message that says how
    bad it is, rather than two at once.
    """

    def __init__(
        self, outbox: Outbox, detectors: Iterable[Declaration], clock: Clock, seconds: float
    ) -> None:
        self._outbox = outbox
        self._clock = clock
        self._seconds = seconds
        self._detectors = {detector.name: detector for detector in detectors}
        self._until: dict[str, float] = {}  # by run id, in time awake
        self._past: dict[str, bool] = {}  # by id of a run that was over: whether that was long ago

    def defer(self, runs: Iterable[WatchedRun], news: ChangesByRun) -> set[str]:
        """Return the ids of the runs whose notifications do not leave yet."""
        now = self._clock.monotonic()
        first = {watched.run_pipeline.id for watched in runs if not watched.initial_scan_done}
        first |= self._past.keys()
        for run, changes in news.items():
            if run in first:
                continue
            if changes and all(self._may_worsen(change) for change in changes):
                self._until.setdefault(run, now + self._seconds)
            elif run in self._until:
                self._until[run] = now
        return self._until.keys() | first

    def due(self) -> set[str]:
        """Return the ids of the runs of which something is released next."""
        now = self._clock.monotonic()
        return {run for run, until in self._until.items() if until <= now}

    def release(self, *, immediately: bool = False) -> None:
        """Release what was deferred for long enough, or ``immediately`` all but the initial scans."""
        due_runs = [*self._until] if immediately else self.due()
        if due_runs:
            self._outbox.release(due_runs)
        for run in due_runs:
            del self._until[run]

    def end_initial_scan(self, runs: Sequence[WatchedRun], now: float) -> None:
        """Release what the initial scan of runs found and still is so, unless they were over."""
        self._outbox.drop_resolved(watched.run_pipeline.id for watched in runs)
        self._outbox.release(watched.run_pipeline.id for watched in runs if not watched.past)
        for watched in runs:
            watched.initial_scan_done = True
            if watched.past:
                self._past[watched.run_pipeline.id] = DAY_SECONDS < watched.over_seconds(now) < math.inf

    def end_first_look(self, policies: Iterable[SinkPolicy], now: float) -> None:
        """Release in one message what was found in all runs that were over, as each sink asks for it."""
        if not self._past:
            return
        first_looks = {policy.name: policy.first_look for policy in policies}
        self._outbox.drop(self._past, [name for name, look in first_looks.items() if look is FirstLook.NONE])
        past_runs = [run for run, is_old in self._past.items() if is_old]
        sinks = [name for name, look in first_looks.items() if look is not FirstLook.ALL]
        self._outbox.drop(past_runs, sinks)
        self._outbox.release(self._past, batch=f"over at {now}")
        self._past.clear()

    def _may_worsen(self, change: Change) -> bool:
        """Return whether an incident began with a single point and is not as bad as it can be."""
        incident = change.incident
        detector = self._detectors.get(change.incident.detector)
        if detector is None or detector.hold > 1 or change.event is not Event.FIRING:
            return False
        variant = detector.variants.get(incident.variant)
        return variant is not None and incident.severity < max(variant.severities)
