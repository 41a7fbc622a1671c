"""The runs that have something to read: their logs changed, or were not read to their ends yet.

A round reads for about a second. First it reads what changed, in the order in which that changed, then slices
of the logs that lag. So no run waits for a large log, and a fleet that takes longer than a second is read in
several rounds, between which the watch rests (`sentinel.watch.throttle`).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from sentinel.common.clock import Clock
from sentinel.pipeline import MAX_POINTS
from sentinel.watch.watched import WatchedRun

READING_SECONDS = 1.0
"""How long a round goes on reading, if what it has to read takes longer."""

_MAX_LAG_SECONDS = 60.0  # of a log that is read in slices; a watch with a longer one is not well
_MAX_INITIAL_LAG_SECONDS = 3600.0  # the same in an initial scan; a log of some gigabytes takes minutes
_MAX_WAIT_SECONDS = 180.0  # of a changed log for its turn; else the watch has more runs than it can follow
_PRESSING_SECONDS = 30.0  # a watch may use more of the machine while a run has waited for so long

_MAX_SLICE_RUNS = 512
_MIN_SLICE_RUNS = 64  # fewer take hardly less time
_MIN_POINTS_PER_RUN = 1000  # of a slice; with fewer, a run that grows may lag for good
_SLICE_SECONDS = 0.5  # that a slice of one log takes, so that one that grows fast delays no other
_FIRST_RUN_POINTS = 1 << 15  # of a slice, of one run
_MIN_RUN_POINTS = 1 << 13  # the same; fewer take hardly less time
_MIN_SLICE_POINTS = MAX_POINTS >> 3  # fewer take hardly less time, because most of it is a fixed cost


class Backlog:
    """The runs with something to read, the one that has waited longest first. All times are times awake.

    A slice has fewer runs and fewer points where the trainings leave the watch little of the processor, so
    that no other run waits for long.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[str, tuple[float, WatchedRun]] = {}  # since when: they changed, or may have
        self._lagging: dict[str, WatchedRun] = {}  # not read to their ends
        self._points = MAX_POINTS  # of a slice, over all its runs
        self._run_points = _FIRST_RUN_POINTS  # of a slice, of one run

    def __len__(self) -> int:
        return len(self._due) + len(self._lagging)

    def add_changed(self, runs: Iterable[WatchedRun]) -> None:
        """Give a turn to runs whose logs changed."""
        awake = self._clock.monotonic()
        changed = [*runs]
        for watched in changed:
            watched.due_since = awake if watched.due_since is None else watched.due_since
        self.add(changed)

    def add(self, runs: Iterable[WatchedRun]) -> None:
        """Give a turn to runs whose logs may have changed."""
        awake = self._clock.monotonic()
        for watched in runs:
            if watched.run_pipeline.id not in self._lagging:
                self._due.setdefault(watched.run_pipeline.id, (awake, watched))

    def put_first(self, runs: Iterable[WatchedRun]) -> None:
        """Give the next turn to those of the runs that are due."""
        ids = [watched.run_pipeline.id for watched in runs if watched.run_pipeline.id in self._due]
        self._due = {**{run_id: self._due[run_id] for run_id in ids}, **self._due} if ids else self._due

    def turns(self, new_runs: Sequence[WatchedRun], until: float) -> Iterator[Sequence[WatchedRun]]:
        """Yield the groups of runs that a round reads: all new runs, then one group at least of those that
        are due and of those that lag, and more ``until`` this time awake.

        Each group must be read and passed to `note` before the next one is requested.
        """
        begin = 0
        while begin < len(new_runs):
            end = begin + self._run_limit
            yield new_runs[begin:end]
            begin = end
        while self._due:
            yield [watched for _, watched in islice(self._due.values(), self._run_limit)]
            if self._clock.monotonic() >= until:
                break
        while self._lagging:
            yield [*islice(self._lagging.values(), self._run_limit)]
            if self._clock.monotonic() >= until:
                break

    def note(self, watched: WatchedRun, has_more: bool, awake: float) -> None:
        """Note whether there is more to read after a poll of a run."""
        self.drop([watched.run_pipeline.id])
        watched.due_since = None
        if has_more:
            watched.lagging_since = awake if watched.lagging_since is None else watched.lagging_since
            self._lagging[watched.run_pipeline.id] = watched
        else:
            watched.lagging_since = None

    def note_duration(self, seconds: float) -> None:
        """Note how long the last slice took, which decides on the size of the next ones."""
        if seconds > 2 * READING_SECONDS:
            self._points = max(self._points // 2, _MIN_SLICE_POINTS)
        elif seconds < READING_SECONDS:
            self._points = min(self._points * 2, MAX_POINTS)
        if seconds > _SLICE_SECONDS:
            self._run_points = max(self._run_points // 2, _MIN_RUN_POINTS)
        elif seconds < _SLICE_SECONDS / 2:
            self._run_points = min(self._run_points * 2, MAX_POINTS)

    def points(self, runs: int) -> int:
        """Return how many points a slice of so many runs may read."""
        return min(max(self._points, runs * _MIN_POINTS_PER_RUN), runs * self._run_points)

    @property
    def _run_limit(self) -> int:
        """How many runs a slice may have."""
        return min(max(self._points // _MIN_POINTS_PER_RUN, _MIN_SLICE_RUNS), _MAX_SLICE_RUNS)

    def drop(self, run_ids: Iterable[str]) -> None:
        """Forget runs, which need not be here."""
        for run_id in run_ids:
            self._due.pop(run_id, None)
            self._lagging.pop(run_id, None)

    @property
    def is_pressing(self) -> bool:
        """Whether a run lags, or has waited for long."""
        long_ago = self._clock.monotonic() - _PRESSING_SECONDS
        return bool(self._lagging) or any(since < long_ago for since, _ in self._due.values())

    def lags(self) -> dict[str, float]:
        """Return seconds since runs were last read to their ends, by run id, the longest first: of those that
        lag, and of those that have waited for long.

        May be called from any thread.
        """
        awake = self._clock.monotonic()
        lagging = self._lagging.copy()
        lags = {run_id: watched.lag(awake) for run_id, watched in self._all_watched().items()}
        notable = {run: lag for run, lag in lags.items() if run in lagging or lag > _PRESSING_SECONDS}
        return dict(sorted(notable.items(), key=lambda item: -item[1]))

    def excessive_lags(self) -> dict[str, float]:
        """Return those lags with which a watch is not well."""
        runs = self._all_watched()
        return {run: lag for run, lag in self.lags().items() if run in runs and lag > _max_lag(runs[run])}

    def _all_watched(self) -> dict[str, WatchedRun]:
        due_runs = self._due.copy()  # at once, because another thread may ask
        return {**{run_id: watched for run_id, (_, watched) in due_runs.items()}, **self._lagging}


def _max_lag(watched: WatchedRun) -> float:
    """Return the seconds that a run may lag while a watch is well."""
    if not watched.initial_scan_done:
        return _MAX_INITIAL_LAG_SECONDS
    return _MAX_WAIT_SECONDS if watched.lagging_since is None else _MAX_LAG_SECONDS
