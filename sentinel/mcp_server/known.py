"""The runs that agents may ask about: those below some paths, else those that a watch has recorded."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from glob import escape
from typing import Any, cast

import msgspec
from msgspec.structs import asdict

from sentinel.common.errors import SentinelError, UnknownName
from sentinel.common.run_glob import fits, run_glob
from sentinel.common.secrets import masked_text
from sentinel.common.text import clean_text, seconds_in
from sentinel.config.file import Config
from sentinel.detectors.runtime.worse_than_siblings import RULE
from sentinel.detectors.severity import Severity
from sentinel.detectors.skip_reason import SkipReason
from sentinel.incidents.json_body import IncidentBody
from sentinel.mcp_server.bodies import AgentRunBody, IncidentsBody, RunsBody
from sentinel.mcp_server.plot import tags_of
from sentinel.mcp_server.reach import is_given
from sentinel.notifications.silences import acknowledgement, silence
from sentinel.pipeline import Pipeline
from sentinel.replays.coverage import Coverage
from sentinel.replays.judged import JudgedRun
from sentinel.replays.kept import KeptReplay
from sentinel.replays.replay import Replay
from sentinel.replays.replaying import replay
from sentinel.report import json as replays
from sentinel.report import status as recorded
from sentinel.report.diagnosis import diagnosis
from sentinel.report.model import replay_report
from sentinel.report.pair import PairBody, pair_body
from sentinel.report.run_body import RunBody
from sentinel.report.selection import ordered
from sentinel.report.status_body import LocatedIncidentBody, located, run_body
from sentinel.runs.console_history import printed_lines
from sentinel.sources.discovery import locations_of, nothing_read
from sentinel.sources.location import Location
from sentinel.storage.store import Store

MAX_ROWS = 50
"""The most runs or incidents of an answer."""

_MAX_SILENCE_SECONDS = 86400.0  # a text in a log may have led the agent to it
_MAX_AGE_SECONDS = 60.0  # of the states of runs whose files did not change
_MAX_SETTINGS = 300  # in an answer
_MAX_PRINTED_LINES = 200  # of one file, in an answer
_MAX_LINE = 1000  # characters of a printed line
_SEVERITIES = {severity.label: severity for severity in Severity if severity}
_OPEN_STATES = ("firing", "escalated", "lost")


class Wanted(msgspec.Struct, frozen=True):
    """Which incidents an agent asks for. ``since`` is in seconds since the epoch."""

    since: float = 0.0
    min_severity: Severity = Severity.INFO
    open_only: bool = False

    @classmethod
    def parse(cls, since: str, min_severity: str, *, open_only: bool, now: float) -> "Wanted":
        """Return what an agent wrote: ``since`` is how long before ``now`` (2h), or an ISO 8601 time.

        Raises SentinelError for anything else.
        """
        if min_severity not in _SEVERITIES:
            raise UnknownName("severity", min_severity, [*_SEVERITIES])
        return cls(_time(since, now), _SEVERITIES[min_severity], open_only)

    def selects(self, incident: Mapping[str, Any]) -> bool:
        """Return whether an incident in its JSON form is one of these."""
        is_open = incident["state"] in _OPEN_STATES
        fired = _parsed_seconds(incident["fired_time"])
        is_late = fired is None or fired >= self.since
        return (
            is_late
            and _SEVERITIES[incident["severity"]] >= self.min_severity
            and (is_open or not self.open_only)
        )


EVERYTHING = Wanted()
"""All incidents."""


@dataclass(frozen=True)
class Answers:
    """Runs below ``paths`` are judged when one asks, and judged again when their files changed; without paths
    the state directory is read.

    ``now`` gives the time of day in seconds since the epoch. Every method raises SentinelError for what does
    not exist or cannot be read.
    """

    config: Config
    paths: Sequence[Location]
    now: Callable[[], float]
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _bodies: dict[str, tuple[object, float, Any]] = field(default_factory=dict, repr=False)

    @cached_property
    def _kept(self) -> KeptReplay:
        return KeptReplay(self.config, self.paths)

    def runs(self, run: str, limit: int = MAX_ROWS) -> RunsBody:
        """Return the runs that fit a glob, the worst first."""
        if self.paths:
            rows = [_agent_run(body, _roots(body["incidents"])) for body in self._judged(run)]
        else:
            content = self._status(run)
            roots = Counter(incident.run for incident in content.incidents if incident.inhibited_by is None)
            rows = [_agent_run(run_body(known_run), roots[known_run.row.id]) for known_run in content.runs]
        max_rows = _limited(limit)
        return {"schema": 1, "runs": rows[:max_rows], "left_off": max(len(rows) - max_rows, 0)}

    def incidents(self, run: str, selection: Wanted = EVERYTHING, limit: int = MAX_ROWS) -> IncidentsBody:
        """Return the incidents of runs that fit a glob."""
        if self.paths:
            rows = [_located(incident, body) for body in self._judged(run) for incident in body["incidents"]]
        else:
            rows = self._recorded_incidents(run)
        selected = [incident for incident in rows if selection.selects(incident)]
        max_rows = _limited(limit)
        return {"schema": 1, "incidents": selected[:max_rows], "left_off": max(len(selected) - max_rows, 0)}

    def _recorded_incidents(self, run: str) -> list[LocatedIncidentBody]:
        runs = {known_run.row.id: known_run for known_run in self._status(run).runs}
        with Store(self.config.state_dir, read_only=True) as store:
            incidents = [incident for incident in store.incidents() if incident.run in runs]
        return [
            located(incident, runs[incident.run])
            for incident in recorded.worst_first(incidents, runs.values())
        ]

    def locations_of(self, run: str) -> Sequence[Location]:
        """Return where the runs that fit a glob lie; for `*` all that may be asked about."""
        if run == "*" and self.paths:
            return self.paths
        if self.paths:
            return locations_of([body["path"] for body in self._judged(run)])
        pattern = run_glob(run)
        fitting_paths = [path for path in self._recorded() if fits(pattern, path)]
        if not fitting_paths:
            raise SentinelError(f"no run is called {run!r}; `list_runs` has them")
        return locations_of(dict.fromkeys(fitting_paths))

    def names(self, run: str) -> Mapping[str, str]:
        """Return the names of the runs that fit a glob, by their paths."""
        if self.paths:
            return {body["path"]: body["run"] for body in self._judged(run)}
        return {known_run.row.path: known_run.name for known_run in self._status(run).runs}

    def points(self, run: str, signal: str, max_points: int) -> Mapping[str, Any]:
        """Return the curves of a signal or a tag of the one run that fits a glob, in a few points each."""
        judged_run = self.replayed(run)
        curves = judged_run.curves.of if judged_run.curves else {}
        return {
            "run": judged_run.run_pipeline.log.name,
            "curves": [
                {
                    "tag": tag,
                    "rows": curves[tag].rows,
                    "not_finite_at": curves[tag].lost_at,
                    "step_value": [[point.step, point.value] for point in curves[tag].points(max_points)],
                }
                for tag in tags_of(judged_run, signal)
            ],
        }

    def settings(self, run: str) -> Mapping[str, Any]:
        """Return the settings of the one run that fits a glob, without secrets."""
        log = self.replayed(run).run_pipeline.log
        config = log.metadata.config
        return {
            "run": log.name,
            "settings": {name: config[name].value for name in [*config][:_MAX_SETTINGS]},
            "left_off": max(len(config) - _MAX_SETTINGS, 0),
        }

    def printed(self, run: str, lines: int) -> Mapping[str, Any]:
        """Return the last lines that the one run that fits a glob printed, by file."""
        log = self.replayed(run).run_pipeline.log
        max_lines = min(max(lines, 1), _MAX_PRINTED_LINES)
        return {
            "run": log.name,
            "printed": {
                origin or "the log": [masked_text(line.text[:_MAX_LINE]) for line in printed[-max_lines:]]
                for origin, printed in printed_lines(log).items()
            },
        }

    def compared(self, run: str, other: str) -> PairBody:
        """Return two runs beside one another: the settings in which they differ, and where signals end."""
        return pair_body(self.replayed(run), self.replayed(other))

    def diagnosis(self, run: str) -> Sequence[str]:
        """Return what a person would read of the one run that fits a glob, on a page of Markdown."""
        judged_run = self.replayed(run)
        replayed = Replay([judged_run], [], Pipeline((), {}, {}), Coverage([], 0, 0, 0))
        story = replay_report([replayed], self.now(), "worst")
        return diagnosis(story.runs[0])

    def replayed(self, run: str) -> JudgedRun:
        """Return the one run that fits a glob, judged anew, with its curves."""
        pattern = run_glob(run)
        if self.paths:
            names = [run]
            runs = replay(self.paths, self.config, lambda *_: None, curves=True, names=names).runs
        else:
            with Store(self.config.state_dir, read_only=True) as store:
                rows = [row for row in store.runs() if fits(pattern, row.path)]
            _only([row.path for row in rows], run)
            replayed = replay(locations_of([rows[0].path]), self.config, lambda *_: None, curves=True)
            runs = [
                judged_run
                for judged_run in replayed.runs
                if judged_run.run_pipeline.log.run.format == rows[0].format
            ]
        _only([judged_run.run_pipeline.log.name for judged_run in runs], run)
        return runs[0]

    def siblings(self, run: str) -> Mapping[str, Any]:
        """Return the one run that fits a glob beside the healthy runs of its program, JSON-able.

        All runs are judged anew, because any of them may be a sibling.
        """
        pattern = run_glob(run)
        locations = self.paths or locations_of(dict.fromkeys(self._recorded()))
        replayed = replay(locations, self.config, lambda *_: None)
        fitting = []
        for judged_run in replayed.runs:
            log = judged_run.run_pipeline.log
            if fits(pattern, log.name, str(log.run.path)):
                fitting.append(judged_run)
        _only([judged_run.run_pipeline.log.name for judged_run in fitting], run)
        subject = fitting[0]
        comparison = subject.among
        why = "" if RULE in replayed.pipeline.detectors else f"{RULE} is disabled"
        return {
            "run": subject.run_pipeline.log.name,
            "siblings": comparison.siblings if comparison else 0,
            "names": comparison.names[:MAX_ROWS] if comparison else [],
            "differ": comparison.differ if comparison else "",
            "left_band": [asdict(departed) for departed in comparison.deviations] if comparison else [],
            "not_judged": "" if comparison else why or SkipReason.NO_SIBLINGS.value,
        }

    def silence(self, run: str, duration: str, reason: str) -> Sequence[str]:
        """Silence runs that fit a glob for a while, a day at most. Return the ids of the silences."""
        try:
            seconds = seconds_in(duration)
        except ValueError as error:
            raise SentinelError(str(error)) from None
        if seconds > _MAX_SILENCE_SECONDS:
            raise SentinelError("an agent may silence runs for a day at most")
        now = self.now()
        with Store(self.config.state_dir, create=False) as store:
            silences = [
                silence(pattern, "*", now + seconds, f"an agent: {clean_text(reason)}", now)
                for pattern in self._patterns(store, run)
            ]
            for new_silence in silences:
                store.add_silence(new_silence)
        return [new_silence.id for new_silence in silences]

    def _patterns(self, store: Store, run: str) -> Sequence[str]:
        """Return the globs of a silence that covers nothing but what the agent was given.

        Below given paths these are the runs that are there now, each by its own path.
        """
        pattern = run_glob(run)
        if not self.paths:
            return [pattern]
        asked_locations = [
            row.path for row in store.runs() if fits(pattern, row.path) and is_given(row.path, self.paths)
        ]
        if not asked_locations:
            raise SentinelError(f"no run that is under watch and that you were given is called {run!r}")
        if len(asked_locations) > MAX_ROWS:
            raise SentinelError(f"{len(asked_locations)} runs are called {run!r}; silence {MAX_ROWS} at most")
        return [escape(path) for path in asked_locations]

    def acknowledge(self, incident: str) -> str:
        """Send only the end of an incident for a day, by the beginning of its id. Return the id of the
        silence.
        """
        with Store(self.config.state_dir, create=False) as store:
            stored = store.incident(incident)
            if not is_given(stored.run.partition(":")[2], self.paths):
                raise SentinelError(f"the incident {incident!r} is of a run that you were not given")
            acknowledged = acknowledgement(stored, self.now(), _MAX_SILENCE_SECONDS)
            store.add_silence(acknowledged)
        return acknowledged.id

    def _recorded(self) -> Sequence[str]:
        with Store(self.config.state_dir, read_only=True) as store:
            return [row.path for row in store.runs()]

    def _status(self, run: str) -> recorded.Status:
        state_dir = self.config.state_dir
        pattern = run_glob(run)
        with Store(state_dir, read_only=True) as store:
            return recorded.status(store, state_dir, self.now(), lambda path: fits(pattern, path))

    def _judged(self, run: str) -> Sequence[replays.ReplayedRunBody]:
        """Return the runs below the paths that fit a glob, the worst first. A state may be a minute old."""
        replayed = self._kept.replay()
        with self._lock:
            bodies_of, made_at, bodies = self._bodies.get("", (None, 0.0, []))
            if bodies_of is not replayed or not 0 <= self.now() - made_at < _MAX_AGE_SECONDS:
                bodies = replays.document(ordered(replayed, "worst"), self.now())["runs"]
                self._bodies[""] = replayed, self.now(), bodies
        pattern = run_glob(run)
        fitting = [body for body in bodies if fits(pattern, body["run"], body["path"])]
        if bodies and not fitting:
            raise SentinelError(f"no run is called {run}; there is {bodies[0]['run']}")
        if not bodies:
            raise SentinelError(nothing_read(self.paths, replayed.unread))
        return fitting


def _limited(limit: int) -> int:
    return min(max(limit, 1), MAX_ROWS)


def _roots(incidents: Sequence[IncidentBody]) -> int:
    """Return how many of the incidents no other one explains."""
    return sum(incident["inhibited_by"] is None for incident in incidents)


def _agent_run(run: RunBody, incidents: int) -> AgentRunBody:
    """Return a run without what only a report says of it."""
    common = {name: value for name, value in run.items() if name in RunBody.__annotations__}
    return cast("AgentRunBody", common | {"incidents": incidents})


def _located(incident: IncidentBody, run: RunBody) -> LocatedIncidentBody:
    """Return an incident without what sinks would have got, with its run."""
    agent_fields = {name: value for name, value in incident.items() if name in IncidentBody.__annotations__}
    return cast("LocatedIncidentBody", agent_fields | {"run": run["run"], "path": run["path"]})


def _time(text: str, now: float) -> float:
    if not text:
        return 0.0
    try:
        return now - seconds_in(text)
    except ValueError:
        pass
    moment = _parsed_seconds(text)
    if moment is None:
        raise SentinelError(f"{text!r} is neither a duration (2h) nor an ISO 8601 time")
    return moment


def _parsed_seconds(text: str | None) -> float | None:
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _only(names: Sequence[str], run: str) -> None:
    """Raise SentinelError unless there is exactly one."""
    if not names:
        raise SentinelError(f"no run is called {run!r}; `list_runs` has them")
    if len(names) > 1:
        raise SentinelError(f"{len(names)} runs are called {run!r}; give more of the path of one")
