"""What the state directory holds, for a person: what is wrong first, the worst first."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from detectors.api import Severity
from sentinel.alerts.database import watching_process
from sentinel.alerts.incident import Incident
from sentinel.alerts.outbox import Undelivered
from sentinel.alerts.silences import Silence
from sentinel.alerts.store import DecisionRow, RunRow, Store
from sentinel.alerts.wire import incident_body
from sentinel.runs.log import Remembered
from sentinel.runs.state import RunState, silent_seconds, standing
from sentinel.sources.places import Url
from sentinel.text import clean_text, duration_text

_SHOWN = 20
"""The most runs, incidents and notifications that are shown."""
_DECISIONS_SHOWN = 10

_DECISIONS_READ = 1000  # of all runs, of which those of the wanted runs are shown
_OUTAGE_SECONDS = 120.0
"""A watch records every ten seconds that it looked; a long read or a long `poll_seconds` may delay it."""

_UNKNOWN = "unknown"
_STATES = (
    RunState.CRASHED,
    RunState.STALLED,
    RunState.LOST,
    _UNKNOWN,
    RunState.RUNNING,
    RunState.PREEMPTED,
    RunState.FINISHED,
)
"""The worst first."""
_NEED_EVIDENCE = _STATES[: _STATES.index(RunState.RUNNING)]


@dataclass(frozen=True)
class KnownRun:
    """A run as the last commit left it. ``severity`` is that of its worst open incident."""

    row: RunRow
    state: str
    evidence: str
    last_step: int | None
    not_judged: str | None  # why
    severity: Severity

    @property
    def badness(self) -> tuple[int, bool, int, float]:
        """What orders runs from the worst to the best."""
        return -self.severity, self.not_judged is None, _STATES.index(self.state), -self.row.updated


@dataclass(frozen=True)
class Status:
    """The content of a state directory. Runs and incidents are sorted, the worst first."""

    now: float
    runs: Sequence[KnownRun]
    incidents: Sequence[Incident]
    undelivered: Sequence[Undelivered]
    undelivered_count: int
    decisions: Sequence[DecisionRow]
    silences: Sequence[Silence]
    feedback: Mapping[tuple[str, str], int]  # by detector and verdict
    health: Mapping[str, Any]
    process: str | None  # the id of the process that watches
    outage: str  # that a watch runs and records nothing; empty if not


def status(store: Store, place: Path, now: float, wanted: Callable[[str], bool]) -> Status:
    """Read the store in a state directory. ``wanted`` chooses runs by their path."""
    stops = store.stops.all()
    rows = {row.id: row for row in store.runs() if wanted(row.path)}
    found = [one for one in store.incidents(open_only=True) if one.run in rows]
    worst: dict[str, Severity] = {}
    for one in found:
        worst[one.run] = max(worst.get(one.run, Severity.CLEAN), one.severity)
    runs = []
    for row in rows.values():
        state, evidence, step = _standing(store, row, now)
        stop = stops[row.id].reason if row.id in stops else None
        runs.append(KnownRun(row, state, evidence, step, stop, worst.get(row.id, Severity.CLEAN)))
    health, process = store.health(), watching_process(place)
    return Status(
        now=now,
        runs=sorted(runs, key=lambda run: run.badness),
        incidents=sorted(found, key=lambda one: (-one.severity, one.inhibited_by is not None)),
        undelivered=store.outbox.undelivered(_SHOWN),
        undelivered_count=store.outbox.undelivered_count(),
        decisions=[one for one in store.decisions(_DECISIONS_READ) if one.run in rows][:_DECISIONS_SHOWN],
        silences=store.silences(now),
        feedback=store.feedback.counts(),
        health=health,
        process=process,
        outage=_outage(health, process, now),
    )


def _standing(store: Store, row: RunRow, now: float) -> tuple[str, str, int | None]:
    """The state of a run, the evidence for it, and its last step."""
    try:
        kept = Remembered.of(store.run_state(row.id) or b"")
    except ValueError:
        return _UNKNOWN, "its saved state cannot be decoded; a watch reads its log from the start", None
    silent = silent_seconds(Url.parse(row.path) or Path(row.path), kept.facts.last_time, now)
    stands = standing(kept.ending, silent, kept.facts.lost_after_seconds)
    return stands.state, stands.evidence, kept.facts.last_step


def _outage(health: Mapping[str, Any], process: str | None, now: float) -> str:
    looks = [value["looked_at"] for value in health.values() if isinstance(value, dict)]
    silent = now - max(looks, default=now)
    if silent > _OUTAGE_SECONDS and process:
        return f"process {process} watches, but recorded nothing for {duration_text(silent)}"
    return ""


def document(shown: Status) -> dict[str, Any]:
    """The whole status, JSON-able."""
    return {
        "schema": 1,
        "runs": [
            {
                "path": run.row.path,
                "source": run.row.format,
                "state": run.state,
                "state_evidence": run.evidence,
                "last_step": run.last_step,
                "stopped": run.not_judged,
                "read_at": run.row.updated,
            }
            for run in shown.runs
        ],
        "incidents": [{**incident_body(one), "run": one.run} for one in shown.incidents],
        "undelivered": [vars(one) for one in shown.undelivered],
        "undelivered_count": shown.undelivered_count,
        "decisions": [vars(one) for one in shown.decisions],
        "silences": [vars(one) for one in shown.silences],
        "feedback": [
            {"detector": detector, "verdict": verdict, "incidents": count}
            for (detector, verdict), count in shown.feedback.items()
        ],
        "watch_process": shown.process,
        "health": {**shown.health, **({"outage": shown.outage} if shown.outage else {})},
    }


def lines(shown: Status) -> Iterator[tuple[int, str]]:
    """The report, line by line with the indent of each, safe to print."""
    name = _names(shown.runs)
    yield 0, _summary(shown.runs)
    for section in (_health, _incidents, _runs, _deliveries, _silences, _feedback):
        if found := [*section(shown, name)]:
            yield 0, ""
            yield from found


_Names = Mapping[str, str]  # short names by run id
_Lines = Iterator[tuple[int, str]]


def _names(runs: Sequence[KnownRun]) -> _Names:
    """The paths of the runs below what they have in common."""
    paths = {run.row.id: run.row.path for run in runs}
    base = _base(runs)
    return {id_: clean_text(path.removeprefix(f"{base}/") if base else path) for id_, path in paths.items()}


def _base(runs: Sequence[KnownRun]) -> str:
    local = [str(Path(run.row.path).parent) for run in runs]
    here = all(path.startswith("/") for path in local) and len(local) > 1
    return os.path.commonpath(local) if here else ""


def _summary(runs: Sequence[KnownRun]) -> str:
    base = _base(runs)
    below = f" below {clean_text(base)}" if base.strip("/") else ""
    return f"{_count(len(runs), 'run')}{below}{_by_state(runs)}"


def _by_state(runs: Sequence[KnownRun]) -> str:
    states = Counter(run.state for run in runs)
    counted = ", ".join(f"{states[state]} {state}" for state in _STATES if states[state])
    return f": {counted}" if counted else ""


def _health(shown: Status, _: _Names) -> _Lines:
    if trouble := shown.outage if shown.process else "no watch is running":
        yield 0, trouble
    for part, value in shown.health.items():
        yield 0, clean_text(f"{part}: {_words(value, shown.now)}", 500)


def _words(value: Any, now: float) -> str:
    if not isinstance(value, dict):
        return str(value)
    told = (
        f"{k[:-3]} {_ago(now, v)}" if k.endswith("_at") else _count(v, k.removesuffix("s"))
        for k, v in value.items()
    )
    return ", ".join(told).replace("_", " ")


def _incidents(shown: Status, name: _Names) -> _Lines:
    yield 0, f"Open incidents: {len(shown.incidents) or 'none'}"
    for one in shown.incidents[:_SHOWN]:
        yield 2, f"{one.severity.label}: {one.detector} since step {one.onset_step} in {name[one.run]}"
        explained = f"explained by {one.inhibited_by}" if one.inhibited_by else clean_text(one.summary, 500)
        yield 6, f"{explained} ({one.state}, id {one.id})"
    if rest := Counter(one.severity for one in shown.incidents[_SHOWN:]):
        counted = ", ".join(f"{count} {severity.label}" for severity, count in sorted(rest.items()))
        yield 2, f"and {rest.total()} more: {counted}"


def _runs(shown: Status, name: _Names) -> _Lines:
    if shown.runs:
        yield 0, "Runs, the worst first"
    for run in shown.runs[:_SHOWN]:
        step = f", step {run.last_step}" if run.last_step is not None else ""
        why = f": {clean_text(run.evidence)}" if run.state in _NEED_EVIDENCE else ""
        yield 2, f"{run.state}: {name[run.row.id]}{step}{why}"
        if run.not_judged:
            yield 6, f"not judged: {clean_text(run.not_judged, 500)}"
    if rest := shown.runs[_SHOWN:]:
        yield 2, f"and {len(rest)} more{_by_state(rest)}; --run shows those that you name"


def _deliveries(shown: Status, name: _Names) -> _Lines:
    if shown.undelivered:
        yield 0, f"Undelivered notifications: {shown.undelivered_count}"
    for waiting in shown.undelivered:
        due = (waiting.next_attempt or shown.now) - shown.now
        when = "given up" if waiting.failed else f"next try in {duration_text(due)}"
        error = f": {waiting.error}" if waiting.error else ""
        tries = _count(waiting.attempts, "try", "tries")
        yield 2, clean_text(f"{waiting.sink}: incident {waiting.incident}, {tries}, {when}{error}", 500)
    if shown.decisions:
        yield 0, "Latest decisions"
    for one in shown.decisions:
        told = f"{one.sink}: {one.event} of {one.detector} in {name[one.run]}: {one.reason_text}"
        yield 2, clean_text(f"{_ago(shown.now, one.at)}, {told}", 500)


def _silences(shown: Status, _: _Names) -> _Lines:
    if shown.silences:
        yield 0, "Silences"
    for one in shown.silences:
        left, only = (
            duration_text(one.until - shown.now),
            f", incident {one.incident}" if one.incident else "",
        )
        yield 2, clean_text(f"{one.id}: {one.detector} in {one.run}{only} for {left}: {one.reason}", 500)


def _feedback(shown: Status, _: _Names) -> _Lines:
    if shown.feedback:
        yield 0, "What people said of incidents"
    for (detector, verdict), count in shown.feedback.items():
        yield 2, f"{detector}: {count} {verdict}"


def _ago(now: float, then: float) -> str:
    return f"{duration_text(max(0.0, now - then))} ago"


def _count(number: int, noun: str, nouns: str = "") -> str:
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"
