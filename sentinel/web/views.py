"""What the pages show: the table of all runs, and each run as its report. One thread reads the state."""

import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sentinel.calibration.calibration import Calibration
from sentinel.common.text import clean_text, duration_text
from sentinel.detectors.run_checks import SiblingRange
from sentinel.incidents.incident import Incident
from sentinel.notifications.silences import Silence
from sentinel.pipeline import Pipeline
from sentinel.report.html import ROWS_AT_FIRST, cited, data_of, environment
from sentinel.report.model import RunReport
from sentinel.report.status import KnownRun
from sentinel.report.status_lines import workings
from sentinel.runs.state import RunState, RunStatus
from sentinel.storage.decisions import DecisionRow
from sentinel.web.fleet import Fleet
from sentinel.web.run_session import RunSession
from sentinel.web.state_cache import StateCache

_POINTS_OF_RUN = 12_000  # some 200 kB, which each open page fetches whenever the run grows
_STALE_SECONDS = 60.0  # after which a page is made again, because it says how long ago the run was written
_SETTING_CHARACTERS = 120  # of a value beside those of other runs
_MAX_DECISIONS = 1000  # of a run, the newest


@dataclass(frozen=True)
class ShownRun:
    """What other pages and reports show of a run. ``data`` are its curves (`data_of`)."""

    story: RunReport
    settings: Mapping[str, str]
    data: str


@dataclass(frozen=True)
class WebPage:
    """A page as it is sent. ``version`` grows with each change. ``run`` is that which it is about."""

    version: int
    body: bytes
    zipped: bytes
    run: ShownRun | None = None

    @classmethod
    def of(cls, version: int, template: str, about: ShownRun | None = None, **shown: object) -> "WebPage":
        """Return the page that a template makes of what it gets to show."""
        text = environment(__package__).get_template(template).render(shown)
        body = text.encode("utf-8", "replace")
        return cls(version, body, gzip.compress(body, 1), about)


@dataclass(frozen=True)
class RecordedRun:
    """What the watch recorded of a run, at one look at the state."""

    known: KnownRun
    name: str
    incidents: Sequence[Incident]
    decisions: Sequence[DecisionRow]
    silences: Sequence[Silence]  # of all runs
    bands: Mapping[str, SiblingRange]  # of its siblings, by tag
    answers: Mapping[str, str]  # what people said of incidents, by their ids, of all runs
    trouble: str  # why this may be old; empty if it is not


class StateView:
    """What the states say. Its methods belong to the thread that made it, but for `overview` and `seen`.

    Those two may be called from other threads, because tables are never changed, only replaced.
    """

    def __init__(self, places: Sequence[Path], promise: Calibration | None) -> None:
        self._states = [StateCache(place, promise) for place in places]
        self.fleet = Fleet(self._states)

    def close(self) -> None:
        """Close the stores."""
        for state in self._states:
            state.store.close()

    def refresh(self, now: float, awake: float) -> None:
        """Look at the states again. If one cannot be read, the table says why."""
        self.fleet.refresh(now, awake)

    def open(self, key: str, pipeline: Pipeline) -> Callable[[], RunSession] | None:
        """Return what opens a run, from any thread; None if there is no run of this key. Raises
        StateError.
        """
        known = self.fleet.runs.get(key)
        if known is None:
            return None
        row = known.row
        kept = self.fleet.states[row.id].store.run_state(row.id)
        return partial(RunSession, pipeline, row, self.fleet.names[row.id], kept)

    def recorded(self, key: str) -> RecordedRun:
        """Return what the watch recorded of a run. Raises StateError."""
        known = self.fleet.runs[key]
        run = known.row.id
        state = self.fleet.states[known.row.id]
        return RecordedRun(
            known,
            self.fleet.names[run],
            state.store.incidents(run=run),
            state.store.decisions(_MAX_DECISIONS, run),
            self._silences,
            state.bands(run),
            self._answers,
            self.fleet.table.trouble,
        )

    def seen(self, key: str, now: float) -> object:
        """Return what the page of a run depends on beside its log; None if there is no run of this key."""
        known = self.fleet.runs.get(key)
        if known is None:
            return None
        told = known.state, known.not_judged, self.fleet.table.trouble
        minutes = now // _STALE_SECONDS  # because a page says how long ago something was
        silences = [silence.id for silence in self._silences]
        return known.row.updated, told, silences, self._answers, minutes

    @property
    def _silences(self) -> Sequence[Silence]:
        return self.fleet.status.silences if self.fleet.status else ()

    @property
    def _answers(self) -> Mapping[str, str]:
        return self.fleet.status.answers if self.fleet.status else {}

    def incidents(self) -> Iterator[Incident]:
        """Yield the incidents of all runs, also those that are over; of each run from the state that shows
        it.
        """
        for state in self._states:
            for incident in state.store.incidents():
                if self.fleet.states.get(incident.run) is state:
                    yield incident

    def overview(self, now: float) -> WebPage:
        """Return the page of all runs."""
        shown = self.fleet.status
        table = self.fleet.table
        return WebPage.of(
            table.version,
            "fleet.html",
            verdict=table.verdict,
            counted=table.counted,
            trouble=table.trouble,
            live=f"/events?since={table.version}",
            rows=[row.html for row in table.rows.values() if row.html],
            rows_at_first=ROWS_AT_FIRST,
            silences=[_Silenced.of(silence, now) for silence in shown.silences] if shown else [],
            promise=shown.realised.lines() if shown and shown.realised else [],
            workings=[f"{' ' * indent}{line}" for indent, line in workings(shown)] if shown else [],
        )


def page_of_run(run: RunSession, recorded: RecordedRun, key: str, version: int, now: float) -> WebPage:
    """Return the page of a run as its log and the state are now."""
    known = recorded.known
    story = run.story(recorded.incidents, recorded.decisions, _standing(known), recorded.bands)
    about = [
        silence
        for silence in recorded.silences
        if silence.run == known.row.id or silence.covers(known.row.path, story.name)
    ]
    data = data_of(story, _POINTS_OF_RUN, times=True)
    settings = {name: clean_text(value, _SETTING_CHARACTERS) for name, value, _ in story.settings}
    return WebPage.of(
        version,
        "one_run.html",
        ShownRun(story, settings, data),
        run=story,
        key=key,
        verdict=_verdict(story),
        trouble=f"Not judged: {clean_text(known.not_judged, 500)}" if known.not_judged else recorded.trouble,
        live=f"/runs/{key}/events?since={version}",
        data=data,
        entries=cited([story]),
        acknowledged={silence.incident: silence.id for silence in about if silence.incident},
        silences=[_Silenced.of(silence, now) for silence in about if not silence.incident],
        answers=recorded.answers,
    )


@dataclass(frozen=True)
class _Silenced:
    id: str
    text: str

    @classmethod
    def of(cls, silence: Silence, now: float) -> "_Silenced":
        what = f"incident {silence.incident}" if silence.incident else f"{silence.detector} in {silence.run}"
        return cls(
            silence.id, clean_text(f"{what}, for {duration_text(silence.until - now)}: {silence.reason}", 500)
        )


def _standing(known: KnownRun) -> RunStatus:
    states = {state.value: state for state in RunState}
    return RunStatus(states.get(known.state, RunState.LOST), known.evidence)


def _verdict(story: RunReport) -> str:
    own = [
        incident for incident in story.incidents if not incident.explained_by and incident.state != "resolved"
    ]
    if not own:
        return f"No open incident; the run is {story.state}"
    return f"{own[0].severity.label.capitalize()}: {own[0].headline}"
