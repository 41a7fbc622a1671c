"""What waits in the outbox before it leaves: what the first look at a run finds, and what one point tells."""

from collections.abc import Iterable, Sequence

from sentinel.common.clock import Clock
from sentinel.detectors.api import Declaration
from sentinel.incidents.incident import Change, Event
from sentinel.storage.outbox import Outbox
from sentinel.watch.recorder import ChangesByRun
from sentinel.watch.watched import WatchedRun


class Deferral:
    """Decides which runs' notifications are held, and releases them.

    What a first look finds is held until that look is done. An incident that began with one point, such as
    one NaN, and that the next one may make worse, is held for the ``seconds`` between two looks. So a person
    gets one message that says how bad it is, rather than two at once.
    """

    def __init__(
        self, outbox: Outbox, detectors: Iterable[Declaration], clock: Clock, seconds: float
    ) -> None:
        self._outbox = outbox
        self._clock = clock
        self._seconds = seconds
        self._detectors = {detector.name: detector for detector in detectors}
        self._until: dict[str, float] = {}  # by run id, in time awake

    def deferred(self, group: Iterable[WatchedRun], news: ChangesByRun) -> set[str]:
        """Return the ids of those runs of the group whose notifications do not leave yet."""
        now = self._clock.monotonic()
        for run, changes in news.items():
            if changes and all(self._may_worsen(change) for change in changes):
                self._until.setdefault(run, now + self._seconds)
            elif run in self._until:
                self._until[run] = now
        return self._until.keys() | {watched.run_pipeline.id for watched in group if not watched.looked_at}

    def release(self, *, immediately: bool = False) -> None:
        """Let leave what was held for long enough, or all that one point told."""
        now = self._clock.monotonic()
        due = [run for run, until in self._until.items() if immediately or until <= now]
        if due:
            self._outbox.release(due)
        for run in due:
            del self._until[run]

    def end_first_look(self, seen: Sequence[WatchedRun], now: float) -> None:
        """Let what the first look at runs found leave: in one message if they were over."""
        self._outbox.release(watched.run_pipeline.id for watched in seen if not watched.past)
        past = [watched.run_pipeline.id for watched in seen if watched.past]
        self._outbox.release(past, batch=f"over at {now}")
        for watched in seen:
            watched.looked_at = True

    def _may_worsen(self, change: Change) -> bool:
        """Return whether an incident began with a single point and is not as bad as it can be."""
        incident = change.incident
        detector = self._detectors.get(change.incident.detector)
        if detector is None or detector.hold > 1 or change.event is not Event.FIRING:
            return False
        variant = detector.variants.get(incident.variant)
        return variant is not None and incident.severity < max(variant.severities)
