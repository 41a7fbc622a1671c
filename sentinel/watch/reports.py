"""What a watcher reports of itself: to `sentinel status`, to `/healthz`, to systemd and to its log."""

import logging
from collections.abc import Iterable, Sequence

from sentinel.common.clock import Clock
from sentinel.common.text import clean_text, duration_text
from sentinel.sources.base import ReadIssue
from sentinel.sources.discovery import unread_line
from sentinel.storage.store import BEHIND, Store
from sentinel.watch.backlog import Backlog
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.warn_once import WarnOnce
from sentinel.watch.watched import WatchedRuns

_RECORD_SECONDS = 10.0  # between two records for `sentinel status`
_MAX_LAGS = 1000  # runs whose lags are recorded, the longest first
_MAX_ERROR_CHARACTERS = 300  # of a failure of a detector
_NEVER = float("-inf")  # time awake

_log = logging.getLogger(__name__)


class Reports:
    """The reports of the watcher ``name``. ``store`` belongs to the thread that calls.

    ``unrecordable`` says why nothing can be recorded; None if all can.
    """

    def __init__(
        self,
        name: str,
        store: Store,
        clock: Clock,
        service: ServiceManager,
        runs: WatchedRuns,
        backlog: Backlog,
    ) -> None:
        self._name = name
        self._store = store
        self._clock = clock
        self._service = service
        self._runs = runs
        self._backlog = backlog
        self._warnings = WarnOnce()
        self._failures: dict[str, str] = {}  # errors of detectors, by the name in the record
        self._recorded_at = _NEVER
        self._unread_files = 0
        self.unrecordable: str | None = None

    def record(self, *, immediately: bool = False) -> None:
        """Record for `sentinel status` that this watcher is alive, now and then or ``immediately``."""
        awake = self._clock.monotonic()
        if immediately or awake - self._recorded_at >= _RECORD_SECONDS:
            state = {"polled_at": self._clock.now(), "runs": len(self._runs)}
            last = {f"{self._name}: last complaint": self._warnings.latest}
            longest = [*self._backlog.lags().items()][:_MAX_LAGS]
            lags = {f"{self._name}{BEHIND}": {run: round(lag, 1) for run, lag in longest} or None}
            self._store.set_health({self._name: state, **last, **lags, **self._failures})
            self._recorded_at = awake

    def record_soon(self) -> None:
        """Let the next call of `record` record."""
        self._recorded_at = _NEVER

    def alive(self) -> None:
        """Report that the watcher goes on, and what is wrong with it."""
        stopped = sum(1 for watched in self._runs if watched.stopped)
        not_judged = f", {stopped} not judged" if stopped else ""
        problem = f"reads nothing: {self.unrecordable}" if self.unrecordable else self._lag_problem()
        status = f"{len(self._runs)} runs{not_judged}" + (f"; {problem}" if problem else "")
        self._service.health.report(self._name, problem, self._clock.monotonic())
        self._service.alive(status)

    def warn_of(self, issues: Iterable[ReadIssue]) -> None:
        """Log what could not be read, each issue once."""
        for issue in issues:
            self.warn(str(issue))

    def note_unread(self, unread: Sequence[ReadIssue]) -> None:
        """Log which files look like logs and are not read, once for each number of them."""
        if len(unread) != self._unread_files:
            self._unread_files = len(unread)
            if unread:
                _log.info("%s", clean_text(unread_line(unread), 500))

    def warn(self, problem: str) -> None:
        """Log what is wrong, once."""
        if self._warnings.warn(problem):
            self.record_soon()

    def detector_failed(self, detector: str, run: str, error: BaseException) -> None:
        """Note that a detector raised on a run."""
        name = f"detector {detector}"
        failure = clean_text(f"{type(error).__name__}: {error}", _MAX_ERROR_CHARACTERS)
        if self._failures.get(name) != failure:
            _log.error("detector %s failed on %s: %s", detector, clean_text(run), failure)
        self._failures[name] = failure
        self.record_soon()

    def _lag_problem(self) -> str:
        """Return that some runs are read too late; empty if none is."""
        lags = self._backlog.excessive_lags()
        if not lags:
            return ""
        run, lag = next(iter(lags.items()))
        others = f", and {len(lags) - 1} more are late" if len(lags) > 1 else ""
        return f"{clean_text(run)} was not read to its end for {duration_text(lag)}{others}"
