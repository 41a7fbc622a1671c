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

_RECORD_SECONDS = 10.0
_MAX_LAGS = 1000  # that are recorded, the longest first
_NEVER = float("-inf")

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
        self._troubles = WarnOnce()
        self._detectors: dict[str, str] = {}  # that failed, with the error
        self._recorded_at = _NEVER
        self._unread_files = 0
        self.unrecordable: str | None = None

    def record(self, *, immediately: bool = False) -> None:
        """Record for `sentinel status` that this watcher is alive, now and then or ``at_once``."""
        awake = self._clock.monotonic()
        if immediately or awake - self._recorded_at >= _RECORD_SECONDS:
            state = {"looked_at": self._clock.now(), "runs": len(self._runs)}
            last = {f"{self._name}: last complaint": self._troubles.latest}
            lags = [*self._backlog.lags().items()][:_MAX_LAGS]
            behind = {f"{self._name}{BEHIND}": {run: round(lag, 1) for run, lag in lags} or None}
            self._store.set_health({self._name: state, **last, **behind, **self._detectors})
            self._recorded_at = awake

    def soon(self) -> None:
        """Let the next `record` record."""
        self._recorded_at = _NEVER

    def alive(self) -> None:
        """Report that the watcher goes on, and what is wrong with it."""
        idle = sum(1 for watched in self._runs if watched.stopped)
        not_judged = f", {idle} not judged" if idle else ""
        trouble = f"reads nothing: {self.unrecordable}" if self.unrecordable else self._late()
        status = f"{len(self._runs)} runs{not_judged}" + (f"; {trouble}" if trouble else "")
        self._service.health.report(self._name, trouble, self._clock.monotonic())
        self._service.alive(status)

    def complain(self, complaints: Iterable[ReadIssue]) -> None:
        """Log what could not be read."""
        for complaint in complaints:
            self.trouble(str(complaint))

    def note_unread(self, unread: Sequence[ReadIssue]) -> None:
        """Log which files look like logs and are not read, once for each number of them."""
        if len(unread) != self._unread_files:
            self._unread_files = len(unread)
            if unread:
                _log.info("%s", clean_text(unread_line(unread), 500))

    def trouble(self, trouble: str) -> None:
        """Log what is wrong, once."""
        if self._troubles.warn(trouble):
            self.soon()

    def detector_failed(self, detector: str, run: str, error: BaseException) -> None:
        """Note that a detector raised on a run."""
        what = clean_text(f"{type(error).__name__}: {error}", 300)
        if self._detectors.get(f"detector {detector}") != what:
            _log.error("detector %s failed on %s: %s", detector, clean_text(run), what)
        self._detectors[f"detector {detector}"] = what
        self.soon()

    def _late(self) -> str:
        """Return that some runs are read too late; empty if none is."""
        late = self._backlog.late()
        if not late:
            return ""
        run, lag = next(iter(late.items()))
        others = f", and {len(late) - 1} more are late" if len(late) > 1 else ""
        return f"{clean_text(run)} was not read to its end for {duration_text(lag)}{others}"
