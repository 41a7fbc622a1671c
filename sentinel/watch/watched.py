"""The runs under watch: how each is restored, when points last arrived, and why it is not judged."""

import logging
import math
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from sentinel.common.fault_isolation import Guard
from sentinel.common.paths import exists, is_denied, is_file
from sentinel.common.text import clean_text
from sentinel.comparison.means import Means
from sentinel.detectors.runtime.worse_than_siblings import RULE
from sentinel.pipeline import Pipeline
from sentinel.run_pipeline import RunPipeline
from sentinel.runs.copied_logs import silence_of
from sentinel.runs.end_inference import infer_end
from sentinel.runs.metadata import LONG_INTERVALS, lost_after_seconds
from sentinel.sources.base import Run
from sentinel.sources.location import Url
from sentinel.sources.sidecars.output_files import ENDINGS
from sentinel.storage.store import Store

_COMMIT_SECONDS = 30.0  # a run without news is committed this often ...
_MAX_COMMITS_PER_SECOND = 30  # ... less often if so many runs would take much of the time ...
_COMMIT_POINTS = 200_000  # ... or after so many points
_MAX_INTERVALS = 100  # between arrivals of points; the last ones are remembered
_FLUSH_SECONDS = 60.0  # for which a run may flush its log after its end
_FIRST_PAUSE_SECONDS = 60.0  # before a run that failed is tried again; twice as long after each failure ...
_MAX_PAUSE_SECONDS = 3600.0  # ... up to this
_MAX_RUN_FAILURES = 30  # that are counted

_log = logging.getLogger(__name__)


Settings = frozenset[tuple[str, str]]
"""Names and values."""


class WatchedRun(msgspec.Struct, weakref=True):
    """A run under watch. All times are times awake.

    ``committed_at`` is minus infinity before the first commit. ``stopped`` says why the run is not judged,
    and ``recorded_stop`` what the store holds about that. After a failure the pipeline of the run may be half
    changed, so another one must replace it.
    """

    run_pipeline: RunPipeline
    arrived_at: float
    committed_at: float
    uncommitted: int = 0  # points
    intervals: deque[float] = msgspec.field(default_factory=lambda: deque(maxlen=_MAX_INTERVALS))  # seconds
    failures: int = 0  # in a row
    rests_until: float = float("-inf")
    stopped: str | None = None
    recorded_stop: str | None = None
    finalized: tuple[int, str] | None = None  # number of points, and its end, when the run was last over
    initial_scan_done: bool = False
    past: bool = False  # it was over at the initial scan, and has not grown since
    grew: bool = False  # since its initial scan
    settings: tuple[int, Settings] | None = None  # how many are stated, and those that its siblings share
    sibling_at: int | None = None  # number of points with which it may be a sibling of others
    judged_at: int | None = None  # the point of its plan at which it was compared with its siblings
    lagging_since: float | None = None  # None if it was read to its end
    due_since: float | None = None  # when its log changed; None if it has been polled since
    review_at: float = -math.inf  # its inactivity is not judged before

    def overdue(self, now: float, runs: int) -> bool:
        """Return whether a commit is due, so that a kill does not cost too much re-reading.

        ``runs`` is the number of runs under watch.
        """
        is_late = now - self.committed_at >= max(_COMMIT_SECONDS, runs / _MAX_COMMITS_PER_SECOND)
        return self.uncommitted >= _COMMIT_POINTS or (is_late and self.uncommitted > 0)

    def committed(self, now: float) -> None:
        """Note that everything that was read is recorded."""
        self.uncommitted = 0
        self.committed_at = now

    @property
    def is_end_unrecorded(self) -> bool:
        """Whether the last words of the run were read, and what is recorded may not say so."""
        log = self.run_pipeline.log
        return self.uncommitted > 0 and (log.ending is not None or log.metadata.heard != 0)

    @property
    def is_read(self) -> bool:
        """Whether its log was read to the end, or cannot be read at present."""
        return self.run_pipeline.log.reached_end or self.failures > 0

    def was_over(self, now: float) -> bool:
        """Return whether the run was over or inactive before its initial scan; ``now`` is the time of day."""
        log = self.run_pipeline.log
        if log.live or log.ending is not None:
            return not log.live
        return self.over_seconds(now) > log.metadata.lost_after_seconds

    def may_turn_out_over(self, awake: float) -> bool:
        """Return whether its log has just appeared as a whole, for all that is known."""
        is_open = not self.past and self.run_pipeline.log.ending is None
        return is_open and not self.grew and awake - self.arrived_at <= _FLUSH_SECONDS

    def turns_out_over(self, now: float) -> bool:
        """Return whether its log is a copy, as its first seconds may not show, of a run that ended.

        A training that prints in blocks writes many lines at once, too. So only what the log says of its end
        counts.
        """
        log = self.run_pipeline.log
        before = log.metadata.heard
        if math.isinf(self.over_seconds(now)):
            infer_end(log, math.inf)
        self.uncommitted += log.metadata.heard != before
        return log.ending is not None

    def over_seconds(self, now: float) -> float:
        """Return the seconds since the run last wrote something; infinity if nobody knows."""
        log = self.run_pipeline.log
        seconds = silence_of(log.run.path, log.metadata, now)
        return math.inf if seconds is None else seconds

    def silent_seconds(self, now: float) -> float:
        """Return the seconds since points arrived; 0 for a log that ended or was not read to its end."""
        is_active = self.lagging_since is not None or self.run_pipeline.log.ending is not None
        return 0.0 if is_active else now - self.arrived_at

    def lag(self, now: float) -> float:
        """Return the seconds for which the log is known to hold something that was not read."""
        return now - min(since for since in (self.lagging_since, self.due_since, now) if since is not None)

    def is_newly_over(self, now: float) -> bool:
        """Return True once when the run is over. Remembers the answer."""
        log = self.run_pipeline.log
        is_over = self.past or now - self.arrived_at > self._seconds_until_over()
        if not log.reached_end or self.lagging_since is not None or not is_over:
            return False
        before = self.finalized
        self.finalized = log.metadata.points, log.end
        return before != self.finalized

    def _seconds_until_over(self) -> float:
        """Return how long the run has to be inactive until it is over.

        One whose log states its end is over at once, also where its last rows arrived after the look began.
        """
        log = self.run_pipeline.log
        if log.ending is None:
            return self.lost_after_seconds
        return _FLUSH_SECONDS if log.ending.inferred and log.metadata.exit is None else -math.inf

    @property
    def usual_pause_seconds(self) -> float:
        """The longest pause between its points that is ordinary."""
        return self.lost_after_seconds / LONG_INTERVALS

    @property
    def lost_after_seconds(self) -> float:
        """How long it may be inactive before it is lost."""
        return max(lost_after_seconds(self.intervals), self.run_pipeline.log.metadata.lost_after_seconds)

    def points_arrived(self, points: int, now: float) -> None:
        self.uncommitted += points
        self.past = self.past and not self.initial_scan_done
        self.grew = self.initial_scan_done
        self.intervals.append(now - self.arrived_at)
        self.arrived_at = now
        self.review_at = -math.inf

    def failed(self, reason: str, now: float) -> None:
        """Note that a stage raised. The run is tried again later, from its last commit."""
        self.stopped = reason
        self.uncommitted = 0
        pause = min(_FIRST_PAUSE_SECONDS * 2.0**self.failures, _MAX_PAUSE_SECONDS)
        self.failures = min(self.failures + 1, _MAX_RUN_FAILURES)
        self.rests_until = now + pause

    def went_well(self) -> None:
        """Note that no stage raised."""
        self.stopped = self.run_pipeline.log.stopped
        self.failures = 0
        self.rests_until = float("-inf")


class WatchedRuns:
    """All runs of one watch, found by id and by path."""

    def __init__(self) -> None:
        self._by_id: dict[str, WatchedRun] = {}
        self._by_path: dict[str, list[WatchedRun]] = {}  # as text, because paths take long to hash
        self._by_directory: dict[str, list[WatchedRun]] = {}  # runs that are a file
        self._remote: list[WatchedRun] = []

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[WatchedRun]:
        return iter([*self._by_id.values()])

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._by_id

    def add(self, watched: WatchedRun) -> None:
        """Add a run, which must not be under watch yet."""
        path = watched.run_pipeline.log.run.path
        self._by_id[watched.run_pipeline.id] = watched
        if isinstance(path, Url):
            self._remote.append(watched)
        else:
            is_here = exists(path) or is_denied(path)
            location = path if is_here else path.parent  # a database holds many runs
            for each in (location, *watched.run_pipeline.log.run.also):
                self._by_path.setdefault(str(each), []).append(watched)
            if location == path and is_file(path):
                self._by_directory.setdefault(str(path.parent), []).append(watched)

    def remove(self, run_ids: Iterable[str]) -> None:
        """Remove runs, which need not be under watch."""
        for run_id in run_ids:
            self._by_id.pop(run_id, None)
        for index in (self._by_path, self._by_directory):
            for path, runs in [*index.items()]:
                index[path] = [watched for watched in runs if watched.run_pipeline.id in self._by_id]
                if not index[path]:
                    del index[path]

    def touched(self, changed: Iterable[Path]) -> Iterator[WatchedRun]:
        """Yield the runs that changed files belong to, some more than once."""
        for path in changed:
            yield from self._at(path)
            if path.name.endswith(ENDINGS):  # it may be the console output of a run
                yield from self._by_directory.get(str(path.parent), ())

    @property
    def remote(self) -> Sequence[WatchedRun]:
        """The runs of which no event says that they changed."""
        return self._remote

    def may_grow_by(self, path: Path) -> bool:
        """Return whether this changed file may bring a new run: it belongs to none, or may hold many."""
        runs = [watched.run_pipeline.log.run.path for watched in self._at(path)]
        database = _database(str(path))
        return not runs or any(str(run.parent) == database for run in runs if isinstance(run, Path))

    def _at(self, path: Path) -> list[WatchedRun]:
        """Return the runs at a path or anywhere above it."""
        ancestor = _database(str(path))
        runs = list[WatchedRun]()
        while True:
            runs += self._by_path.get(ancestor, ())
            parent = os.path.dirname(ancestor) or "."  # noqa: PTH120  ten times as fast
            if parent == ancestor:
                return runs
            ancestor = parent


def _database(path: str) -> str:
    """Return the database of a write-ahead log; any other path as it is."""
    return path.removesuffix("-wal")


def restore_run(pipeline: Pipeline, store: Store, run: Run, name: str) -> RunPipeline:
    """Return the run as of its last commit; if that cannot be used, as of the start of its log."""
    run_pipeline = _track(pipeline, run, name)
    state = store.run_state(run.id)
    guard = Guard()
    if state is not None:
        guard(run, "restoring", partial(run_pipeline.restore, state))
    if run.id not in guard.failures:
        return run_pipeline
    _log.error(
        "%s: its saved state cannot be used, so its log is read from the start: %s",
        clean_text(name),
        guard.failures[run.id],
    )
    return _track(pipeline, run, name)


def _track(pipeline: Pipeline, run: Run, name: str) -> RunPipeline:
    run_pipeline = pipeline.track(run, name)
    run_pipeline.means = Means() if RULE in pipeline.detectors else None
    return run_pipeline
