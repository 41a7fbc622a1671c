"""A run that somebody looks at: its curves come from its log, and its incidents from the watch."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

from sentinel.common.fault_isolation import Guard
from sentinel.common.text import clean_text
from sentinel.detectors.run_checks import SiblingRange
from sentinel.incidents.incident import Incident
from sentinel.notifications.decide import Decision
from sentinel.notifications.routing import SinkDecision
from sentinel.pipeline import MAX_POINTS, Pipeline
from sentinel.replays.judged import JudgedRun
from sentinel.report.model import RunReport, run_story
from sentinel.report.recorded import place_of, recorded_run
from sentinel.report.samples import Samples
from sentinel.runs.state import RunStatus
from sentinel.series.curves import Curves
from sentinel.sources.base import ReadIssue, Run
from sentinel.sources.discovery import discover
from sentinel.sources.location import Url
from sentinel.storage.decisions import DecisionRow
from sentinel.storage.store import RunRow

_MAX_COMPLAINTS = 20

_R = TypeVar("_R")


class RunSession:
    """Reads the log of a run as it grows, and judges nothing: what was found is what the watch recorded.

    If the log is not on this machine, the run shows what the watch kept of it (``state``). Only one thread at
    a time may use an opened run.
    """

    def __init__(self, pipeline: Pipeline, row: RunRow, name: str, state: bytes | None) -> None:
        self._pipeline = pipeline
        run = _found(row)
        self._tracker = pipeline.track(run or recorded_run(row), name)
        self._curves = Curves()
        self._failure = ""
        self._more = False
        self._read_issues: list[ReadIssue] = []
        self._illustrations = Samples()
        if run is None:
            self._failure = "its log is not on this machine, so its curves are not drawn"
            self._guarded("restoring", partial(self._tracker.restore, state or b""))

    @property
    def reads_more(self) -> bool:
        """Whether the last `grow` did not reach the end of the log."""
        return self._more

    def grow(self) -> bool:
        """Read what is new, up to some hundred thousand points. Whether there was anything."""
        log = self._tracker.log
        self._more = False
        batch = None if self._failure else self._guarded("reading", partial(log.poll, MAX_POINTS))
        if batch is None:
            return False
        self._guarded("understanding the log", partial(log.ingest, batch))
        self._curves.add(batch.chunks)
        self._read_issues = [*self._read_issues, *batch.read_issues][-_MAX_COMPLAINTS:]
        self._more = batch.more
        return bool(batch.chunks or batch.read_issues or batch.config)

    def story(
        self,
        incidents: Iterable[Incident],
        decisions: Iterable[DecisionRow],
        stands: RunStatus,
        bands: Mapping[str, SiblingRange],
    ) -> RunReport:
        """Return the run as its report tells it, with what the watch recorded, and the bands of its
        siblings.
        """
        by_id = {
            incident.id: incident
            for incident in sorted(incidents, key=lambda incident: incident.fired_time or 0.0)
        }
        run = JudgedRun(
            self._tracker,
            incidents=by_id,
            notifications=_told(by_id, decisions),
            read_issues=self._read_issues,
            failure=self._failure or None,
            curves=self._curves,
        )
        told = run_story(run, stands, self._tracker.id, self._illustrations)
        siblings = {clean_text(tag): band for tag, band in bands.items()}
        # Nothing was judged here, so nothing is known of what was held back.
        return dataclasses.replace(told, skipped=(), siblings=siblings)

    def _guarded(self, stage: str, work: Callable[[], _R]) -> _R | None:
        guard = Guard()
        run = self._tracker.log.run
        done = guard(run, stage, work)
        self._failure = guard.failures.get(run.id, self._failure)
        return done


def _found(row: RunRow) -> Run | None:
    """Return the run as it lies on this machine; a run in a database lies where the database does."""
    place = place_of(row)
    if isinstance(place, Url):
        return None
    there = next((folder for folder in (place, place.parent) if folder.exists()), None)
    return next((run for run in discover([there]).runs if run.id == row.id), None) if there else None


def _told(
    incidents: Mapping[str, Incident], decisions: Iterable[DecisionRow]
) -> dict[str, list[SinkDecision]]:
    """Return what the watch decided about each incident, the oldest decision first."""
    told: dict[str, list[SinkDecision]] = {}
    for row in reversed([*decisions]):
        if row.incident in incidents:
            decision = Decision(row.event, row.reason)
            told.setdefault(row.incident, []).append(
                SinkDecision(incidents[row.incident], row.sink, decision)
            )
    return told
