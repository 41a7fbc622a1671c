"""The runs whose logs were not read to their ends yet, and for how long.

A large log is read in slices, so that no other run waits for it: each round reads what changed elsewhere
first, then slices of the logs that are behind, until its time is over.
"""

from collections.abc import Iterable, Iterator, Sequence

from sentinel.pipeline import POINTS_AT_ONCE
from sentinel.watch.watched import Watched

SLICES_SECONDS = 1.0
"""How long a round may go on with logs that are behind."""

LATE_SECONDS = 60.0
"""A watch is not well if a run is further behind, because a person hears of trouble within about a minute."""

LONG_FIRST_LOOK_SECONDS = 3600.0
"""The same while a run is first read. A log of some gigabytes takes minutes, and nothing is wrong then."""

_MOST_AT_ONCE, _FEWEST_AT_ONCE = 512, 64  # runs; fewer take hardly less time
_POINTS_OF_A_RUN = 1000  # in a slice, at least; with fewer, a run that grows may stay behind for good
_FEWEST_POINTS = POINTS_AT_ONCE >> 5


class Backlog:
    """Those runs, the one that has waited longest for its next slice first. All times are times awake.

    A slice has fewer runs and fewer points where the trainings leave the watch little of the processor, so
    that no other run waits for long.
    """

    def __init__(self) -> None:
        self._runs: dict[str, Watched] = {}
        self._points = POINTS_AT_ONCE  # in a slice, where a run may read all of them

    def __len__(self) -> int:
        return len(self._runs)

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._runs

    def note(self, watched: Watched, more: bool, awake: float) -> None:
        """Note whether a poll of a run left something to read."""
        self._runs.pop(watched.tracker.id, None)
        if more:
            watched.behind_since = awake if watched.behind_since is None else watched.behind_since
            self._runs[watched.tracker.id] = watched
        else:
            watched.behind_since = None

    def took(self, seconds: float) -> None:
        """Note how long the last slice took."""
        if seconds > 2 * SLICES_SECONDS:
            self._points = max(self._points // 2, _FEWEST_POINTS)
        elif seconds < SLICES_SECONDS:
            self._points = min(self._points * 2, POINTS_AT_ONCE)

    def points(self, runs: int) -> int:
        """How many points a slice of so many runs may read."""
        return max(self._points, runs * _POINTS_OF_A_RUN)

    def groups(self, runs: Sequence[Watched]) -> Iterator[Sequence[Watched]]:
        """The runs in groups that are read at once, each as large as the one before allows."""
        begin = 0
        while begin < len(runs):
            end = begin + self._at_once
            yield runs[begin:end]
            begin = end

    @property
    def _at_once(self) -> int:
        return min(max(self._points // _POINTS_OF_A_RUN, _FEWEST_AT_ONCE), _MOST_AT_ONCE)

    def drop(self, run_ids: Iterable[str]) -> None:
        """Forget runs, which need not be behind."""
        for run_id in run_ids:
            self._runs.pop(run_id, None)

    def next(self) -> Sequence[Watched]:
        """The runs whose turn it is."""
        return [*self._runs.values()][: self._at_once]

    def lags(self, awake: float) -> dict[str, float]:
        """Seconds since runs were last read to their ends, by run id, the longest first.

        May be called from any thread.
        """
        lags = {run_id: watched.lag(awake) for run_id, watched in self._runs.copy().items()}
        return dict(sorted(lags.items(), key=lambda item: -item[1]))

    def late(self, awake: float) -> dict[str, float]:
        """Those lags with which a watch is not well."""
        runs = self._runs.copy()
        allowed = {
            id_: LATE_SECONDS if run.looked_at else LONG_FIRST_LOOK_SECONDS for id_, run in runs.items()
        }
        return {id_: lag for id_, lag in self.lags(awake).items() if lag > allowed.get(id_, LATE_SECONDS)}
