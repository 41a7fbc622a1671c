"""What the pages show: the table of all runs, and each run as its report. One thread reads the state."""

import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from sentinel.calibration.calibration import Calibration
from sentinel.common.text import clean_text, duration_text
from sentinel.incidents.incident import Incident
from sentinel.notifications.silences import Silence
from sentinel.pipeline import Pipeline
from sentinel.report.html import ROWS_AT_FIRST, cited, data_of, environment, render
from sentinel.report.model import RunReport, report_of_runs
from sentinel.report.status_lines import workings
from sentinel.sources.console.line_forms import LineForm
from sentinel.web.fleet import Fleet
from sentinel.web.run_session import RunSession, WatchRecords
from sentinel.web.state_cache import StateCache

_MAX_PAGE_POINTS = 12_000  # some 200 kB, which each open page fetches whenever the run grows
_MAX_AGE_SECONDS = 60.0  # after which a page is made again, because it says how long ago the run was written
_MAX_DECISIONS_SHOWN = 1000  # of a run, the newest


class WebPage(msgspec.Struct, frozen=True):
    """A page as it is sent. ``version`` grows with each change.

    Of the page of a run, other pages show its ``report`` and its curves, ``data`` (`data_of`).
    """

    version: int
    body: bytes
    zipped: bytes
    report: RunReport | None = None
    data: str = ""

    @classmethod
    def from_template(cls, version: int, template: str, **variables: object) -> "WebPage":
        """Return the page that a template makes of its variables."""
        page_html = environment(__package__).get_template(template).render(variables)
        body = page_html.encode("utf-8", "replace")
        return cls(version, body, gzip.compress(body, 1))


class StateView:
    """What the states say. Its methods belong to the thread that made it, but for `overview` and `page_key`.

    Those two may be called from other threads, because tables are never changed, only replaced.
    """

    def __init__(self, state_dirs: Sequence[Path], promise: Calibration | None) -> None:
        self._states = [StateCache(state_dir, promise) for state_dir in state_dirs]
        self.fleet = Fleet(self._states)

    def close(self) -> None:
        for fleet_state in self._states:
            fleet_state.store.close()

    def refresh(self, now: float, awake: float) -> None:
        """Read the states again. If one cannot be read, the table says why."""
        self.fleet.refresh(now, awake)

    def open(
        self, key: str, pipeline: Pipeline, forms: Sequence[LineForm] = ()
    ) -> Callable[[], RunSession] | None:
        """Return what opens a run, from any thread; None if no run has this key. Raises StateError.

        ``forms`` are forms of lines that a person named.
        """
        run = self.fleet.runs.get(key)
        if run is None:
            return None
        fleet_state = self.fleet.states[run.row.id].store.run_state(run.row.id)
        return partial(RunSession, pipeline, run.row, self.fleet.names[run.row.id], fleet_state, forms)

    def records(self, key: str) -> WatchRecords:
        """Return what the watch recorded of a run. Raises StateError."""
        run = self.fleet.runs[key]
        cache = self.fleet.states[run.row.id]
        return WatchRecords(
            run=run,
            incidents=cache.store.incidents(run=run.row.id),
            decisions=cache.store.decisions(_MAX_DECISIONS_SHOWN, run.row.id),
            silences=self._silences,
            bands=cache.bands(run.row.id),
            answers=self._answers,
            trouble=self.fleet.table.trouble,
        )

    def page_key(self, key: str, now: float) -> object:
        """Return what the page of a run depends on beside its log; None if no run has this key."""
        run = self.fleet.runs.get(key)
        if run is None:
            return None
        silences = [silence.id for silence in self._silences]
        minutes = now // _MAX_AGE_SECONDS  # because a page says how long ago something was
        trouble = self.fleet.table.trouble
        return run.row.updated, run.state, run.not_judged, trouble, silences, self._answers, minutes

    @property
    def _silences(self) -> Sequence[Silence]:
        return self.fleet.status.silences if self.fleet.status else ()

    @property
    def _answers(self) -> Mapping[str, str]:
        return self.fleet.status.answers if self.fleet.status else {}

    def incidents(self) -> Iterator[Incident]:
        """Yield all incidents, also those that are over; of each run from the state that shows it."""
        for fleet_state in self._states:
            for incident in fleet_state.store.incidents():
                if self.fleet.states.get(incident.run) is fleet_state:
                    yield incident

    def overview(self, now: float) -> WebPage:
        """Return the page of all runs."""
        status = self.fleet.status
        table = self.fleet.table
        return WebPage.from_template(
            table.version,
            "fleet.html",
            verdict=table.verdict,
            counted=table.counted,
            trouble=table.trouble,
            live=f"/events?since={table.version}",
            rows=[row.html for row in table.rows.values() if row.html],
            rows_at_first=ROWS_AT_FIRST,
            silences=[_SilenceRow.from_silence(silence, now) for silence in status.silences]
            if status
            else [],
            promise=status.realised.lines() if status and status.realised else [],
            workings=[f"{' ' * indent}{line}" for indent, line in workings(status)] if status else [],
        )


def page_of_run(
    session: RunSession, watch_records: WatchRecords, key: str, version: int, now: float
) -> WebPage:
    """Return the page of a run as its log and the state are now."""
    run = watch_records.run
    report = session.report(watch_records)
    silences = [
        silence
        for silence in watch_records.silences
        if silence.run == run.row.id or silence.covers(run.row.path, report.name)
    ]
    report_data = data_of(report, _MAX_PAGE_POINTS, times=True)
    page = WebPage.from_template(
        version,
        "one_run.html",
        run=report,
        key=key,
        verdict=_verdict(report),
        trouble=f"Not judged: {clean_text(run.not_judged, 500)}" if run.not_judged else watch_records.trouble,
        live=f"/runs/{key}/events?since={version}",
        data=report_data,
        entries=cited([report]),
        acknowledged={silence.incident: silence.id for silence in silences if silence.incident},
        silences=[_SilenceRow.from_silence(silence, now) for silence in silences if not silence.incident],
        answers=watch_records.answers,
    )
    return replace(page, report=report, data=report_data)


def report_of(pages: Mapping[str, WebPage], now: float) -> str:
    """Return the HTML report of the runs that a person chose, to keep or to send, the worst first."""
    runs = sorted((page.report for page in pages.values() if page.report), key=lambda run: -run.worst)
    return render(report_of_runs(runs, "Chosen on the live page, with what the watch recorded of them.", now))


class _SilenceRow(msgspec.Struct, frozen=True):
    id: str
    text: str

    @classmethod
    def from_silence(cls, silence: Silence, now: float) -> "_SilenceRow":
        what = f"incident {silence.incident}" if silence.incident else f"{silence.detector} in {silence.run}"
        return cls(
            silence.id, clean_text(f"{what}, for {duration_text(silence.until - now)}: {silence.reason}", 500)
        )


def _verdict(report: RunReport) -> str:
    for incident in report.incidents:
        if not incident.explained_by and incident.state != "resolved":
            return f"{incident.severity.label.capitalize()}: {incident.headline}"
    return f"No open incident; the run is {report.state}"
