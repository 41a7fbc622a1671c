"""The runs that agents may ask about: those below some paths, else those that a watch has recorded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from glob import escape
from typing import Any

from sentinel.common.errors import SentinelError
from sentinel.common.run_glob import fits, run_glob
from sentinel.common.text import clean_text, seconds_in
from sentinel.config.file import Config
from sentinel.detectors.runtime.worse_than_siblings import RULE
from sentinel.detectors.skip_reason import SkipReason
from sentinel.mcp_server.reach import is_given
from sentinel.notifications.silences import acknowledgement, silence
from sentinel.replays.judged import JudgedRun
from sentinel.replays.replaying import replay
from sentinel.report import json as replays
from sentinel.report import status as recorded
from sentinel.report.selection import ordered
from sentinel.sources.discovery import places
from sentinel.sources.location import Location
from sentinel.storage.store import Store

MAX_ROWS = 50
"""The most runs or incidents of an answer."""

_MAX_SILENCE_SECONDS = 86400.0  # a text in a log may have led the agent to it
_RUN_FIELDS = (
    "run",
    "path",
    "source",
    "framework",
    "state",
    "state_evidence",
    "stopped",
    "last_step",
    "points",
)

JsonRows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Answers:
    """Runs below ``paths`` are judged whenever one asks; without paths the state directory is read.

    ``now`` gives the time of day in seconds since the epoch. Every method raises SentinelError for what does
    not exist or cannot be read.
    """

    config: Config
    paths: Sequence[Location]
    now: Callable[[], float]

    def runs(self, run: str) -> JsonRows:
        """Return the runs that fit a glob, the worst first, JSON-able."""
        if not self.paths:
            rows: JsonRows = self._status(run)["runs"]
            return rows
        return [
            {name: value for name, value in body.items() if name in _RUN_FIELDS}
            | {
                "signals": [*body["signals"]],
                "judged_by": f"{body['judged_by']} of {body['detectors']} detectors",
                "incidents": len(body["incidents"]),
            }
            for body in self._judged(run)
        ]

    def incidents(self, run: str) -> JsonRows:
        """Return the incidents of runs that fit a glob, JSON-able.

        They are all incidents of a replay, and the open ones of a watch.
        """
        if not self.paths:
            rows: JsonRows = self._status(run)["incidents"]
            return rows
        return [
            {"run": body["run"], **incident} for body in self._judged(run) for incident in body["incidents"]
        ]

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
            replayed = replay(places([rows[0].path]), self.config, lambda *_: None, curves=True)
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
        locations = self.paths or places(dict.fromkeys(self._recorded()))
        replayed = replay(locations, self.config, lambda *_: None)
        fitting = []
        for one in replayed.runs:
            log = one.run_pipeline.log
            if fits(pattern, log.name, str(log.run.path)):
                fitting.append(one)
        _only([one.run_pipeline.log.name for one in fitting], run)
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
            new = [
                silence(pattern, "*", now + seconds, f"an agent: {clean_text(reason)}", now)
                for pattern in self._patterns(store, run)
            ]
            for one in new:
                store.add_silence(one)
        return [one.id for one in new]

    def _patterns(self, store: Store, run: str) -> Sequence[str]:
        """Return the globs of a silence that covers nothing but what the agent was given.

        Below given paths these are the runs that are there now, each by its own path.
        """
        pattern = run_glob(run)
        if not self.paths:
            return [pattern]
        given = [
            row.path for row in store.runs() if fits(pattern, row.path) and is_given(row.path, self.paths)
        ]
        if not given:
            raise SentinelError(f"no run that is under watch and that you were given is called {run!r}")
        if len(given) > MAX_ROWS:
            raise SentinelError(f"{len(given)} runs are called {run!r}; silence {MAX_ROWS} at most")
        return [escape(path) for path in given]

    def acknowledge(self, incident: str) -> str:
        """Send only the end of an incident for a day, by the beginning of its id. Return the id of the
        silence.
        """
        with Store(self.config.state_dir, create=False) as store:
            stored = store.incident(incident)
            if not is_given(stored.run.partition(":")[2], self.paths):
                raise SentinelError(f"the incident {incident!r} is of a run that you were not given")
            new = acknowledgement(stored, self.now(), _MAX_SILENCE_SECONDS)
            store.add_silence(new)
        return new.id

    def _recorded(self) -> Sequence[str]:
        with Store(self.config.state_dir, read_only=True) as store:
            return [row.path for row in store.runs()]

    def _status(self, run: str) -> dict[str, Any]:
        place = self.config.state_dir
        pattern = run_glob(run)
        with Store(place, read_only=True) as store:
            content = recorded.status(
                store, place, self.now(), lambda path: fits(pattern, path), promise=self.config.calibration
            )
            return recorded.document(content)

    def _judged(self, run: str) -> Sequence[replays.ReplayedRunBody]:
        replayed = replay(self.paths, self.config, lambda *_: None, names=[run])
        return replays.document(ordered(replayed, "worst"), self.now())["runs"]


def _only(names: Sequence[str], run: str) -> None:
    """Raise SentinelError unless there is exactly one."""
    if not names:
        raise SentinelError(f"no run is called {run!r}; `list_runs` has them")
    if len(names) > 1:
        raise SentinelError(f"{len(names)} runs are called {run!r}; give more of the path of one")
