"""Notices runs whose logs were removed, and says when nothing more is expected of them.

The runs are those under watch and those that the store knows of from an earlier watch. A log may come back
with its file system, so a run is forgotten only after some time.
"""

import logging
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from sentinel.common.fault_isolation import Guard
from sentinel.common.text import clean_text, duration_text
from sentinel.incidents.incident import Change, Event, State
from sentinel.notifications.decide import SinkPolicy
from sentinel.run_pipeline import RunPipeline
from sentinel.runs.state import is_gone
from sentinel.sources.base import Cursor, PollResult, Run
from sentinel.sources.location import Url
from sentinel.sources.registry import format_named
from sentinel.storage.store import Store
from sentinel.watch.recorder import Recorder

_CHECK_SECONDS = 60.0  # between two checks of all runs, and so between two log lines about what is gone
_MAX_REMOVED_NAMES = 3  # of removed runs in a log line

_log = logging.getLogger(__name__)


class _EmptySource(msgspec.Struct, frozen=True):
    """The source of a log that is gone."""

    def poll(self, cursor: Cursor, limit: int) -> PollResult:  # noqa: ARG002
        return PollResult(cursor)


class RemovedRuns:
    """Remembers since when logs are gone. All times are times awake.

    A run is forgotten after ``grace_seconds``; never where these are None.
    """

    def __init__(self, store: Store, grace_seconds: float | None) -> None:
        self._store = store
        self._grace_seconds = grace_seconds
        self._since: dict[str, float] = {}  # by run id
        self._checked_at = float("-inf")

    def due(self, watched: Iterable[Run], awake: float) -> Sequence[Run]:
        """Return the runs to forget, now and then; a later call returns them again."""
        grace = self._grace_seconds
        if grace is None or awake - self._checked_at < min(_CHECK_SECONDS, grace):
            return ()
        self._checked_at = awake
        rows = (row for row in self._store.runs() if Url.parse(row.path) is None)
        recorded = (Run(Path(row.path), row.format, _EmptySource()) for row in rows)
        runs = {run.id: run for run in (*recorded, *watched) if isinstance(run.path, Path)}
        deleted = _deleted(runs.values())
        removed = {run_id: run for run_id, run in runs.items() if run_id in deleted or is_gone(run.path)}
        newly_removed = [run for run_id, run in removed.items() if run_id not in self._since]
        self._since = {run_id: self._since.get(run_id, awake) for run_id in removed}
        if newly_removed:
            _log.warning("%s", _warning(newly_removed, grace))
        return [run for run_id, run in removed.items() if awake - self._since[run_id] >= grace]


def forget(
    run_pipelines: Sequence[RunPipeline], store: Store, policies: Sequence[SinkPolicy], now: float
) -> None:
    """End the open incidents of runs as lost, notify the sinks of that, and forget the runs."""
    guard = Guard()
    news: dict[str, Sequence[Change]] = {}
    for run_pipeline in run_pipelines:
        end = partial(_end_incidents, run_pipeline)
        news[run_pipeline.id] = guard(run_pipeline.log.run, "letting go", end) or ()
    Recorder(store, policies).record(run_pipelines, news, now)
    store.forget(news)
    _log.info("let go of %s, whose logs are gone", "1 run" if len(news) == 1 else f"{len(news)} runs")


def _end_incidents(run_pipeline: RunPipeline) -> list[Change]:
    """End the open incidents of a run as lost."""
    lost = [
        Change(Event.LOST, incident.replace(state=State.LOST, gone=True))
        for incident in run_pipeline.incidents.open()
    ]
    run_pipeline.incidents.restore([(), None, "", ((), ())])
    return lost


def _deleted(runs: Iterable[Run]) -> set[str]:
    """Return the ids of the runs that a person deleted although their files are still there."""
    by_format: dict[str, dict[Path, str]] = {}
    for run in runs:
        if isinstance(run.path, Path):
            by_format.setdefault(run.format, {})[run.path] = run.id
    return {ids[path] for name, ids in by_format.items() for path in format_named(name).deleted([*ids])}


def _warning(runs: Collection[Run], seconds: float) -> str:
    names = [clean_text(str(run.path)) for run in runs][:_MAX_REMOVED_NAMES]
    others = f" and of {len(runs) - len(names)} more runs" if len(runs) > len(names) else ""
    until = f"their incidents end in {duration_text(seconds)} unless they come back"
    return f"the logs of {', '.join(names)}{others} are gone; {until}"
