"""All runs of some state directories as rows of a table, each with the version at which it last changed.

One fleet serves every page. A page that knows a version asks for the rows that changed since then, so a slow
page gets fewer and larger updates, and none has to be remembered for it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import groupby
from typing import Any

from sentinel.common.text import sentence
from sentinel.detectors.severity import Severity
from sentinel.incidents.incident import Incident
from sentinel.report.html import environment
from sentinel.report.html.sparks import scales_of, spark
from sentinel.report.merged_status import joined
from sentinel.report.status import KnownRun, Status
from sentinel.report.status_lines import names_of, summary
from sentinel.runs.state import GOING_ON, RunState
from sentinel.web.state_cache import StateCache


@dataclass(frozen=True)
class FleetRow:
    """A log in the table, with the names that `sentinel.report.model.RunReport` has for the same."""

    name: str
    worst: Severity
    found: Sequence[str]  # detectors with an open incident
    state: str
    last_step: int | None
    planned_steps: int | None
    first_time: float | None  # of its points, in seconds since the epoch
    last_time: float | None
    lasted: float | None  # seconds
    to_go: float | None  # seconds to the planned end, of a run that goes on
    goes_on: bool
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
        """Return what a page that knows a version has to change, JSON-able. A row that is gone is empty."""
        rows = {key: row.html for key, row in self.rows.items() if row.version > version}
        head = {"verdict": self.verdict, "counted": self.counted, "trouble": self.trouble}
        return {**head, "rows": rows}

    def renewed(self, verdict: str, counted: str, trouble: str, rows: Mapping[str, str]) -> "FleetTable":
        """Return the table with this content: the same one if nothing differs."""
        same = {key: row for key, row in self.rows.items() if row.html == rows.get(key)}
        version = self.version + 1
        rows = {**rows, **{key: "" for key in self.rows if key not in rows}}
        rows_now = {key: same.get(key) or _Rendered(version, html) for key, html in rows.items()}
        new = FleetTable(version, verdict, counted, trouble, rows_now)
        return self if replace(new, version=self.version) == self else new


class Fleet:
    """The runs as the watches last recorded them. Belongs to the thread that opened the states."""

    def __init__(self, states: Sequence[StateCache]) -> None:
        self.table = FleetTable()
        self.runs: dict[str, KnownRun] = {}  # by key, the worst first
        self.names: Mapping[str, str] = {}  # by run id
        self.states: Mapping[str, StateCache] = {}  # where each run is from, by its id
        self.status: Status | None = None
        self._known = states

    def refresh(self, now: float, awake: float) -> None:
        """Look again. If a state cannot be read, keep what was there, and say why it may be old."""
        looks = [state.refresh(now, awake) for state in self._known]
        if any(looks):
            self._show()

    def _show(self) -> None:
        trouble = "; ".join(state.failure for state in self._known if state.failure)
        read = {state.location: state.shown for state in self._known if state.shown}
        if not read:
            self.table = self.table.renewed("", "", trouble, {})
            return
        shown = self.status = joined(read)
        self.names = names_of(shown.runs)
        self.runs = {key_of(run.row.id): run for run in shown.runs}
        self.states = {run: state for state in self._known for run in state.holds(shown.runs)}
        trouble = trouble or sentence(shown.trouble)
        rows = dict(self._rendered(shown))
        self.table = self.table.renewed(_verdict(shown), summary(shown.runs), trouble, rows)

    def _rendered(self, shown: Status) -> Iterator[tuple[str, str]]:
        rows: Any = environment(__package__).get_template("runs.html").module
        by_run: dict[str, list[Incident]] = {}
        for incident in shown.incidents:
            if incident.inhibited_by is None:
                by_run.setdefault(incident.run, []).append(incident)
        trainings = [[*logs] for _, logs in groupby(self.runs.items(), key=lambda item: item[1].training)]
        told = {run.row.id: self._of(run, by_run.get(run.row.id, ())) for run in shown.runs}
        scales = scales_of(row.lead for row in told.values())
        for members in sorted(trainings, key=lambda logs: all(run.state not in GOING_ON for _, run in logs)):
            keys, runs = zip(*members, strict=True)
            logs = [told[run.row.id] for run in runs]
            hrefs = [f"/runs/{key}" for key in keys]
            curve = spark(logs[0].lead, scales)
            # A log without times was written before the watch last recorded something of it.
            last = max(log.last_time or run.row.updated for log, run in zip(logs, runs, strict=True))
            row = rows.row(logs, hrefs, curve, id=f"row-{keys[0]}", pick=keys[0], last=last)
            yield keys[0], str(row).strip()

    def _of(self, run: KnownRun, incidents: Sequence[Incident]) -> FleetRow:
        facts = run.kept.metadata if run.kept else None
        planned = run.kept.planned_steps if run.kept else None
        return FleetRow(
            name=self.names[run.row.id],
            worst=max((incident.severity for incident in incidents), default=Severity.CLEAN),
            found=[*dict.fromkeys(incident.detector for incident in incidents)],
            state=f"{run.state}, not judged" if run.not_judged else str(run.state),
            last_step=run.last_step,
            planned_steps=int(planned) if planned else None,
            first_time=facts.first_time if facts else None,
            last_time=facts.last_time if facts else None,
            lasted=facts.lasted_seconds if facts else None,
            to_go=facts.seconds_to_go(planned) if facts and run.state == RunState.RUNNING else None,
            goes_on=run.state in GOING_ON,
            points=facts.points if facts else 0,
            lead=self.states[run.row.id].lead(run.row, [incident.drawn_tag for incident in incidents]),
        )


def key_of(run: str) -> str:
    """Return what stands for a run in addresses, whatever its path holds."""
    return blake2b(run.encode(), digest_size=8).hexdigest()


def _verdict(shown: Status) -> str:
    own = _severities(shown)
    if not own:
        return "No open incident"
    counted = ", ".join(f"{own[severity]} {severity.label}" for severity in sorted(own, reverse=True))
    return f"{own.total():,} open incident{'' if own.total() == 1 else 's'}: {counted}"


def _severities(shown: Status) -> Counter[Severity]:
    """Return how many open incidents there are of each severity; what the logs of one training share counts
    once.
    """
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
