"""Follows logs while they grow: finds runs, reads them, records the results and notifies.

The results of a poll are committed together with the cursor at which it ended. After a kill the next start
continues from the last commit and derives the same again. Runs without news of an incident are committed
only now and then; what was read since then is read again. `throttle.py` says how often the runs are read.
"""

import ctypes
import logging
import math
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from sentinel.common.clock import Clock
from sentinel.common.errors import StateUnavailable
from sentinel.common.fault_isolation import Guard
from sentinel.common.processor_budget import ProcessorBudget
from sentinel.common.text import clean_text
from sentinel.config.file import Config
from sentinel.pipeline import Pipeline
from sentinel.run_pipeline import RunPipeline
from sentinel.runs.log import RunLog
from sentinel.runs.state import is_gone
from sentinel.sinks.delivery import Delivery
from sentinel.sources.base import Run
from sentinel.sources.discovery import common_path, discover, run_name
from sentinel.sources.location import Url
from sentinel.sources.sharding import shard_of
from sentinel.storage.store import Store
from sentinel.storage.unjudged_runs import UnjudgedRun
from sentinel.telemetry.counters import ROUND_SECONDS, count_points
from sentinel.watch.announce import introductions
from sentinel.watch.backlog import READING_SECONDS, Backlog
from sentinel.watch.deferral import Deferral
from sentinel.watch.discovery_schedule import DiscoverySchedule
from sentinel.watch.file_events import Changes
from sentinel.watch.inactivity import InactivityMonitor
from sentinel.watch.moved_logs import KnownLogs, Relation
from sentinel.watch.nonfinite_scan import NonFiniteScan
from sentinel.watch.recorder import ChangesByRun, Recorder
from sentinel.watch.removed_runs import RemovedRuns, forget
from sentinel.watch.reports import Reports
from sentinel.watch.suspension import ignore_suspension
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.throttle import CPU_QUOTA, PRESSING_CPU_QUOTA, Throttle
from sentinel.watch.watched import WatchedRun, WatchedRuns, restore_run

_SWEEP_SECONDS = 60.0  # every run is polled this often, whatever events the file system sends
_BUDGET_SECONDS = 5.0  # of the processor, for each stage of one run in a round; most take some milliseconds
_REVIEW_SECONDS = 10.0  # between two reviews of all runs
_REMIND_SECONDS = 60.0  # between two checks for reminders, which are due after hours
_PROGRESS_SECONDS = 10.0  # between two lines about a first look that takes long
_NEVER = float("-inf")  # time awake

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
        self._budget = ProcessorBudget(_BUDGET_SECONDS)
        self._pipeline = Pipeline(
            config.enabled_detectors, config.parameters, config.signals, failed, host, self._budget
        )
        self._inactivity = InactivityMonitor(self._pipeline, store, config.paths, clock, config.process)
        self._deferral = Deferral(store.outbox, config.enabled_detectors, clock, config.poll_seconds)
        self._policies = config.policies
        self._new: list[WatchedRun] = []  # their initial scans are not done
        self._discovery_schedule = DiscoverySchedule(clock)
        self._nonfinite_scan = NonFiniteScan()
        self._local = [path for path in config.paths if isinstance(path, Path)]
        self._removed_runs = RemovedRuns(store, config.gone_after if self._local else None)
        self._swept_at = self._reviewed_at = self._reminded_at = _NEVER
        self._progress_at = clock.monotonic()
        self._changes: Changes | None = None
        self._unrecorded: partial[None] | None = None  # must be recorded before anything else is read

    def once(self, stop: threading.Event) -> None:
        """Read everything that is there and commit it."""
        self._scan_runs(None, stop, math.inf)
        self._commit_all()

    def run(self, stop: threading.Event) -> None:
        """Watch until ``stop`` is set. The caller that sets it must also call `wake`.

        After that comes a last round, because a script ends its watch in the moment its training ends. A
        server is not asked once more.
        """
        changes = Changes(self._local, poll=self._config.poll)
        with changes as self._changes, self._inactivity.alarmed(changes.ring):
            self._reports.warn_of(self._changes.read_issues)
            changed: Collection[Path] | None = None
            throttle = Throttle(self._clock)
            self._service.ready()
            while not stop.is_set():
                self.round(changed, stop)
                seconds = 0.0 if self._backlog else self._config.poll_seconds
                quota = PRESSING_CPU_QUOTA if self._backlog.is_pressing else CPU_QUOTA
                pause_seconds = throttle.pause_seconds(quota)
                with ignore_suspension(self._runs, self._clock, max(seconds, pause_seconds)):
                    changed = self._changes.wait(seconds, pause_seconds)
            if self._local:
                self.round(changed, threading.Event())
        self._commit_all()

    def logs(self) -> list[RunLog]:
        """Return the logs under watch. May be called from any thread."""
        return [watched.run_pipeline.log for watched in self._runs]

    def lags(self) -> dict[str, float]:
        """Return how far runs lag; see `Backlog.lags`. May be called from any thread."""
        return self._backlog.lags()

    def wake(self) -> None:
        """End the wait for changes. May be called from a signal handler."""
        if self._changes is not None:
            self._changes.stop()

    def round(self, changed: Collection[Path] | None, stop: threading.Event) -> None:
        """Read what is new where a file changed (None: anywhere), and go on with what is due or lags.

        While nothing can be recorded, nothing is read. A later round continues where this one stopped.
        """
        started_at = self._clock.monotonic()
        try:
            self._scan_runs(changed, stop, started_at + READING_SECONDS)
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
        ROUND_SECONDS.observe(self._clock.monotonic() - started_at)
        self._reports.alive()
        self._delivery.wake()

    def _scan_runs(self, changed: Collection[Path] | None, stop: threading.Event, until: float) -> None:
        """Read, judge and record, ``until`` about this time awake."""
        self._store.check_place()
        if self._unrecorded is not None:
            self._unrecorded()
        awake = self._clock.monotonic()
        self._reports.record()
        sweeps = changed is None or awake - self._swept_at >= _SWEEP_SECONDS
        changed = changed or ()
        new_runs = self._discover() if sweeps or self._discovery_schedule.is_due(changed, self._runs) else []
        self._reports.alive()
        self._backlog.add_changed(self._runs.touched(changed))
        self._backlog.add(self._runs if sweeps else self._runs.remote)
        self._backlog.put_first(self._runs.touched(self._nonfinite_scan.scan(changed)))
        for runs in self._backlog.turns(new_runs, until):
            if stop.is_set():
                break
            self._read_runs(runs)
            self._note_progress()
        self._swept_at = awake if sweeps else self._swept_at
        self._review()

    def _note_progress(self) -> None:
        """Log now and then how many of the new logs are read, because a first look may take minutes."""
        awake = self._clock.monotonic()
        if len(self._new) > 1 and awake - self._progress_at >= _PROGRESS_SECONDS:
            self._progress_at = awake
            _log.info("read %d of %d logs", sum(new_run.is_read for new_run in self._new), len(self._new))

    def _discover(self) -> list[WatchedRun]:
        """Search all paths for runs. Return the new ones."""
        started_at = self._clock.monotonic()
        copies = self._config.state_dir / "copies"
        discovered = discover(self._config.paths, copies, budget=self._budget, forms=self._config.forms)
        self._reports.warn_of(discovered.read_issues)
        self._reports.note_unread(discovered.unread)
        runs = shard_of(discovered.runs, self._config.shard, self._config.paths)
        added = self._watch_new_runs([run for run in runs if run.id not in self._runs], started_at)
        self._discovery_schedule.note_search(started_at)
        return added

    def _watch_new_runs(self, runs: Sequence[Run], now: float) -> list[WatchedRun]:
        """Watch some runs, those that the store knows first, because others may be copies of them."""
        stored = {row.id: row for row in self._store.runs()} if runs else {}
        stopped = self._store.stops.all() if runs else {}
        added = [self._watch(run, now, stopped) for run in runs if run.id in stored]
        unknown = [run for run in runs if run.id not in stored]
        gone = [row for row in stored.values() if unknown and row.id not in self._runs]
        known_logs = KnownLogs.of(self.logs() if unknown else (), gone, self._store)
        for run in unknown:
            relation, other = known_logs.relation(run) or (None, "")
            if relation is Relation.MOVED:
                self._move(other, run)
            if relation is not Relation.PART:
                watched = self._watch(run, now, stopped)
                watched.run_pipeline.log.metadata.original = other if relation is Relation.COPY else ""
                added.append(watched)
        return added

    def _watch(self, run: Run, now: float, stopped: Mapping[str, UnjudgedRun]) -> WatchedRun:
        watched = WatchedRun(self._restore(run), now, _NEVER)
        watched.recorded_stop = stopped[run.id].reason if run.id in stopped else None
        self._runs.add(watched)
        self._new.append(watched)
        self._reports.record_soon()  # the number of runs is another one
        return watched

    def _move(self, known_as: str, run: Run) -> None:
        """Go on with a known run under the path to which its log was moved."""
        before = [watched for watched in self._runs if watched.run_pipeline.id == known_as]
        self._record([watched for watched in before if watched.uncommitted], {})
        self._store.move(known_as, run.id, str(run.path))
        self._runs.remove([known_as])
        self._backlog.drop([known_as])
        self._new = [watched for watched in self._new if watched.run_pipeline.id != known_as]
        _log.info("%s goes on as %s", clean_text(known_as), clean_text(str(run.path)))

    def _restore(self, run: Run) -> RunPipeline:
        return restore_run(self._pipeline, self._store, run, run_name(run, common_path(self._config.paths)))

    def _read_runs(self, runs: Sequence[WatchedRun]) -> None:
        awake = self._clock.monotonic()
        self._backlog.drop(watched.run_pipeline.id for watched in runs if watched.rests_until > awake)
        runs = [watched for watched in runs if watched.rests_until <= awake]
        points = self._backlog.points(len(runs))
        for watched in runs:
            if watched.failures:
                watched.run_pipeline = self._restore(watched.run_pipeline.log.run)
        advances = self._pipeline.advance([watched.run_pipeline for watched in runs], points, read_at=awake)
        self._backlog.note_duration(self._clock.monotonic() - awake)
        changed = [advance for advance in advances if advance.changes and not advance.failure]
        news = {advance.run_pipeline.id: advance.changes for advance in changed}
        for watched, advance in zip(runs, advances, strict=True):
            if advance.ingested.read_issues and not is_gone(watched.run_pipeline.log.run.path):
                self._reports.warn_of(advance.ingested.read_issues)
            self._backlog.note(watched, advance.more, awake)
            if advance.failure:
                self._stop(watched, advance.failure)
            elif advance.ingested.points:
                watched.points_arrived(advance.ingested.points, awake)
                count_points(watched.run_pipeline.log, advance.ingested.points, self._clock.now())
        self._reports.alive()
        sound = [watched for watched, advance in zip(runs, advances, strict=True) if not advance.failure]
        self._record(
            [w for w in sound if w.run_pipeline.id in news or w.overdue(awake, len(self._runs))], news
        )
        for watched in runs:
            if watched.rests_until <= awake:
                watched.went_well()
        self._record_stops(runs)
        self._reports.record()

    def _review(self) -> None:
        """Handle what time alone brings, and the ends of initial scans."""
        awake = self._clock.monotonic()
        now = self._clock.now()
        if scanned := [watched for watched in self._new if watched.is_read]:
            self._end_initial_scan(scanned, now)
        if not self._new:
            self._deferral.end_first_look(self._policies, now)
        if ended := self._inactivity.ended([*self._runs], awake, self._read_runs):
            self._review_runs(ended)
        if awake - self._reviewed_at >= _REVIEW_SECONDS:
            self._store.prune(now)
            trim_memory()
            remind = bool(self._policies) and awake - self._reminded_at >= _REMIND_SECONDS
            self._review_runs(self._runs, remind=remind)
            self._forget(awake, now)
            self._reviewed_at = awake
            self._reminded_at = awake if remind else self._reminded_at
        self._record_runs(self._deferral.due())
        self._deferral.release()

    def _record_runs(self, run_ids: Collection[str]) -> None:
        """Record some runs, so that what is told of them says what is so now."""
        if run_ids:
            self._record([w for w in self._runs if w.run_pipeline.id in run_ids and not w.failures], {})

    def _end_initial_scan(self, runs: Sequence[WatchedRun], now: float) -> None:
        """Review runs that were read for the first time, release their notifications and introduce them."""
        guard = Guard(budget=self._budget)
        for watched in runs:
            over = guard(watched.run_pipeline.log.run, "the review", partial(watched.was_over, now))
            watched.past = bool(over)
        self._stop_failed(runs, guard)
        self._review_runs(runs)
        self._record_runs(
            {watched.run_pipeline.id for watched in runs if watched.run_pipeline.incidents.open()}
        )
        self._deferral.end_initial_scan(runs, now)
        for line in introductions([w.run_pipeline.log for w in runs], self._config.enabled_detectors):
            _log.info("%s", line)
        self._new = [watched for watched in self._new if not watched.initial_scan_done]

    def _review_runs(self, runs: Iterable[WatchedRun], *, remind: bool = False) -> None:
        """Judge the inactivity and the end of runs, and record that; with ``remind`` reminders, too."""
        running = [watched for watched in runs if not watched.failures]
        guard = Guard(budget=self._budget)
        up_to_date = [watched for watched in running if watched.due_since is None]  # the others are active
        changes = self._inactivity.news(up_to_date, self._clock.monotonic(), self._clock.now(), guard)
        self._stop_failed(running, guard)
        sound = [watched for watched in running if not watched.failures]
        notable = [watched for watched in sound if remind or changes.get(watched.run_pipeline.id)]
        self._record(notable, changes, reminders=True)
        self._record_runs({watched.run_pipeline.id for watched in running if watched.is_end_unrecorded})

    def _forget(self, awake: float, now: float) -> None:
        """Forget the runs whose logs have been gone for long, and end their open incidents."""
        if runs := self._removed_runs.due((watched.run_pipeline.log.run for watched in self._runs), awake):
            forget([self._restore(run) for run in runs], self._store, self._policies, now)
            self._runs.remove(run.id for run in runs)
            self._backlog.drop(run.id for run in runs)
            self._new = [watched for watched in self._new if watched.run_pipeline.id in self._runs]

    def _commit_all(self) -> None:
        if self._unrecorded is not None:
            self._unrecorded()
        self._record([watched for watched in self._runs if watched.uncommitted], {})
        self._deferral.release(immediately=True)
        self._reports.record(immediately=True)  # there is no later report to correct it

    def _record(self, runs: Sequence[WatchedRun], news: ChangesByRun, reminders: bool = False) -> None:
        """Commit the state of some runs, their incidents and the notifications in one transaction."""
        if not runs:
            return
        self._unrecorded = partial(self._record, runs, news, reminders)
        run_pipelines = [watched.run_pipeline for watched in runs]
        deferred = self._deferral.defer(runs, news)
        recorder = Recorder(self._store, self._policies)
        now = self._clock.now()
        record_result = recorder.record(run_pipelines, news, now, deferred=deferred, reminders=reminders)
        self._unrecorded = None
        for watched in runs:
            if watched.run_pipeline.id in record_result.runs:
                watched.committed(self._clock.monotonic())
            if reason := record_result.failures.get(watched.run_pipeline.id):
                self._stop(watched, reason)

    def _stop_failed(self, runs: Iterable[WatchedRun], guard: Guard) -> None:
        failed = [watched for watched in runs if watched.run_pipeline.id in guard.failures]
        for watched in failed:
            self._stop(watched, guard.failures[watched.run_pipeline.id])
        self._record_stops(failed)

    def _stop(self, watched: WatchedRun, reason: str) -> None:
        watched.failed(reason, self._clock.monotonic())
        self._reports.warn(f"{clean_text(watched.run_pipeline.log.name)} is not judged for now: {reason}")

    def _record_stops(self, runs: Sequence[WatchedRun]) -> None:
        """Record for `sentinel status` which runs are not judged."""
        for watched in runs:
            if watched.stopped != watched.recorded_stop:
                run = watched.run_pipeline.log.run
                self._store.stops.set(run.id, str(run.path), watched.stopped, self._clock.now())
                watched.recorded_stop = watched.stopped
                if watched.failures and watched.stopped:
                    self._report_failure(watched, watched.stopped)

    def _report_failure(self, watched: WatchedRun, reason: str) -> None:
        """Record the incident that a run is not judged, on top of its last commit. This may fail as well."""
        run_pipeline = self._restore(watched.run_pipeline.log.run)
        news = {run_pipeline.id: self._pipeline.report_failure(run_pipeline, reason)}
        deferred = () if watched.initial_scan_done else (run_pipeline.id,)
        recorder = Recorder(self._store, self._policies)
        recorder.record([run_pipeline], news, self._clock.now(), deferred=deferred)


def trim_memory() -> None:
    """Give the free pages among those in use back to the system, in some milliseconds.

    The C library keeps them, so the memory of a watch would stay as large as it was while most runs were
    under watch. Other libraries than glibc have no such call.
    """
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)
