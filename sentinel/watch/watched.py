"""The runs under watch: how each is restored, when points last arrived, and why it is not judged."""

import logging
import math
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sentinel.common.fault_isolation import Guard
from sentinel.common.text import clean_text
from sentinel.comparison.means import Means
from sentinel.pipeline import Pipeline
from sentinel.replays.siblings import RULE
from sentinel.run_pipeline import RunPipeline
from sentinel.runs.copied_logs import silence_of
from sentinel.runs.metadata import LONG_INTERVALS, lost_after_seconds
from sentinel.sources.base import Run
from sentinel.sources.location import Url
from sentinel.sources.sidecars.output_files import ENDINGS
from sentinel.storage.store import Store

_COMMIT_SECONDS = 30.0  # a run without news is committed this often ...
_COMMITS_A_SECOND = 30  # ... less often if so many runs would take much of the time ...
_COMMIT_POINTS = 200_000  # ... or after so many points
_INTERVALS = 100
_QUIET_SECONDS = 60.0  # a run may still flush its log after its end
_FIRST_PAUSE_SECONDS = 60.0  # before a run that failed is tried again; twice as long after each failure ...
_MAX_PAUSE_SECONDS = 3600.0  # ... up to this


Settings = frozenset[tuple[str, str]]
"""Names and values."""


@dataclass
class WatchedRun:
    """A run under watch. All times are times awake.

    ``committed_at`` is minus infinity before the first commit. ``stopped`` says why the run is not judged,
    and ``recorded_stop`` what the store holds about that. After a failure the tracker may be half changed, so
    another one must replace it.
    """

    run_pipeline: RunPipeline
    arrived_at: float
    committed_at: float
    uncommitted: int = 0  # points
    intervals: deque[float] = field(default_factory=lambda: deque(maxlen=_INTERVALS))
    failures: int = 0  # in a row
    rests_until: float = float("-inf")
    stopped: str | None = None
    recorded_stop: str | None = None
    finalized: int | None = None  # number of points when the run was last over
    looked_at: bool = False  # whether it was looked at once
    past: bool = False  # it was over at the first look, and has not grown since
    settings: tuple[int, Settings] | None = None  # how many are stated, and those that its siblings share
    sibling_at: int | None = None  # number of points with which it may be a sibling of others
    judged_at: int | None = None  # the place of its plan at which it was held against its siblings
    behind_since: float | None = None  # None if it was read to its end
    due_since: float | None = None  # when its log changed; None if it has been polled since
    review_at: float = -math.inf  # its silence is not judged before

    def overdue(self, now: float, runs: int) -> bool:
        """Return whether a commit is due, so that a kill does not cost too much re-reading.

        ``runs`` is the number of runs under watch.
        """
        late = now - self.committed_at >= max(_COMMIT_SECONDS, runs / _COMMITS_A_SECOND)
        return self.uncommitted >= _COMMIT_POINTS or (late and self.uncommitted > 0)

    def committed(self, now: float) -> None:
        """Note that everything that was read is recorded."""
        self.uncommitted = 0
        self.committed_at = now

    @property
    def is_read(self) -> bool:
        """Whether its log was read to the end, or cannot be read at present."""
        return self.run_pipeline.log.reached_end or self.failures > 0

    def was_over(self, now: float) -> bool:
        """Return whether the run has ended or fell silent before it was seen; ``now`` is the time of day."""
        log = self.run_pipeline.log
        if log.live or log.ending is not None:
            return not log.live
        silent = silence_of(log.run.path, log.metadata, now)
        return silent is None or silent > log.metadata.lost_after_seconds

    def silent_seconds(self, now: float) -> float:
        """Return seconds since points arrived. A log that ended, or that was not read to its end, is not
        silent.
        """
        loud = self.behind_since is not None or self.run_pipeline.log.ending is not None
        return 0.0 if loud else now - self.arrived_at

    def lag(self, now: float) -> float:
        """Return seconds for which the log is known to hold something that was not read."""
        return now - min(since for since in (self.behind_since, self.due_since, now) if since is not None)

    def is_newly_over(self, now: float) -> bool:
        """Return whether the run is over and was not when this was last called."""
        log = self.run_pipeline.log
        read = log.reached_end and self.behind_since is None
        over = read and (self.past or now - self.arrived_at > self._quiet_seconds())
        before = self.finalized
        self.finalized = log.metadata.points if over else self.finalized
        return over and before != self.finalized

    def _quiet_seconds(self) -> float:
        """Return how long it has to be silent until it is over."""
        log = self.run_pipeline.log
        if (ending := log.ending) is None:
            return self.lost_after_seconds
        return _QUIET_SECONDS if ending.inferred and log.metadata.exit is None else 0.0

    @property
    def usual_pause_seconds(self) -> float:
        """The longest pause between its points that is ordinary."""
        return self.lost_after_seconds / LONG_INTERVALS

    @property
    def lost_after_seconds(self) -> float:
        """How long it may be silent before it is lost."""
        return max(lost_after_seconds(self.intervals), self.run_pipeline.log.metadata.lost_after_seconds)

    def heard(self, points: int, now: float) -> None:
        """Note that points arrived."""
        self.uncommitted += points
        self.past = self.past and not self.looked_at
        self.intervals.append(now - self.arrived_at)
        self.arrived_at = now
        self.review_at = -math.inf

    def failed(self, reason: str, now: float) -> None:
        """Note that a stage raised. The run is tried again later, from its last commit."""
        self.stopped = reason
        self.uncommitted = 0
        pause = min(_FIRST_PAUSE_SECONDS * 2.0**self.failures, _MAX_PAUSE_SECONDS)
        self.failures = min(self.failures + 1, 30)
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
        self._beside: dict[str, list[WatchedRun]] = {}  # runs that are a file, by the directory of that
        self._remote: list[WatchedRun] = []

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[WatchedRun]:
        return iter([*self._by_id.values()])

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._by_id

    def add(self, watched: WatchedRun) -> None:
        """Add a run."""
        path = watched.run_pipeline.log.run.path
        self._by_id[watched.run_pipeline.id] = watched
        if isinstance(path, Url):
            self._remote.append(watched)
        else:
            place = path if path.exists() else path.parent  # a database holds many runs
            for each in (place, *watched.run_pipeline.log.run.also):
                self._by_path.setdefault(str(each), []).append(watched)
            if place == path and path.is_file():
                self._beside.setdefault(str(path.parent), []).append(watched)

    def remove(self, run_ids: Iterable[str]) -> None:
        """Remove runs, which need not be there."""
        for run_id in run_ids:
            self._by_id.pop(run_id, None)
        for places in (self._by_path, self._beside):
            for place, runs in [*places.items()]:
                places[place] = [watched for watched in runs if watched.run_pipeline.id in self._by_id]
                if not places[place]:
                    del places[place]

    def touched(self, changed: Iterable[Path]) -> Iterator[WatchedRun]:
        """Yield the runs that changed files belong to, some more than once."""
        for path in changed:
            yield from self._at(path)
            yield from self._printing_to(path)

    @property
    def remote(self) -> Sequence[WatchedRun]:
        """The runs of which no event says that they changed."""
        return self._remote

    def may_grow_by(self, path: Path) -> bool:
        """Return whether a change of this file may bring a new run: it belongs to no run yet, or may hold
        many.
        """
        runs = [watched.run_pipeline.log.run.path for watched in self._at(path)]
        database = _database(str(path))
        return not runs or any(str(run.parent) == database for run in runs if isinstance(run, Path))

    def _printing_to(self, path: Path) -> list[WatchedRun]:
        """Return the runs whose console output a file may be."""
        return self._beside.get(str(path.parent), []) if path.name.endswith(ENDINGS) else []

    def _at(self, path: Path) -> list[WatchedRun]:
        """Return the runs at a path or anywhere above it."""
        place = _database(str(path))
        runs = list[WatchedRun]()
        while True:
            runs += self._by_path.get(place, ())
            above = os.path.dirname(place) or "."  # noqa: PTH120  ten times as fast
            if above == place:
                return runs
            place = above


def _database(path: str) -> str:
    """Return the database of a write-ahead log; any other path as it is."""
    return path.removesuffix("-wal")


_log = logging.getLogger(__name__)


def restored(pipeline: Pipeline, store: Store, run: Run, name: str) -> RunPipeline:
    """Return a tracker from the last commit of the run; if that cannot be used, from the start of its log."""
    run_pipeline = _new(pipeline, run, name)
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
    return _new(pipeline, run, name)


def _new(pipeline: Pipeline, run: Run, name: str) -> RunPipeline:
    run_pipeline = pipeline.track(run, name)
    run_pipeline.means = Means() if RULE in pipeline.detectors else None
    return run_pipeline
