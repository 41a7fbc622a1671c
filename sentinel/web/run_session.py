"""A run that somebody looks at: its curves come from its log, and its incidents from the watch."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from sentinel.common.fault_isolation import Guard
from sentinel.common.paths import exists
from sentinel.common.text import clean_text
from sentinel.detectors.run_checks import SiblingRange
from sentinel.incidents.incident import Incident
from sentinel.notifications.decide import Decision
from sentinel.notifications.routing import SinkDecision
from sentinel.notifications.silences import Silence
from sentinel.pipeline import MAX_POINTS, Pipeline
from sentinel.replays.judged import JudgedRun
from sentinel.report.model import RunReport, run_report
from sentinel.report.recorded import location_of, recorded_run
from sentinel.report.samples import Samples
from sentinel.report.status import KnownRun
from sentinel.series.curves import Curves
from sentinel.sources.base import ReadIssue, Run
from sentinel.sources.console.line_forms import LineForm
from sentinel.sources.discovery import discover
from sentinel.sources.location import Url
from sentinel.storage.decisions import DecisionRow
from sentinel.storage.store import RunRow

_MAX_READ_ISSUES = 20  # the newest

_R = TypeVar("_R")


class WatchRecords(msgspec.Struct, frozen=True):
    """What the watch recorded of a run, read from its state at one moment."""

    run: KnownRun
    incidents: Sequence[Incident]
    decisions: Sequence[DecisionRow]
    silences: Sequence[Silence]  # of all runs
    bands: Mapping[str, SiblingRange]  # of its siblings, by tag
    answers: Mapping[str, str]  # what people said of incidents, by their ids, of all runs
    trouble: str  # why this may be old; empty if it is not


class RunSession:
    """An open run: reads its log as it grows, and judges nothing, because the watch recorded what it found.

    If the log is not on this machine, the run shows what the watch stored of it (``state``). ``forms`` are
    forms of lines that a person named. Only one thread at a time may use a session.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        row: RunRow,
        name: str,
        run_state: bytes | None,
        forms: Sequence[LineForm] = (),
    ) -> None:
        self._pipeline = pipeline
        run = _local_run(row, forms)
        self._run_pipeline = pipeline.track(run or recorded_run(row), name)
        self._curves = Curves()
        self._failure = ""
        self._more = False
        self._read_issues: list[ReadIssue] = []
        self._samples = Samples()
        if run is None:
            self._failure = "its log is not on this machine, so its curves are not drawn"
            self._guarded("restoring", partial(self._run_pipeline.restore, run_state or b""))

    @property
    def reads_more(self) -> bool:
        """Whether the last `grow` did not reach the end of the log."""
        return self._more

    def grow(self) -> bool:
        """Read what is new, up to some hundred thousand points. Return whether there was anything."""
        log = self._run_pipeline.log
        self._more = False
        batch = None if self._failure else self._guarded("reading", partial(log.poll, MAX_POINTS))
        if batch is None:
            return False
        self._guarded("understanding the log", partial(log.ingest, batch))
        self._curves.add(batch.chunks)
        self._read_issues = [*self._read_issues, *batch.read_issues][-_MAX_READ_ISSUES:]
        self._more = batch.more
        return bool(batch.chunks or batch.read_issues or batch.config)

    def report(self, watch_records: WatchRecords) -> RunReport:
        """Return the report of the run: its log as far as it was read, and what the watch recorded."""
        incidents = sorted(watch_records.incidents, key=lambda incident: incident.fired_time or 0.0)
        by_id = {incident.id: incident for incident in incidents}
        run = JudgedRun(
            self._run_pipeline,
            incidents=by_id,
            notifications=_notifications(by_id, watch_records.decisions),
            read_issues=self._read_issues,
            failure=self._failure or None,
            curves=self._curves,
        )
        report = run_report(run, watch_records.run.status, self._run_pipeline.id, self._samples)
        siblings = {clean_text(tag): band for tag, band in watch_records.bands.items()}
        # Nothing was judged here, so it is not known which rows were skipped.
        return replace(report, skipped=(), siblings=siblings)

    def _guarded(self, stage: str, work: Callable[[], _R]) -> _R | None:
        guard = Guard()
        run = self._run_pipeline.log.run
        session_result = guard(run, stage, work)
        self._failure = guard.failures.get(run.id, self._failure)
        return session_result


def _local_run(row: RunRow, forms: Sequence[LineForm]) -> Run | None:
    """Return the run as it lies on this machine; a run in a database lies where the database does."""
    location = location_of(row)
    if isinstance(location, Url):
        return None
    for folder in (location, location.parent):
        if exists(folder):
            return next((run for run in discover([folder], forms=forms).runs if run.id == row.id), None)
    return None


def _notifications(
    incidents: Mapping[str, Incident], decisions: Iterable[DecisionRow]
) -> dict[str, list[SinkDecision]]:
    """Return what the watch decided about each incident, the oldest decision first."""
    notifications: dict[str, list[SinkDecision]] = {}
    for row in reversed([*decisions]):
        if row.incident in incidents:
            decision = Decision(row.event, row.reason)
            sink_decision = SinkDecision(incidents[row.incident], row.sink, decision)
            notifications.setdefault(row.incident, []).append(sink_decision)
    return notifications
