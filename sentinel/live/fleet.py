"""All runs of a state directory as rows of a table, each with the version at which it last changed.

One fleet serves every page. A page that knows a version asks for the rows that changed since then, so a slow
page gets fewer and larger updates, and none has to be remembered for it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentinel.alerts.incident import Incident
from sentinel.alerts.store import Store
from sentinel.alerts.tables import RunRow
from sentinel.detectors.severity import Severity
from sentinel.frames.outlines import OBJECTIVES, outlines
from sentinel.ground.text import clean_text, sentence
from sentinel.report.html import environment, spark
from sentinel.report.status import KnownRun, Status, status
from sentinel.report.status_lines import names_of, summary
from sentinel.runs.log import Remembered
from sentinel.runs.packing import unpacked

_AGAIN_SECONDS = 10.0  # because time alone changes the state of a run


@dataclass(frozen=True)
class FleetRow:
    """A log in the table, with the names that `sentinel.report.story.RunStory` has for the same."""

    name: str
    worst: Severity
    found: Sequence[str]  # detectors with an open incident
    state: str
    last_step: int | None
    planned_steps: int | None
    points: int
    lead: tuple[str, Sequence[float]]  # the tag that says most about the run and its values; may be empty


@dataclass(frozen=True)
class _Rendered:
    version: int  # at which it last changed
    html: str


@dataclass(frozen=True)
class FleetTable:
    """The rows by the key of the log that stands for a training, the worst first, and what stands above them.

    A row that is gone stays as an empty one, for the pages that still show it.
    """

    version: int = 0
    verdict: str = ""
    counted: str = ""  # the runs, by state
    trouble: str = ""  # why what stands here may be old; empty if it is not
    rows: Mapping[str, _Rendered] = field(default_factory=dict)

    def since(self, version: int) -> dict[str, Any]:
        """What a page that knows a version has to change, JSON-able. A row that is gone is empty."""
        rows = {key: row.html for key, row in self.rows.items() if row.version > version}
        head = {"verdict": self.verdict, "counted": self.counted, "trouble": self.trouble}
        return {**head, "rows": rows}

    def renewed(self, verdict: str, counted: str, trouble: str, rows: Mapping[str, str]) -> "FleetTable":
        """The table with this content: the same one if nothing differs."""
        same = {key: row for key, row in self.rows.items() if row.html == rows.get(key)}
        version = self.version + 1
        rows = {**rows, **{key: "" for key in self.rows if key not in rows}}
        rows_now = {key: same.get(key) or _Rendered(version, html) for key, html in rows.items()}
        new = FleetTable(version, verdict, counted, trouble, rows_now)
        return self if replace(new, version=self.version) == self else new


class Fleet:
    """The runs as the watch last recorded them. Reads one store and belongs to the thread that opened it."""

    def __init__(self, store: Store, place: Path) -> None:
        self.table = FleetTable()
        self.runs: dict[str, KnownRun] = {}  # by key, the worst first
        self.names: Mapping[str, str] = {}  # by run id
        self.status: Status | None = None
        self._store = store
        self._place = place
        self._memory = _StoredRuns(store)
        self._seen = -1
        self._looked_at = float("-inf")

    def refresh(self, now: float, awake: float) -> None:
        """Look again if the watch recorded something or some time has passed. Raises StateError."""
        seen = self._store.version()
        if seen == self._seen and awake - self._looked_at < _AGAIN_SECONDS:
            return
        self._seen, self._looked_at = seen, awake
        shown = self.status = status(self._store, self._place, now, remember=self._memory.run)
        self.names = names_of(shown.runs)
        self.runs = {key_of(run.row.id): run for run in shown.runs}
        self.table = self.table.renewed(
            _verdict(shown), summary(shown.runs), sentence(shown.trouble), dict(self._rendered(shown))
        )

    def fail(self, why: str) -> None:
        """Keep what was there, and say why it may be old."""
        rows = {key: row.html for key, row in self.table.rows.items()}
        self.table = self.table.renewed(self.table.verdict, self.table.counted, why, rows)

    def _rendered(self, shown: Status) -> Iterator[tuple[str, str]]:
        rows: Any = environment(__package__).get_template("runs.html").module
        by_run: dict[str, list[Incident]] = {}
        for incident in shown.incidents:
            if incident.inhibited_by is None:
                by_run.setdefault(incident.run, []).append(incident)
        for _, members in groupby(self.runs.items(), key=lambda item: item[1].training):
            keys, runs = zip(*members, strict=True)
            logs = [self._of(run, by_run.get(run.row.id, ())) for run in runs]
            hrefs = [f"/runs/{key}" for key in keys]
            yield keys[0], str(rows.row(logs, hrefs, spark(logs[0].lead[1]), id=f"row-{keys[0]}")).strip()

    def _of(self, run: KnownRun, incidents: Sequence[Incident]) -> FleetRow:
        facts = run.kept.facts if run.kept else None
        planned = run.kept.planned_steps if run.kept else None
        return FleetRow(
            name=self.names[run.row.id],
            worst=max((incident.severity for incident in incidents), default=Severity.CLEAN),
            found=[*dict.fromkeys(incident.detector for incident in incidents)],
            state=f"{run.state}, not judged" if run.not_judged else str(run.state),
            last_step=run.last_step,
            planned_steps=int(planned) if planned else None,
            points=facts.points if facts else 0,
            lead=self._memory.lead(run.row, [incident.tag for incident in incidents]),
        )


def key_of(run: str) -> str:
    """What stands for a run in addresses, whatever its path holds."""
    return blake2b(run.encode(), digest_size=8).hexdigest()


def _verdict(shown: Status) -> str:
    own = _severities(shown)
    if not own:
        return "No open incident"
    counted = ", ".join(f"{own[severity]} {severity.label}" for severity in sorted(own, reverse=True))
    return f"{own.total():,} open incident{'' if own.total() == 1 else 's'}: {counted}"


def _severities(shown: Status) -> Counter[Severity]:
    """How many open incidents there are of each severity; what the logs of one training share counts once."""
    training = {run.row.id: run.training for run in shown.runs}
    counts_of: dict[str, Counter[tuple[Severity, str, str]]] = {}
    for incident in shown.incidents:
        if incident.inhibited_by is None:
            counts_of.setdefault(incident.run, Counter())[
                incident.severity, incident.detector, incident.signal
            ] += 1
    shared: dict[str, Counter[tuple[Severity, str, str]]] = {}
    for run, counts in counts_of.items():
        shared[training[run]] = shared.get(training[run], Counter()) | counts
    whole = Counter[Severity]()
    for counts in shared.values():
        for (severity, *_), count in counts.items():
            whole[severity] += count
    return whole


class _StoredRuns:
    """What is stored of each run, decoded once for each commit."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[float, Remembered | None, _Outlines]] = {}

    def run(self, row: RunRow) -> Remembered | None:
        """What is stored of a run; None if it cannot be decoded."""
        known = self._known.get(row.id)
        if known is None or known[0] != row.updated:
            known = self._known[row.id] = row.updated, *self._decoded(row)
        return known[1]

    def lead(self, row: RunRow, tags: Sequence[str]) -> tuple[str, Sequence[float]]:
        """The rough curve of the first of these tags, else of the objective, with the tag."""
        curves = self._known[row.id][2]
        objectives = (
            tag
            for signal in OBJECTIVES
            for tag, (of, values) in curves.items()
            if of == signal and values.size
        )
        tag = next((tag for tag in tags if tag in curves), None) or next(objectives, None)
        return (clean_text(tag, 60), curves[tag][1].tolist()) if tag else ("", ())

    def _decoded(self, row: RunRow) -> "tuple[Remembered | None, _Outlines]":
        try:
            state = unpacked(self._store.run_state(row.id) or b"")
            kept = Remembered.of(state)
        except ValueError:
            return None, {}
        try:
            return kept, outlines(state.get("streams", {}))
        except Exception:  # noqa: BLE001  another version's histories; the watch reads the log anew
            return kept, {}


_Outlines = Mapping[str, tuple[str, NDArray[np.float64]]]
