"""Looks again and again at what a watch recorded, until there is something to say.

A running watch that follows the runs is asked through its state. Where there is none, or it ends, a watch of
one's own follows them.
"""

import glob
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import msgspec
from typing_extensions import TypedDict

from sentinel.common.clock import Clock
from sentinel.common.errors import SentinelError, StateError
from sentinel.common.paths import exists
from sentinel.common.run_glob import any_fits, run_glob
from sentinel.common.state_dir import STATE_FILE, state_dir_option
from sentinel.common.text import counted, duration_text
from sentinel.config.file import Config
from sentinel.incidents.incident import Incident
from sentinel.notifications.decide import SinkPolicy
from sentinel.notifications.silences import Silence
from sentinel.pipeline import Pipeline
from sentinel.report.recorded import recorded_incident
from sentinel.report.status import KnownRun, Status, status
from sentinel.report.status_body import WatchedRunBody, watched_run
from sentinel.runs.state import RunState
from sentinel.sinks.base import Notification
from sentinel.sinks.message import message
from sentinel.sinks.webhook import WebhookBody, webhook_body
from sentinel.sources.identity import RunIdentity
from sentinel.sources.location import Location
from sentinel.storage.lock import watching_process
from sentinel.storage.store import Store
from sentinel.waiting.own_watch import OwnWatch
from sentinel.waiting.until import Until

CHECK_SECONDS = 1.0
"""A pause between two checks, each of which costs next to nothing while nothing was recorded."""

_MAX_CHECK_AGE = 10.0  # seconds; the state of a run also depends on the time
_MAX_READ_SECONDS = 60.0  # beyond a short timeout, so that what is there is read once
_GOING_ON_STATES = (RunState.RUNNING, RunState.STALLED)
_WELL_STATES = (RunState.FINISHED,)


class Outcome(StrEnum):
    """How a wait ends."""

    ENDED = "ended"
    INCIDENT = "incident"
    TIMEOUT = "timeout"
    UNREADABLE = "unreadable"


EXIT_STATUS: Mapping[Outcome, int] = {
    Outcome.ENDED: 0,
    Outcome.INCIDENT: 1,
    Outcome.TIMEOUT: 3,
    Outcome.UNREADABLE: 4,
}
"""The exit status of `sentinel wait`. The 2 of other commands, for unusable arguments, holds here, too."""


class Request(msgspec.Struct, frozen=True):
    """What somebody waits for. ``ignored`` are settled incidents, by the beginnings of their ids."""

    paths: Sequence[Location]
    until: Until = Until.CRITICAL
    timeout_seconds: float = 6 * 3600.0
    start_seconds: float = 60.0  # within which the first log must lie below the paths
    ignored: Collection[str] = ()


class WaitResult(msgspec.Struct, frozen=True):
    """The end of a wait. ``notification`` is about the worst incident; None if there is none."""

    outcome: Outcome
    message: str
    waited_seconds: float
    runs: Sequence[KnownRun]
    notification: Notification | None = None


class Waiting:
    """A wait. ``states`` are the state directories of watches that may follow the runs.

    `check` may be called from any thread. Raises SentinelError where nothing can be watched.
    """

    def __init__(self, config: Config, request: Request, states: Sequence[Path], clock: Clock) -> None:
        self._config = config
        self._request = request
        self._states = states
        self._clock = clock
        self._patterns = [_pattern(path) for path in request.paths]
        self._policy = SinkPolicy("wait", request.until.severity)
        self._own: OwnWatch | None = None
        self._began_at = clock.monotonic()
        self._last_look: tuple[object, float] = (None, float("-inf"))
        self.summary = "nothing was read yet"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._own is not None:
            self._own.__exit__(kind, error, trace)

    @property
    def waited_seconds(self) -> float:
        """How long this lasts."""
        return self._clock.monotonic() - self._began_at

    def check(self) -> WaitResult | None:
        """Return the result, or None while there is none."""
        state_dir = self._followed_state()
        is_read = self._own is None or self._own.is_read.is_set()
        limit = self._request.timeout_seconds + (0.0 if is_read else _MAX_READ_SECONDS)
        is_due = self.waited_seconds >= limit
        look = state_dir, _signature(state_dir)
        last_look, checked_at = self._last_look
        if look == last_look and not is_due and self._clock.monotonic() - checked_at < _MAX_CHECK_AGE:
            return None
        self._last_look = look, self._clock.monotonic()
        with Store(state_dir, read_only=True) as store:
            content = status(store, state_dir, self._clock.now(), lambda path: any_fits(self._patterns, path))
            self.summary = _states_summary(content)
            return self._result(store, content, state_dir, is_due=is_due)

    def _result(self, store: Store, content: Status, state_dir: Path, *, is_due: bool) -> WaitResult | None:
        is_read = self._own is None or self._own.is_read.is_set()
        going_on = [run for run in content.runs if run.state in _GOING_ON_STATES or run.lag > 0]
        all_over = is_read and bool(content.runs) and not going_on
        urgent = self._urgent(content)
        if urgent and (all_over or self._request.until is not Until.END):
            pipeline = Pipeline(
                self._config.enabled_detectors,
                self._config.parameters,
                self._config.signals,
                host=self._config.host,
            )
            options = state_dir_option(state_dir) if self._own is None else ""
            notification = recorded_incident(store, pipeline, urgent[0].id, self._config.link, options)
            return self._end(Outcome.INCIDENT, urgent[0].summary, content, notification)
        unread = [run for run in content.runs if run.not_judged and not run.points]
        is_late = is_due or self.waited_seconds >= self._request.start_seconds
        if is_read and not content.runs and is_late:
            paths = ", ".join(map(str, self._request.paths))
            return self._end(Outcome.UNREADABLE, f"{paths}: no log that sentinel can read", content)
        if is_read and content.runs and len(unread) == len(content.runs):
            return self._end(Outcome.UNREADABLE, f"{unread[0].row.path}: {unread[0].not_judged}", content)
        if all_over:
            is_well = all(run.state in _WELL_STATES for run in content.runs)
            outcome = Outcome.ENDED if is_well else Outcome.INCIDENT
            return self._end(outcome, _states_summary(content), content)
        if is_due:
            waited = duration_text(self.waited_seconds)
            return self._end(Outcome.TIMEOUT, f"after {waited}: {_states_summary(content)}", content)
        return None

    def _end(
        self, outcome: Outcome, message: str, content: Status, notification: Notification | None = None
    ) -> WaitResult:
        return WaitResult(outcome, message, self.waited_seconds, content.runs, notification)

    def _urgent(self, content: Status) -> list[Incident]:
        """Return the open incidents that need somebody, the worst first."""
        now = self._clock.now()
        rows = {run.row.id: run.row for run in content.runs}
        silences = self._silences(now)
        urgent = []
        for incident in content.incidents:
            run = RunIdentity(path=rows[incident.run].path)
            is_silenced = any(silence.matches(run, incident, now) for silence in silences)
            is_ignored = incident.id.startswith(tuple(self._request.ignored))
            is_asked_for = self._policy.refusal(incident, run) is None
            if is_asked_for and incident.inhibited_by is None and not (is_silenced or is_ignored):
                urgent.append(incident)
        return urgent

    def _silences(self, now: float) -> list[Silence]:
        """Return what people silenced or acknowledged, in any state that may know of the runs."""
        silences = list[Silence]()
        for state in self._states:
            with suppress(StateError), Store(state, read_only=True) as store:
                silences += store.silences(now)
        return silences

    def _followed_state(self) -> Path:
        """Return the state of the watch that follows the runs."""
        if self._own is None and (state_dir := self._running_watch()):
            return state_dir
        if self._own is None:
            self._own = OwnWatch(self._config, self._request.paths, self._clock).__enter__()
        if self._own.failure:
            raise SentinelError(f"the runs cannot be watched: {self._own.failure}")
        return self._own.state

    def _running_watch(self) -> Path | None:
        for state in self._states:
            if watching_process(state) is None:
                continue
            with suppress(StateError), Store(state, read_only=True) as store:
                if any(any_fits(self._patterns, row.path) for row in store.runs()):
                    return state
        return None


def _pattern(path: Location) -> str:
    if not isinstance(path, Path):
        return str(path)
    return glob.escape(str(path.resolve())) if exists(path) else run_glob(str(path.absolute()))


def _signature(state_dir: Path) -> object:
    """Return what changes whenever something was recorded."""
    files = [state_dir / f"{STATE_FILE}{ending}" for ending in ("", "-wal")]
    stats = [file.stat() for file in files if exists(file)]
    return [(stat.st_mtime_ns, stat.st_size) for stat in stats]


def _states_summary(content: Status) -> str:
    """Return in words how the runs stand: "3 runs: 2 running, 1 finished; loss/a at step 30"."""
    states: dict[str, int] = {}
    for run in content.runs:
        states[run.state] = states.get(run.state, 0) + 1
    counts = ", ".join(f"{number} {state}" for state, number in states.items())
    return f"{counted(len(content.runs), 'run')}{f': {counts}' if counts else ''}"


def next_steps(notification: Notification) -> list[str]:
    """Return what to do about an incident, the likeliest first."""
    content = message(notification)
    steps = []
    for cause in content.causes:
        steps += [f"{cause.name}: {cause.fix}"] if cause.fix else []
        steps += [f"to tell whether it is {cause.name}: {cause.check}"] if cause.check else []
    if notification.checkpoint:
        steps.append(f"the last checkpoint before the onset: {notification.checkpoint}")
    return steps


class WaitBody(TypedDict):
    """`sentinel wait --format json` where no incident ended the wait. ``outcome`` says how it ended."""

    schema: Literal[1]
    outcome: Outcome
    exit_status: int
    message: str
    waited_seconds: float
    runs: list[WatchedRunBody]


class WaitIncidentBody(WaitBody, WebhookBody):
    """`sentinel wait --format json` where an incident ended the wait: what a webhook gets, and what to do."""

    next_steps: list[str]


def waited_body(wait_result: WaitResult, now: float) -> WaitBody | WaitIncidentBody:
    """Return the result as JSON: where there is an incident, the body that a webhook gets, and more."""
    body: WaitBody = {
        "schema": 1,
        "outcome": wait_result.outcome,
        "exit_status": EXIT_STATUS[wait_result.outcome],
        "message": wait_result.message,
        "waited_seconds": round(wait_result.waited_seconds, 1),
        "runs": [watched_run(run) for run in wait_result.runs],
    }
    if wait_result.notification is None:
        return body
    steps = next_steps(wait_result.notification)
    return WaitIncidentBody(**{**webhook_body(wait_result.notification, now), **body, "next_steps": steps})
