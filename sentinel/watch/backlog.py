"""The runs that have something to read: their logs changed, or were not read to their ends yet.

A round reads for about a second. First it reads what changed, in the order in which that changed, then slices
of the logs that are behind. So no run waits for a large log, and a fleet that takes longer than a second is
read in several rounds, between which the watch rests (`sentinel.watch.throttle`).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from sentinel.common.clock import Clock
from sentinel.pipeline import MAX_POINTS
from sentinel.watch.watched import WatchedRun

READING_SECONDS = 1.0
"""How long a round goes on reading, if what it has to read takes longer."""

LATE_SECONDS = 60.0
"""A watch is not well if a log that it reads in slices is further behind."""

LONG_FIRST_LOOK_SECONDS = 3600.0
"""The same while a run is first read. A log of some gigabytes takes minutes, and nothing is wrong then."""

LONG_WAIT_SECONDS = 180.0
"""The same for a log that changed and waits for its turn: the watch has more runs than it can follow."""

PRESSING_SECONDS = 30.0
"""A watch may use more of the machine while a run has waited for so long, and says so."""

_MAX_AT_ONCE = 512  # runs
_MIN_AT_ONCE = 64  # fewer take hardly less time
_POINTS_OF_A_RUN = 1000  # in a slice, at least; with fewer, a run that grows may stay behind for good
_MIN_POINTS = MAX_POINTS >> 3  # fewer take hardly less time, because most of it is a fixed cost


class Backlog:
    """Those runs, the one that has waited longest first. All times are times awake.

    A slice has fewer runs and fewer points where the trainings leave the watch little of the processor, so
    that no other run waits for long.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[str, tuple[float, WatchedRun]] = {}  # since when: they changed, or may have
        self._behind: dict[str, WatchedRun] = {}  # not read to their ends
        self._points = MAX_POINTS  # in a slice, where a run may read all of them

    def __len__(self) -> int:
        return len(self._due) + len(self._behind)

    def changed(self, runs: Iterable[WatchedRun]) -> None:
        """Note that the logs of some runs changed."""
        awake = self._clock.monotonic()
        for watched in (runs := [*runs]):
            watched.due_since = awake if watched.due_since is None else watched.due_since
        self.ask(runs)

    def ask(self, runs: Iterable[WatchedRun]) -> None:
        """Let runs have a turn, because their logs may have changed."""
        awake = self._clock.monotonic()
        for watched in runs:
            if watched.run_pipeline.id not in self._behind:
                self._due.setdefault(watched.run_pipeline.id, (awake, watched))

    def hurry(self, runs: Iterable[WatchedRun]) -> None:
        """Give runs that are due the next turn."""
        ids = [watched.run_pipeline.id for watched in runs if watched.run_pipeline.id in self._due]
        self._due = {**{id_: self._due[id_] for id_ in ids}, **self._due} if ids else self._due

    def turns(self, new: Sequence[WatchedRun], until: float) -> Iterator[Sequence[WatchedRun]]:
        """Yield the groups of runs that a round reads: all new runs, then one group at least of those that
        are due and of those that are behind, and more ``until`` this time awake.

        Each group must be read and noted before the next one is asked for.
        """
        begin = 0
        while begin < len(new):
            end = begin + self._at_once
            yield new[begin:end]
            begin = end
        while self._due:
            yield [watched for _, watched in islice(self._due.values(), self._at_once)]
            if self._clock.monotonic() >= until:
                break
        while self._behind:
            yield [*islice(self._behind.values(), self._at_once)]
            if self._clock.monotonic() >= until:
                break

    def note(self, watched: WatchedRun, more: bool, awake: float) -> None:
        """Note whether a poll of a run left something to read."""
        self.drop([watched.run_pipeline.id])
        watched.due_since = None
        if more:
            watched.behind_since = awake if watched.behind_since is None else watched.behind_since
            self._behind[watched.run_pipeline.id] = watched
        else:
            watched.behind_since = None

    def took(self, seconds: float) -> None:
        """Note how long the last slice took."""
        if seconds > 2 * READING_SECONDS:
            self._points = max(self._points // 2, _MIN_POINTS)
        elif seconds < READING_SECONDS:
            self._points = min(self._points * 2, MAX_POINTS)

    def points(self, runs: int) -> int:
        """Return how many points a slice of so many runs may read."""
        return max(self._points, runs * _POINTS_OF_A_RUN)

    @property
    def _at_once(self) -> int:
        return min(max(self._points // _POINTS_OF_A_RUN, _MIN_AT_ONCE), _MAX_AT_ONCE)

    def drop(self, run_ids: Iterable[str]) -> None:
        """Forget runs, which need not be here."""
        for run_id in run_ids:
            self._due.pop(run_id, None)
            self._behind.pop(run_id, None)

    @property
    def is_pressing(self) -> bool:
        """Whether a run is behind, or has waited for long."""
        long_ago = self._clock.monotonic() - PRESSING_SECONDS
        return bool(self._behind) or any(since < long_ago for since, _ in self._due.values())

    def lags(self) -> dict[str, float]:
        """Return seconds since runs were last read to their ends, by run id, the longest first: of those that
        are behind, and of those that have waited for long.

        May be called from any thread.
        """
        awake = self._clock.monotonic()
        behind = self._behind.copy()
        lags = {run_id: watched.lag(awake) for run_id, watched in self._all().items()}
        told = {id_: lag for id_, lag in lags.items() if id_ in behind or lag > PRESSING_SECONDS}
        return dict(sorted(told.items(), key=lambda item: -item[1]))

    def late(self) -> dict[str, float]:
        """Return those lags with which a watch is not well."""
        runs = self._all()
        return {id_: lag for id_, lag in self.lags().items() if id_ in runs and lag > _allowed(runs[id_])}

    def _all(self) -> dict[str, WatchedRun]:
        due = self._due.copy()  # at once, because another thread may ask
        return {**{run_id: watched for run_id, (_, watched) in due.items()}, **self._behind}


def _allowed(watched: WatchedRun) -> float:
    """Return seconds that a run may be behind."""
    if not watched.looked_at:
        return LONG_FIRST_LOOK_SECONDS
    return LONG_WAIT_SECONDS if watched.behind_since is None else LATE_SECONDS
