"""Follows logs while they grow: finds runs, reads them, records the results and notifies.

The results of a poll are committed together with the cursor at which it ended. After a kill the next start
continues from the last commit and derives the same again. Runs without news of an incident are committed
only now and then; what was read since then is read again. `pace.py` says how often the runs are read.
"""

import logging
import math
import threading
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path

from sentinel.common.clock import Clock
from sentinel.common.errors import StateUnavailable
from sentinel.common.fault_isolation import Guard
from sentinel.common.text import clean_text
from sentinel.config.file import Config
from sentinel.pipeline import Pipeline
from sentinel.run_pipeline import RunPipeline
from sentinel.runs.log import RunLog
from sentinel.sinks.delivery import Delivery
from sentinel.sources.base import Run
from sentinel.sources.discovery import common_path, discover, run_name
from sentinel.sources.location import Url
from sentinel.sources.sharding import shard_of
from sentinel.storage.store import Store
from sentinel.telemetry.counters import ROUND_SECONDS, count_points
from sentinel.watch.announce import introduced
from sentinel.watch.backlog import READING_SECONDS, Backlog
from sentinel.watch.deferral import Deferral
from sentinel.watch.discovery_schedule import DiscoverySchedule
from sentinel.watch.file_events import Changes
from sentinel.watch.inactivity import InactivityMonitor
from sentinel.watch.memory import give_back
from sentinel.watch.nonfinite_scan import NonFiniteScan
from sentinel.watch.recorder import ChangesByRun, Recorder
from sentinel.watch.removed_runs import Vanished, forget, is_removed
from sentinel.watch.reports import Reports
from sentinel.watch.suspension import freezes_forgiven
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.throttle import CPU_QUOTA, PRESSED_SHARE, Throttle
from sentinel.watch.watched import WatchedRun, WatchedRuns, restored

_SWEEP_SECONDS = 60.0  # every run is polled this often, whatever events the file system sends
_REVIEW_SECONDS = 10.0
_REMIND_SECONDS = 60.0  # reminders are due after hours, so nobody misses a minute
_NEVER = float("-inf")

_log = logging.getLogger(__name__)


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
        self._runs = WatchedRuns()
        self._backlog = Backlog(clock)
        name = " ".join(["watch", *(str(path) for path in config.paths if isinstance(path, Url))])
        self._reports = Reports(name, store, clock, service, self._runs, self._backlog)
        failed = self._reports.detector_failed
        host = config.host
        self._pipeline = Pipeline(config.enabled_detectors, config.parameters, config.signals, failed, host)
        self._inactivity = InactivityMonitor(self._pipeline, store, config.paths, clock, config.process)
        self._holding = Deferral(store.outbox, config.enabled_detectors, clock, config.poll_seconds)
        self._policies = [sink.policy() for sink in config.sinks]
        self._new: list[WatchedRun] = []  # the first look at these is not done
        self._searches = DiscoverySchedule(clock)
        self._peeks = NonFiniteScan()
        self._local = [path for path in config.paths if isinstance(path, Path)]
        self._vanished = Vanished(store, config.gone_after if self._local else None)
        self._swept_at = self._reviewed_at = self._reminded_at = _NEVER
        self._changes: Changes | None = None
        self._owed: partial[None] | None = None  # must be recorded before anything else is read

    def once(self, stop: threading.Event) -> None:
        """Read everything that is there and commit it."""
        self._scan(None, stop, math.inf)
        self._commit_all()

    def run(self, stop: threading.Event) -> None:
        """Watch until ``stop`` is set. The caller that sets it must also call `wake`."""
        changes = Changes(self._local, poll=self._config.poll)
        with changes as self._changes, self._inactivity.alarmed(changes.ring):
            self._reports.complain(self._changes.read_issues)
            changed: Collection[Path] | None = None
            pace = Throttle(self._clock)
            self._service.ready()
            while not stop.is_set():
                self.round(changed, stop)
                seconds = 0.0 if self._backlog else self._config.poll_seconds
                pause = pace.pause_seconds(PRESSED_SHARE if self._backlog.is_pressing else CPU_QUOTA)
                with freezes_forgiven(self._runs, self._clock, max(seconds, pause)):
                    changed = self._changes.wait(seconds, pause)
        self._commit_all()

    def logs(self) -> list[RunLog]:
        """Return the logs under watch. May be called from any thread."""
        return [watched.run_pipeline.log for watched in self._runs]

    def lags(self) -> dict[str, float]:
        """Return how far runs are behind their logs; see `Backlog.lags`. May be called from any thread."""
        return self._backlog.lags()

    def wake(self) -> None:
        """End the wait for changes. May be called from a signal handler."""
        if self._changes is not None:
            self._changes.stop()

    def round(self, changed: Collection[Path] | None, stop: threading.Event) -> None:
        """Read what is new where a file changed (None: anywhere), and go on with what is due or behind.

        While nothing can be recorded, nothing is read. A later round continues where this one stopped.
        """
        begun = self._clock.monotonic()
        try:
            self._scan(changed, stop, begun + READING_SECONDS)
        except StateUnavailable as error:
            if self._reports.unrecordable is None:
                _log.error("reading stops until the state can be recorded: %s", error)
                self._delivery.announce(str(error))
            self._reports.unrecordable = str(error)
            self._swept_at = _NEVER
        else:
            if self._reports.unrecordable is not None:
                _log.warning("the state can be recorded again; reading continues")
                self._delivery.announce(None)
            self._reports.unrecordable = None
        ROUND_SECONDS.observe(self._clock.monotonic() - begun)
        self._reports.alive()
        self._delivery.wake()

    def _scan(self, changed: Collection[Path] | None, stop: threading.Event, until: float) -> None:
        """Read, judge and record, ``until`` about this time awake."""
        self._store.check_place()
        if self._owed is not None:
            self._owed()
        awake = self._clock.monotonic()
        self._reports.record()
        sweeps = changed is None or awake - self._swept_at >= _SWEEP_SECONDS
        changed = changed or ()
        new = self._discover() if sweeps or self._searches.is_due(changed, self._runs) else []
        self._reports.alive()
        self._backlog.changed(self._runs.touched(changed))
        self._backlog.ask(self._runs if sweeps else self._runs.remote)
        self._backlog.hurry(self._runs.touched(self._peeks.found(changed)))
        for group in self._backlog.turns(new, until):
            if stop.is_set():
                break
            self._read(group)
        self._swept_at = awake if sweeps else self._swept_at
        self._review()

    def _discover(self) -> list[WatchedRun]:
        """Search all paths for runs. Gives the new ones."""
        begun = self._clock.monotonic()
        discovered = discover(self._config.paths, self._config.state_dir / "copies")
        self._reports.complain(discovered.read_issues)
        self._reports.note_unread(discovered.unread)
        stopped = self._store.stops.all()
        added = []
        for run in shard_of(discovered.runs, self._config.shard, self._config.paths):
            if run.id in self._runs:
                continue
            watched = WatchedRun(self._tracker(run), begun, _NEVER)
            watched.recorded_stop = stopped[run.id].reason if run.id in stopped else None
            self._runs.add(watched)
            self._new.append(watched)
            added.append(watched)
            self._reports.soon()  # the number of runs is another one
        self._searches.done(begun)
        return added

    def _tracker(self, run: Run) -> RunPipeline:
        return restored(self._pipeline, self._store, run, run_name(run, common_path(self._config.paths)))

    def _read(self, group: Sequence[WatchedRun]) -> None:
        awake = self._clock.monotonic()
        self._backlog.drop(watched.run_pipeline.id for watched in group if watched.rests_until > awake)
        group = [watched for watched in group if watched.rests_until <= awake]
        points = self._backlog.points(len(group))
        for watched in group:
            if watched.failures:
                watched.run_pipeline = self._tracker(watched.run_pipeline.log.run)
        advances = self._pipeline.advance([watched.run_pipeline for watched in group], points, read_at=awake)
        self._backlog.took(self._clock.monotonic() - awake)
        news = {new.run_pipeline.id: new.changes for new in advances if new.changes and not new.failure}
        for watched, advance in zip(group, advances, strict=True):
            if advance.ingested.read_issues and not is_removed(watched.run_pipeline.log.run.path):
                self._reports.complain(advance.ingested.read_issues)
            self._backlog.note(watched, advance.more, awake)
            if advance.failure:
                self._stop(watched, advance.failure)
            elif advance.ingested.points:
                watched.heard(advance.ingested.points, awake)
                count_points(watched.run_pipeline.log, advance.ingested.points, self._clock.now())
        self._reports.alive()
        well = [watched for watched, advance in zip(group, advances, strict=True) if not advance.failure]
        self._record(
            [w for w in well if w.run_pipeline.id in news or w.overdue(awake, len(self._runs))], news
        )
        for watched in group:
            if watched.rests_until <= awake:
                watched.went_well()
        self._record_stops(group)
        self._reports.record()

    def _review(self) -> None:
        """Handle what time alone brings, and the first look at runs that are new."""
        awake = self._clock.monotonic()
        now = self._clock.now()
        if seen := [watched for watched in self._new if watched.is_read]:
            guard = Guard()
            for watched in seen:
                over = guard(watched.run_pipeline.log.run, "the review", partial(watched.was_over, now))
                watched.past = bool(over)
            self._stop_failed(seen, guard)
            self._review_runs(seen)
            self._end_first_look(seen, now)
        if ended := self._inactivity.ended(self._runs, awake, self._read):
            self._review_runs(ended)
        if awake - self._reviewed_at >= _REVIEW_SECONDS:
            self._store.prune(now)
            give_back()
            remind = bool(self._policies) and awake - self._reminded_at >= _REMIND_SECONDS
            self._review_runs(self._runs, remind=remind)
            self._forget(awake, now)
            self._reviewed_at = awake
            self._reminded_at = awake if remind else self._reminded_at
        self._holding.release()

    def _review_runs(self, runs: Iterable[WatchedRun], *, remind: bool = False) -> None:
        """Judge the silence and the end of runs, and record that. With ``remind``, reminders may be due."""
        running = [watched for watched in runs if not watched.failures]
        guard = Guard()
        read = [watched for watched in running if watched.due_since is None]  # the others are not silent
        changes = self._inactivity.news(read, self._clock.monotonic(), self._clock.now(), guard)
        self._stop_failed(running, guard)
        asked = [w for w in running if not w.failures and (remind or changes.get(w.run_pipeline.id))]
        self._record(asked, changes, reminders=True)

    def _forget(self, awake: float, now: float) -> None:
        """End what is open of runs whose logs have been gone for long, and forget these runs."""
        if runs := self._vanished.due((watched.run_pipeline.log.run for watched in self._runs), awake):
            forget([self._tracker(run) for run in runs], self._store, self._policies, now)
            self._runs.remove(run.id for run in runs)
            self._backlog.drop(run.id for run in runs)
            self._new = [watched for watched in self._new if watched.run_pipeline.id in self._runs]

    def _end_first_look(self, seen: Sequence[WatchedRun], now: float) -> None:
        """Let what the first look at runs found leave: in one message if they were over."""
        self._holding.end_first_look(seen, now)
        for line in introduced([w.run_pipeline.log for w in seen], self._config.enabled_detectors):
            _log.info("%s", line)
        self._new = [watched for watched in self._new if not watched.looked_at]

    def _commit_all(self) -> None:
        if self._owed is not None:
            self._owed()
        self._record([watched for watched in self._runs if watched.uncommitted], {})
        self._holding.release(immediately=True)
        self._reports.record(immediately=True)  # there is no later report to correct it

    def _record(self, group: Sequence[WatchedRun], news: ChangesByRun, reminders: bool = False) -> None:
        """Commit the state of some runs, their incidents and the notifications in one transaction."""
        if not group:
            return
        self._owed = partial(self._record, group, news, reminders)
        run_pipelines = [watched.run_pipeline for watched in group]
        held = self._holding.deferred(group, news)
        recorder = Recorder(self._store, self._policies)
        recorded = recorder.record(run_pipelines, news, self._clock.now(), held=held, reminders=reminders)
        self._owed = None
        for watched in group:
            if watched.run_pipeline.id in recorded.runs:
                watched.committed(self._clock.monotonic())
            if reason := recorded.failures.get(watched.run_pipeline.id):
                self._stop(watched, reason)

    def _stop_failed(self, runs: Iterable[WatchedRun], guard: Guard) -> None:
        failed = [watched for watched in runs if watched.run_pipeline.id in guard.failures]
        for watched in failed:
            self._stop(watched, guard.failures[watched.run_pipeline.id])
        self._record_stops(failed)

    def _stop(self, watched: WatchedRun, reason: str) -> None:
        watched.failed(reason, self._clock.monotonic())
        self._reports.trouble(f"{clean_text(watched.run_pipeline.log.name)} is not judged for now: {reason}")

    def _record_stops(self, group: Sequence[WatchedRun]) -> None:
        """Record for `sentinel status` which runs are not judged."""
        for watched in group:
            if watched.stopped != watched.recorded_stop:
                run = watched.run_pipeline.log.run
                self._store.stops.set(run.id, str(run.path), watched.stopped, self._clock.now())
                watched.recorded_stop = watched.stopped
                if watched.failures and watched.stopped:
                    self._report_failure(watched, watched.stopped)

    def _report_failure(self, watched: WatchedRun, reason: str) -> None:
        """Record the incident that a run is not judged, on top of its last commit. This may fail as well."""
        run_pipeline = self._tracker(watched.run_pipeline.log.run)
        news = {run_pipeline.id: self._pipeline.report_failure(run_pipeline, reason)}
        held = () if watched.looked_at else (run_pipeline.id,)
        Recorder(self._store, self._policies).record([run_pipeline], news, self._clock.now(), held=held)
