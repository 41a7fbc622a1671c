"""All runs of some state directories as rows of a table, each with the version at which it last changed.

One fleet serves every page. A page that knows a version asks for the rows that changed since then, so a slow
page gets fewer and larger updates, and none has to be remembered for it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from sentinel.common.text import sentence
from sentinel.detectors.severity import Severity
from sentinel.incidents.incident import Incident, drawn_onsets
from sentinel.report.html import environment
from sentinel.report.html.sparks import scales_of, spark
from sentinel.report.merged_status import joined
from sentinel.report.status import KnownRun, Status
from sentinel.report.status_lines import names_of, summary
from sentinel.series.thumbnails import Lead
from sentinel.web.state_cache import StateCache


class FleetRow(KnownRun, frozen=True):
    """A log in the table, with the names that `sentinel.report.model.RunReport` has for the same."""

    title: str
    worst: Severity
    found: Sequence[str]  # detectors with an open incident
    lead: Lead


class _HtmlRow(msgspec.Struct, frozen=True):
    version: int  # at which it last changed
    html: str


class FleetTable(msgspec.Struct, frozen=True):
    """The rows by the key of the log that stands for a training, the worst first, and what stands above them.

    A row that is gone stays as an empty one, for the pages that still show it.
    """

    version: int = 0
    verdict: str = ""
    counted: str = ""  # the runs, by state
    trouble: str = ""  # why what stands here may be old; empty if it is not
    rows: Mapping[str, _HtmlRow] = msgspec.field(default_factory=dict)

    def since(self, version: int) -> dict[str, Any]:
        """Return what a page of a version has to change, JSON-able. A row that was removed is empty."""
        fleet_rows = {key: row.html for key, row in self.rows.items() if row.version > version}
        head = {"verdict": self.verdict, "counted": self.counted, "trouble": self.trouble}
        return {**head, "rows": fleet_rows}

    def renewed(
        self, verdict: str, counted: str, trouble: str, fleet_rows: Mapping[str, str]
    ) -> "FleetTable":
        """Return the table with this content: the same one if nothing differs."""
        unchanged = {key: row for key, row in self.rows.items() if row.html == fleet_rows.get(key)}
        version = self.version + 1
        removed = {key: "" for key in self.rows if key not in fleet_rows}
        html_rows = {
            key: unchanged.get(key) or _HtmlRow(version, html)
            for key, html in {**fleet_rows, **removed}.items()
        }
        new_table = FleetTable(version, verdict, counted, trouble, html_rows)
        return self if replace(new_table, version=self.version) == self else new_table


class Fleet:
    """The runs as the watches last recorded them. Belongs to the thread that opened the states."""

    def __init__(self, states: Sequence[StateCache]) -> None:
        self.table = FleetTable()
        self.runs: dict[str, KnownRun] = {}  # by key, the worst first
        self.names: Mapping[str, str] = {}  # by run id
        self.states: Mapping[str, StateCache] = {}  # where each run is from, by its id
        self.status: Status | None = None
        self._caches = states

    def refresh(self, now: float, awake: float) -> None:
        """Read the states again. If one cannot be read, keep what was there, and say why it may be old."""
        changes = [cache.refresh(now, awake) for cache in self._caches]
        if any(changes):
            self._update()

    def _update(self) -> None:
        trouble = "; ".join(cache.failure for cache in self._caches if cache.failure)
        statuses = {cache.location: cache.status for cache in self._caches if cache.status}
        if not statuses:
            self.table = self.table.renewed("", "", trouble, {})
            return
        status = joined(statuses)
        self.status = status
        self.names = names_of(status.runs)
        self.runs = {key_of(run.row.id): run for run in status.runs}
        self.states = {run: cache for cache in self._caches for run in cache.holds(status.runs)}
        trouble = trouble or sentence(status.trouble)
        fleet_rows = self._html_rows(self._rows(status))
        self.table = self.table.renewed(_verdict(status), summary(status.runs), trouble, fleet_rows)

    def _rows(self, status: Status) -> list[FleetRow]:
        """Return a row for each log, with its open incidents that no other one explains."""
        incidents: dict[str, list[Incident]] = {}
        for incident in status.incidents:
            if incident.inhibited_by is None:
                incidents.setdefault(incident.run, []).append(incident)
        return [self._fleet_row(run, incidents.get(run.row.id, ())) for run in status.runs]

    def _fleet_row(self, run: KnownRun, incidents: Sequence[Incident]) -> FleetRow:
        run_state = f"{run.state}, not judged" if run.not_judged else str(run.state)
        return FleetRow(
            **asdict(replace(run, state=run_state)),
            title=self.names[run.row.id],
            worst=max((incident.severity for incident in incidents), default=Severity.CLEAN),
            found=[*dict.fromkeys(incident.detector for incident in incidents)],
            lead=self.states[run.row.id].lead(run.row, drawn_onsets(incidents)),
        )

    def _html_rows(self, fleet_rows: Sequence[FleetRow]) -> dict[str, str]:
        """Return the rows of the trainings as HTML, by the key of the first log; those that go on first."""
        template: Any = environment(__package__).get_template("runs.html").module
        scales = scales_of(row.lead for row in fleet_rows)
        trainings = [[*logs] for _, logs in groupby(fleet_rows, key=lambda row: row.training)]
        trainings.sort(key=lambda logs: not any(log.goes_on for log in logs))
        html = {}
        for logs in trainings:
            keys = [key_of(log.row.id) for log in logs]
            hrefs = [f"/runs/{key}" for key in keys]
            curve = spark(logs[0].lead, scales)
            # A log without times was written before the watch last recorded something of it.
            last_logged = max(log.last_time or log.row.updated for log in logs)
            row = template.row(logs, hrefs, curve, id=f"row-{keys[0]}", pick=keys[0], last=last_logged)
            html[keys[0]] = str(row).strip()
        return html


def key_of(run: str) -> str:
    """Return what stands for a run in addresses, whatever its path holds."""
    return blake2b(run.encode(), digest_size=8).hexdigest()


def _verdict(status: Status) -> str:
    counts = _severities(status)
    if not counts:
        return "No open incident"
    by_severity = ", ".join(
        f"{counts[severity]} {severity.label}" for severity in sorted(counts, reverse=True)
    )
    return f"{counts.total():,} open incident{'' if counts.total() == 1 else 's'}: {by_severity}"


def _severities(status: Status) -> Counter[Severity]:
    """Count the open incidents of each severity. What the logs of one training share counts once."""
    training = {run.row.id: run.training for run in status.runs}
    by_run: dict[str, Counter[tuple[Severity, str, str]]] = {}
    for incident in status.incidents:
        if incident.inhibited_by is None:
            incident_kind = (incident.severity, incident.detector, incident.signal)
            by_run.setdefault(incident.run, Counter())[incident_kind] += 1
    by_training: dict[str, Counter[tuple[Severity, str, str]]] = {}
    for run, counts in by_run.items():
        by_training[training[run]] = by_training.get(training[run], Counter()) | counts
    all_severities = Counter[Severity]()
    for counts in by_training.values():
        for (severity, *_), severity_count in counts.items():
            all_severities[severity] += severity_count
    return all_severities
