"""Follows logs while they grow: finds runs, reads on, records and notifies, until it is told to stop.

What a poll of a run brought is committed with the cursor it ended at, so after a kill the next start
goes on from the last commit and derives the same again. Runs without news of an incident are
committed only now and then; what was read since is then simply read once more.
"""

import logging
import math
import threading
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sentinel.alerts.duplicates import KnownIncidents
from sentinel.alerts.incident import Change
from sentinel.alerts.store import Store, Update
from sentinel.alerts.tell import Audience, News, tell
from sentinel.clock import Clock
from sentinel.config import Config
from sentinel.pipeline import Pipeline
from sentinel.runs.facts import lost_after_seconds
from sentinel.sinks.delivery import Delivery
from sentinel.sources.base import Complaint
from sentinel.sources.discovery import common_path, discover, run_name
from sentinel.sources.places import Url
from sentinel.sources.watching import Changes
from sentinel.telemetry import ServiceManager
from sentinel.text import clean_text
from sentinel.tracking import Tracker

_RUNS_AT_ONCE = 64
_SWEEP_SECONDS = 60.0  # everything is looked at this often, whatever the file system tells
_SEARCH_SECONDS = 5.0  # runs are searched this often where known files changed that may yet become one ...
_SEARCH_SHARE = 0.05  # ... and for at most this share of the time
_COMMIT_SECONDS = 30.0  # a run that is read but has no news is committed this often ...
_COMMIT_POINTS = 200_000  # ... or after so many points
_REVIEW_SECONDS = 10.0
_INTERVALS = 100

_DECIDING = threading.Lock()  # so that what is told of one training by logs of two watches is told once

_log = logging.getLogger(__name__)


@dataclass
class Watched:
    """A run under watch, and when it was last heard of, on the machine's clock."""

    tracker: Tracker
    arrived_at: float
    committed_at: float
    uncommitted: int = 0  # points
    intervals: deque[float] = field(default_factory=lambda: deque(maxlen=_INTERVALS))

    def overdue(self, now: float) -> bool:
        """Whether too much would have to be read once more after a kill."""
        late = now - self.committed_at >= _COMMIT_SECONDS
        return self.uncommitted >= _COMMIT_POINTS or (late and self.uncommitted > 0)

    def silence(self, now: float) -> tuple[float, float]:
        """For how many seconds nothing arrived, and how many make it lost; a log that ended owes nothing."""
        usual = max(lost_after_seconds(self.intervals), self.tracker.log.facts.lost_after_seconds)
        return 0.0 if self.tracker.log.ending else now - self.arrived_at, usual

    def heard(self, points: int, now: float) -> None:
        """Points arrived."""
        self.uncommitted += points
        self.intervals.append(now - self.arrived_at)
        self.arrived_at = now


class Watcher:
    """Watches ``config.paths``. ``store`` belongs to the thread that calls `once` or `run`."""

    def __init__(
        self, config: Config, store: Store, delivery: Delivery, clock: Clock, service: ServiceManager
    ) -> None:
        self._config = config
        self._store = store
        self._delivery = delivery
        self._clock = clock
        self._service = service
        self._name = " ".join(["watch", *(str(path) for path in config.paths if isinstance(path, Url))])
        self._health: dict[str, str] = {}
        self._pipeline = Pipeline(
            config.enabled_detectors, config.parameters, config.signals, self._detector_failed
        )
        self._policies = [sink.policy() for sink in config.sinks]
        self._watched: dict[str, Watched] = {}
        self._by_path: dict[Path, list[Watched]] = {}
        self._remote: list[Watched] = []  # of which nobody tells that they changed
        self._seen: set[Path] = set()  # changed paths that a discovery has looked at
        self._said: set[str] = set()
        self._swept_at = self._reviewed_at = self._search_at = float("-inf")
        self._promising = False  # some file changed that may yet become a run, or hold another one
        self._changes: Changes | None = None

    def once(self, stop: threading.Event) -> None:
        """Read all there is and commit it; of old logs, too, the sinks hear."""
        self._policies = [replace(policy, stale_seconds=math.inf) for policy in self._policies]
        self._round(None, stop)
        self._commit_all()

    def run(self, stop: threading.Event) -> None:
        """Watch until ``stop`` is set; whoever sets it also calls `wake`."""
        local = [path for path in self._config.paths if isinstance(path, Path)]
        with Changes(local, poll=self._config.polling) as self._changes:
            self._complain(self._changes.complaints)
            changed: Collection[Path] | None = None
            self._service.ready()
            while not stop.is_set():
                self._round(changed, stop)
                changed = self._changes.wait(self._config.poll_seconds)
        self._service.stopping()
        self._commit_all()

    def wake(self) -> None:
        """End a wait for changes; may be called from a signal handler."""
        if self._changes is not None:
            self._changes.stop()

    def _round(self, changed: Collection[Path] | None, stop: threading.Event) -> None:
        """Read on in the runs that changed (None: in all), until nothing is left to read."""
        now = self._clock.now()
        if changed is None or now - self._swept_at >= _SWEEP_SECONDS:
            changed, self._swept_at = None, now
        new = self._discover(now) if changed is None or self._is_search_due(changed, now) else []
        self._seen.update(changed or ())
        self._service.alive(f"{len(self._watched)} runs")
        reading = [*self._watched.values()] if changed is None else self._touched(changed, new)
        while reading and not stop.is_set():
            groups = (reading[i : i + _RUNS_AT_ONCE] for i in range(0, len(reading), _RUNS_AT_ONCE))
            reading = [watched for group in groups if not stop.is_set() for watched in self._read(group)]
        self._review(self._clock.now())
        self._delivery.wake()

    def _is_search_due(self, changed: Collection[Path], now: float) -> bool:
        """Whether there may be a new run: at a path that is new, or, some seconds later, at another."""
        self._promising = self._promising or any(map(self._may_become_a_run, changed))
        return not self._seen.issuperset(changed) or (self._promising and now >= self._search_at)

    def _discover(self, now: float) -> list[Watched]:
        """Search runs everywhere; gives those that were not known."""
        before = len(self._watched)
        found = discover(self._config.paths, self._config.state_dir / "copies")
        self._complain(found.complaints)
        for run in found.runs:
            if run.id in self._watched:
                continue
            tracker = self._pipeline.track(run, run_name(run, common_path(self._config.paths)))
            if (state := self._store.run_state(run.id)) is not None:
                tracker.restore(state)  # else from the start of the log, which derives the same again
            self._watched[run.id] = Watched(tracker, arrived_at=now, committed_at=now)
            if isinstance(run.path, Url):
                self._remote.append(self._watched[run.id])
            else:
                place = run.path if run.path.exists() else run.path.parent  # a database holds many runs
                self._by_path.setdefault(place, []).append(self._watched[run.id])
        ended = self._clock.now()
        self._search_at = ended + max(_SEARCH_SECONDS, (ended - now) / _SEARCH_SHARE)
        self._promising = False
        return [*self._watched.values()][before:]

    def _touched(self, changed: Iterable[Path], new: Iterable[Watched]) -> list[Watched]:
        """The runs that changed files belong to, those that are new, and all remote ones."""
        found = [watched for path in changed for watched in self._at(path)]
        return [*{watched.tracker.id: watched for watched in (*found, *new, *self._remote)}.values()]

    def _may_become_a_run(self, path: Path) -> bool:
        """Whether the file belongs to no run, as some are known by what they hold, or holds many."""
        runs = [watched.tracker.log.run.path for watched in self._at(path)]
        return not runs or any(run.parent == _database(path) for run in runs if isinstance(run, Path))

    def _at(self, path: Path) -> list[Watched]:
        """The runs at a path or anywhere above it."""
        places = (_database(path), *path.parents)
        return [watched for place in places for watched in self._by_path.get(place, ())]

    def _read(self, group: Sequence[Watched]) -> list[Watched]:
        """Advance some runs by one poll; gives those whose logs go on."""
        now = self._clock.now()
        steps = self._pipeline.advance([watched.tracker for watched in group])
        news: dict[str, Sequence[Change]] = {}
        for watched, step in zip(group, steps, strict=True):
            failed = [Complaint(watched.tracker.log.run.path, "", step.failure)] if step.failure else []
            self._complain([*step.complaints, *failed])
            if step.points:
                watched.heard(step.points, now)
            if step.changes:
                news[watched.tracker.id] = step.changes
        self._service.alive(f"{len(self._watched)} runs")
        self._commit([w for w in group if w.tracker.id in news or w.overdue(now)], news, now)
        return [watched for watched, step in zip(group, steps, strict=True) if step.more]

    def _review(self, now: float) -> None:
        """What time alone brings: logs that fell silent, reminders that are due."""
        if now - self._reviewed_at < _REVIEW_SECONDS:
            return
        self._reviewed_at = now
        self._store.set_health({self._name: {"looked_at": now, "runs": len(self._watched)}, **self._health})
        self._store.prune(now)
        ill = [watched for watched in self._watched.values() if watched.tracker.book.open()]
        silent = {w.tracker.id: w.tracker.book.silent(*w.silence(now)) for w in ill}
        self._commit(ill, silent, now, only_news=True)

    def _commit_all(self) -> None:
        self._commit([w for w in self._watched.values() if w.uncommitted], {}, self._clock.now())

    def _commit(
        self,
        group: Sequence[Watched],
        news: Mapping[str, Sequence[Change]],
        now: float,
        only_news: bool = False,
    ) -> None:
        """Record the state of some runs, their incidents and what the sinks shall hear, as one."""
        with _DECIDING:
            if updates := self._decided(group, news, now, only_news):
                self._store.commit(updates, now)

    def _decided(
        self,
        group: Sequence[Watched],
        news: Mapping[str, Sequence[Change]],
        now: float,
        only_news: bool,
    ) -> list[Update]:
        silences = self._store.silences(now)
        here = [change.incident for changes in news.values() for change in changes]
        here += [incident for watched in group for incident in watched.tracker.book.open()]
        known = {incident.id: incident for incident in [*self._store.incidents(), *here]} if here else {}
        audience = Audience(
            self._policies, silences, self._store.sent_before(known), KnownIncidents(known.values())
        )
        updates = []
        for watched in group:
            tracker, changes = watched.tracker, news.get(watched.tracker.id, ())
            still_open = tracker.book.open()
            incidents = {i.id: i for i in [*(change.incident for change in changes), *still_open]}
            decided = tell(News(tracker.log.described(), changes, still_open), audience, now)
            if changes or decided or not only_news:
                updates.append(
                    Update(
                        tracker.id,
                        str(tracker.log.run.path),
                        tracker.log.run.format,
                        tracker.dump(),
                        list(incidents.values()),
                        decided,
                    )
                )
                watched.uncommitted, watched.committed_at = 0, now
        return updates

    def _complain(self, complaints: Iterable[Complaint]) -> None:
        """Log what could not be read, each thing once."""
        for complaint in map(str, complaints):
            if complaint not in self._said:
                self._said.add(complaint)
                _log.warning("%s", clean_text(complaint, 500))

    def _detector_failed(self, detector: str, run: str, error: Exception) -> None:
        what = clean_text(f"{type(error).__name__}: {error}", 300)
        if self._health.get(f"detector {detector}") != what:
            _log.error("detector %s failed on %s: %s", detector, clean_text(run), what)
        self._health[f"detector {detector}"] = what


def _database(path: Path) -> Path:
    """A database may change by what is beside it, in its write-ahead log."""
    return Path(str(path).removesuffix("-wal"))
