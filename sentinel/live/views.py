"""What all pages show. One thread looks at the state and at the logs, however many pages are open."""

import gzip
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sentinel.alerts.silences import Silence
from sentinel.alerts.store import Store
from sentinel.config.file import Config
from sentinel.errors import StateError
from sentinel.live.fleet import Fleet
from sentinel.live.opened import OpenedRun
from sentinel.pipeline import Pipeline
from sentinel.report.html import cited, data_of, environment
from sentinel.report.status import KnownRun
from sentinel.report.status_lines import workings
from sentinel.report.story import RunStory
from sentinel.runs.state import RunState, Standing
from sentinel.text import clean_text, duration_text

_log = logging.getLogger(__name__)

_POINTS_OF_RUN = 12_000  # some 200 kB, which each open page fetches whenever the run grows
_UNSEEN_SECONDS = 60.0  # after which a run that no page shows is closed
_STALE_SECONDS = 60.0  # after which a page is made again, because it says how long ago the run was written
_MOST_OPEN = 64  # runs; the one that was not asked for longest is closed


@dataclass(frozen=True)
class Page:
    """A page as it is sent. ``version`` grows with each change."""

    version: int
    body: bytes
    zipped: bytes

    @classmethod
    def of(cls, version: int, text: str) -> "Page":
        """The page with this text."""
        body = text.encode("utf-8", "replace")
        return cls(version, body, gzip.compress(body, 1))


class Views:
    """The fleet and the runs that somebody looks at. All methods belong to the thread that made it.

    Tables and pages are never changed, only replaced, so other threads may read them.
    """

    def __init__(self, config: Config) -> None:
        self.pages: dict[str, Page] = {}  # of the open runs, by key
        self._pipeline = Pipeline(config.enabled_detectors, config.parameters, config.signals, _failed)
        self._store = Store(config.state_dir, read_only=True)
        self.fleet = Fleet(self._store, config.state_dir)
        self._open: dict[str, OpenedRun] = {}
        self._drawn: dict[str, object] = {}  # what the page of each open run was made of

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def refresh(self, now: float, awake: float, watched: Iterable[str]) -> bool:
        """Look at everything again. Whether there is more to read at once.

        ``watched`` are the keys of the runs that pages show.
        """
        try:
            self.fleet.refresh(now, awake)
            silences = self._store.silences(now)
        except StateError as error:
            self.fleet.fail(str(error))
            return False
        for key in watched:
            if key in self._open:
                self._open[key].asked_at = awake
        for key, run in [*self._open.items()]:
            if awake - run.asked_at > _UNSEEN_SECONDS:
                self._close(key)
            elif run.grow() or self._drawn[key] != self._inputs(key, silences, now):
                self._draw(key, run, silences, now)
        return any(run.reads_more for run in self._open.values())

    def open(self, key: str, now: float, awake: float) -> None:
        """Show a run from now on, if there is one of this key."""
        known = self.fleet.runs.get(key)
        if known is None:
            return
        if key not in self._open:
            if len(self._open) >= _MOST_OPEN:
                self._close(min(self._open, key=lambda one: self._open[one].asked_at))
            name = self.fleet.names[known.row.id]
            run = OpenedRun(self._pipeline, known.row, name, self._store.run_state(known.row.id))
            run.grow()
            self._open[key] = run
            self._draw(key, run, self._store.silences(now), now)
        if key in self._open:
            self._open[key].asked_at = awake

    def _close(self, key: str) -> None:
        for of_runs in (self._open, self.pages, self._drawn):
            of_runs.pop(key, None)

    def _inputs(self, key: str, silences: Sequence[Silence], now: float) -> object:
        """What the page of a run depends on, beside its log. It says how long ago something was, too."""
        known = self.fleet.runs[key]
        told = known.state, known.not_judged, self.fleet.table.trouble
        return known.row.updated, told, [one.id for one in silences], now // _STALE_SECONDS

    def _draw(self, key: str, run: OpenedRun, silences: Sequence[Silence], now: float) -> None:
        """Make the page of a run; one that cannot be made is closed, and the others go on."""
        try:
            self._render(key, run, silences, now)
            self._drawn[key] = self._inputs(key, silences, now)
        except StateError:
            raise
        except Exception:  # noqa: BLE001  whatever a log holds must not cost the pages of other runs
            _log.exception("the page of %s cannot be made", self.fleet.names[self.fleet.runs[key].row.id])
            self._close(key)

    def overview(self, now: float) -> Page:
        """The page of all runs."""
        shown = self.fleet.status
        table = self.fleet.table
        text = (
            environment(__package__)
            .get_template("fleet.html")
            .render(
                verdict=table.verdict,
                counted=table.counted,
                trouble=table.trouble,
                live=f"/events?since={table.version}",
                rows=[row.html for row in table.rows.values()],
                silences=[_Silenced.of(one, now) for one in shown.silences] if shown else [],
                workings=[f"{' ' * indent}{line}" for indent, line in workings(shown)] if shown else [],
            )
        )
        return Page.of(table.version, text)

    def _render(self, key: str, run: OpenedRun, silences: Sequence[Silence], now: float) -> None:
        known = self.fleet.runs[key]
        found = self._store.incidents(run=known.row.id)
        story = run.story(found, self._store.decisions(1000, known.row.id), _standing(known))
        about = [one for one in silences if one.run == known.row.id or one.covers(known.row.path, story.name)]
        before = self.pages[key].version if key in self.pages else 0
        text = (
            environment(__package__)
            .get_template("one_run.html")
            .render(
                run=story,
                key=key,
                verdict=_verdict(story),
                trouble=f"Not judged: {clean_text(known.not_judged, 500)}"
                if known.not_judged
                else self.fleet.table.trouble,
                live=f"/runs/{key}/events?since={before + 1}",
                data=data_of(story, _POINTS_OF_RUN),
                entries=cited([story]),
                acknowledged={one.incident: one.id for one in about if one.incident},
                silences=[_Silenced.of(one, now) for one in about if not one.incident],
            )
        )
        self.pages[key] = Page.of(before + 1, text)


@dataclass(frozen=True)
class _Silenced:
    id: str
    text: str

    @classmethod
    def of(cls, one: Silence, now: float) -> "_Silenced":
        what = f"incident {one.incident}" if one.incident else f"{one.detector} in {one.run}"
        return cls(one.id, clean_text(f"{what}, for {duration_text(one.until - now)}: {one.reason}", 500))


def _standing(known: KnownRun) -> Standing:
    states = {state.value: state for state in RunState}
    return Standing(states.get(known.state, RunState.LOST), known.evidence)


def _verdict(story: RunStory) -> str:
    own = [one for one in story.incidents if not one.explained_by and one.state != "resolved"]
    if not own:
        return f"No open incident; the run is {story.state}"
    return f"{own[0].severity.label.capitalize()}: {own[0].headline}"


def _failed(detector: str, run: str, error: BaseException) -> None:
    """Never called: the page judges nothing."""
