"""The content of a state directory in lines for a terminal, safe to print."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.text import clean_text, counted, counted_runs, duration_text
from sentinel.incidents.duplicates import kind_of, same_finding
from sentinel.incidents.incident import Incident
from sentinel.report.status import MAX_ROWS, NEED_EVIDENCE, STATES, KnownRun, Status
from sentinel.runs.state import GOING_ON, RunState

_MAX_FURTHER_LOGS = 3  # logs of one training
_MAX_FURTHER_INCIDENTS = 5  # other logs with the same incident
_NUMBER_IN_TEXT = lazy_pattern(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?")


def workings(status: Status) -> Iterator[tuple[int, str]]:
    """Yield the health of each part, what was sent and what waits, and what people said."""
    name = names_of(status.runs)
    for section in (_health, _deliveries, _feedback, _promise):
        yield from section(status, name)


def lines(status: Status) -> Iterator[tuple[int, str]]:
    """Yield the report, line by line with the indent of each, safe to print."""
    name = names_of(status.runs)
    yield 0, summary(status.runs)
    for section in (_health, _incidents, _run_lines, _deliveries, _silences, _feedback, _promise):
        if section_lines := [*section(status, name)]:
            yield 0, ""
            yield from section_lines


_Names = Mapping[str, str]  # short names by run id
_Lines = Iterator[tuple[int, str]]


def names_of(runs: Sequence[KnownRun]) -> _Names:
    """Return the paths of the runs below what they have in common, and what a tracker calls them."""
    base = _base(runs)
    return {run.row.id: clean_text(run.label.beside(_below(base, run.row.path))) for run in runs}


def _below(base: str, path: str) -> str:
    return path.removeprefix(f"{base}/") if base else path


def _base(runs: Sequence[KnownRun]) -> str:
    local = [str(Path(run.row.path).parent) for run in runs]
    is_local = all(path.startswith("/") for path in local) and len(local) > 1
    return os.path.commonpath(local) if is_local else ""


def summary(runs: Sequence[KnownRun]) -> str:
    """Return how many runs there are, in how many logs, where, and in which states."""
    trainings = [run for run in runs if run.stands_for_its_training]
    base = _base(runs)
    below = f" below {clean_text(base)}" if base.strip("/") else ""
    return f"{counted_runs(len(trainings), len(runs))}{below}{_by_state(trainings)}"


def _by_state(runs: Sequence[KnownRun]) -> str:
    states = Counter(run.state for run in runs)
    counted = ", ".join(f"{states[state]} {state}" for state in STATES if states[state])
    return f": {counted}" if counted else ""


def _health(status: Status, name: _Names) -> _Lines:
    if status.trouble:
        yield 0, status.trouble
    for component, health_value in status.health.items():
        yield 0, clean_text(f"{component}: {_words(health_value, status.now)}", 500)
    if lagging := sorted((run for run in status.runs if run.lag), key=lambda run: -run.lag):
        furthest = f"{name[lagging[0].row.id]} for {duration_text(lagging[0].lag)}"
        yield 0, f"{counted(len(lagging), 'log')} not read to the end yet, {furthest}"


def _words(health_value: Any, now: float) -> str:
    if not isinstance(health_value, dict):
        return str(health_value)
    health_parts = (
        f"{k[:-3]} {_ago(now, v)}" if k.endswith("_at") else counted(v, k.removesuffix("s"))
        for k, v in health_value.items()
    )
    return ", ".join(health_parts).replace("_", " ")


def _incidents(status: Status, name: _Names) -> _Lines:
    yield 0, _open_counts(status)
    incident_groups = _incident_groups(status)
    for incident, *similar_incidents in incident_groups[:MAX_ROWS]:
        severity = incident.severity.label
        since = incident.onset_step
        yield 2, f"{severity}: {incident.detector} since step {since} in {name[incident.run]}"
        explained = (
            f"explained by {incident.inhibited_by}"
            if incident.inhibited_by
            else clean_text(incident.summary, 500)
        )
        yield 6, f"{explained} ({incident.state}, id {incident.id})"
        for other_incident in similar_incidents[:_MAX_FURTHER_INCIDENTS]:
            where = f"{name[other_incident.run]} since step {other_incident.onset_step}"
            yield 6, f"also in {where} ({other_incident.state}, id {other_incident.id})"
        if further := similar_incidents[_MAX_FURTHER_INCIDENTS:]:
            yield 6, f"and in {counted(len(further), 'more log')}"
    if left_out := Counter(incident.severity for group in incident_groups[MAX_ROWS:] for incident in group):
        severities = ", ".join(f"{count} {severity.label}" for severity, count in sorted(left_out.items()))
        yield 2, f"and {left_out.total()} more: {severities}"


def _open_counts(status: Status) -> str:
    """Return how many incidents are open, without those that another one explains."""
    present = sum(incident.inhibited_by is None for incident in status.present)
    all_open = sum(incident.inhibited_by is None for incident in status.incidents)
    of_ended = f", and {all_open - present:,} of runs that are over" if all_open > present else ""
    return f"Open incidents: {f'{present:,}' if present else 'none'}{of_ended}"


def _incident_groups(status: Status) -> list[list[Incident]]:
    """Return the incidents, each with those of other logs of its training that tell of the same, and with
    those of other runs that differ from it in numbers alone.
    """
    training = {run.row.id: run.training for run in status.runs}
    incident_groups: list[list[Incident]] = []
    by_kind: dict[tuple[str, ...], list[list[Incident]]] = {}
    for incident in status.incidents:
        similar_incidents = by_kind.setdefault((training[incident.run], *kind_of(incident)), [])
        group = next((other for other in similar_incidents if same_finding(other[0], incident)), None)
        if group is None:
            similar_incidents.append(group := [])
            incident_groups.append(group)
        group.append(incident)
    often = Counter((training[group[0].run], _finding(group[0])) for group in incident_groups)
    by_finding: dict[_Finding, list[Incident]] = {}
    for group_number, group in enumerate(incident_groups):
        finding = _finding(group[0])
        # Equal ones of one training are different troubles.
        is_one_of_several = often[training[group[0].run], finding] > 1
        by_finding.setdefault((group_number if is_one_of_several else None, *finding), []).extend(group)
    return [*by_finding.values()]


_Finding = tuple[Any, ...]


def _finding(incident: Incident) -> _Finding:
    """Return what an incident says but for its numbers."""
    words = _NUMBER_IN_TEXT.sub("", incident.summary)
    explained = incident.inhibited_by is not None
    return (incident.severity, incident.detector, incident.variant, incident.state, explained, words)


def _run_lines(status: Status, name: _Names) -> _Lines:
    if status.runs:
        yield 0, "Runs, the worst first"
    trainings = [[*logs] for _, logs in groupby(status.runs, key=lambda run: run.training)]
    for first_run, *further in trainings[:MAX_ROWS]:
        yield 2, f"{first_run.state}: {name[first_run.row.id]}{_run_progress(first_run)}"
        yield from _troubles(first_run)
        for run in further[:_MAX_FURTHER_LOGS]:
            grows = run.state == RunState.RUNNING and first_run.state not in GOING_ON
            run_state = "which still grows" if grows else run.state
            yield 4, f"also in {name[run.row.id]}, {run_state}{_run_progress(run)}"
            yield from _troubles(run)
        if more := further[_MAX_FURTHER_LOGS:]:
            yield 4, f"and in {counted(len(more), 'more log')}"
    if left_out := [logs[0] for logs in trainings[MAX_ROWS:]]:
        yield 2, f"and {len(left_out)} more{_by_state(left_out)}; --run shows those that you name"


def _run_progress(run: KnownRun) -> str:
    step = f", step {run.last_step}" if run.last_step is not None else ""
    why = f": {clean_text(run.evidence)}" if run.state in NEED_EVIDENCE else ""
    return f"{step}{why}"


def _troubles(run: KnownRun) -> _Lines:
    if run.lag:
        yield 6, f"read only in part: its end was not reached for {duration_text(run.lag)}"
    if run.not_judged:
        yield 6, f"not judged: {clean_text(run.not_judged, 500)}"


def _deliveries(status: Status, name: _Names) -> _Lines:
    if status.undelivered:
        yield 0, f"Undelivered notifications: {status.undelivered_count}"
    for waiting in status.undelivered:
        due_in_seconds = (waiting.next_attempt or status.now) - status.now
        when = "given up" if waiting.failed else f"next try in {duration_text(due_in_seconds)}"
        if waiting.error and not waiting.failed and waiting.next_attempt is None:
            when = "refused, tried again later"
        error = f": {waiting.error}" if waiting.error else ""
        tries = counted(waiting.attempts, "try", "tries")
        yield 2, clean_text(f"{waiting.sink}: incident {waiting.incident}, {tries}, {when}{error}", 500)
    if status.decisions:
        yield 0, "Latest decisions"
    for decision in status.decisions:
        change = f"{decision.event} of {decision.detector} in {name[decision.run]}"
        decision_line = f"{_ago(status.now, decision.at)}, {decision.sink}: {change}: {decision.reason_text}"
        yield 2, clean_text(decision_line, 500)


def _silences(status: Status, _: _Names) -> _Lines:
    if status.silences:
        yield 0, "Silences"
    for silence in status.silences:
        duration = duration_text(silence.until - status.now)
        only = f", incident {silence.incident}" if silence.incident else ""
        yield (
            2,
            clean_text(
                f"{silence.id}: {silence.detector} in {silence.run}{only} for {duration}: {silence.reason}",
                500,
            ),
        )


def _feedback(status: Status, _: _Names) -> _Lines:
    if status.feedback:
        yield 0, "What people said of incidents"
    for (detector, verdict), incident_count in status.feedback.items():
        yield 2, f"{detector}: {incident_count} {verdict}"


def _promise(status: Status, _: _Names) -> _Lines:
    if status.realised:
        yield 0, f"False pages, promised and realised since {_ago(status.now, status.realised.promise.since)}"
        for promise_line in status.realised.lines():
            yield 2, promise_line


def _ago(now: float, time: float) -> str:
    return f"{duration_text(max(0.0, now - time))} ago"
