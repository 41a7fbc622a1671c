"""The content of a state directory in lines for a terminal, safe to print."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from sentinel.common.text import clean_text, counted, counted_runs, duration_text
from sentinel.incidents.duplicates import kind_of, same_finding
from sentinel.incidents.incident import Incident
from sentinel.report.status import NEED_EVIDENCE, SHOWN, STATES, KnownRun, Status
from sentinel.runs.state import GOING_ON, RunState

_FURTHER_SHOWN = 3  # logs of one training


def workings(shown: Status) -> Iterator[tuple[int, str]]:
    """Yield the health of each part, what was sent and what waits, and what people said."""
    name = names_of(shown.runs)
    for section in (_health, _deliveries, _feedback, _promise):
        yield from section(shown, name)


def lines(shown: Status) -> Iterator[tuple[int, str]]:
    """Yield the report, line by line with the indent of each, safe to print."""
    name = names_of(shown.runs)
    yield 0, summary(shown.runs)
    for section in (_health, _incidents, _runs, _deliveries, _silences, _feedback, _promise):
        if told := [*section(shown, name)]:
            yield 0, ""
            yield from told


_Names = Mapping[str, str]  # short names by run id
_Lines = Iterator[tuple[int, str]]


def names_of(runs: Sequence[KnownRun]) -> _Names:
    """Return the paths of the runs below what they have in common."""
    paths = {run.row.id: run.row.path for run in runs}
    base = _base(runs)
    return {id_: clean_text(path.removeprefix(f"{base}/") if base else path) for id_, path in paths.items()}


def _base(runs: Sequence[KnownRun]) -> str:
    local = [str(Path(run.row.path).parent) for run in runs]
    here = all(path.startswith("/") for path in local) and len(local) > 1
    return os.path.commonpath(local) if here else ""


def summary(runs: Sequence[KnownRun]) -> str:
    """Return how many runs there are, in how many logs, where, and in which states."""
    own = [run for run in runs if run.stands_for_its_training]
    base = _base(runs)
    below = f" below {clean_text(base)}" if base.strip("/") else ""
    return f"{counted_runs(len(own), len(runs))}{below}{_by_state(own)}"


def _by_state(runs: Sequence[KnownRun]) -> str:
    states = Counter(run.state for run in runs)
    counted = ", ".join(f"{states[state]} {state}" for state in STATES if states[state])
    return f": {counted}" if counted else ""


def _health(shown: Status, name: _Names) -> _Lines:
    if shown.trouble:
        yield 0, shown.trouble
    for part, value in shown.health.items():
        yield 0, clean_text(f"{part}: {_words(value, shown.now)}", 500)
    if behind := sorted((run for run in shown.runs if run.lag), key=lambda run: -run.lag):
        furthest = f"{name[behind[0].row.id]} for {duration_text(behind[0].lag)}"
        yield 0, f"{counted(len(behind), 'log')} not read to the end yet, {furthest}"


def _words(value: Any, now: float) -> str:
    if not isinstance(value, dict):
        return str(value)
    told = (
        f"{k[:-3]} {_ago(now, v)}" if k.endswith("_at") else counted(v, k.removesuffix("s"))
        for k, v in value.items()
    )
    return ", ".join(told).replace("_", " ")


def _incidents(shown: Status, name: _Names) -> _Lines:
    yield 0, f"Open incidents: {len(shown.incidents) or 'none'}"
    alike = _alike(shown)
    for incident, *others in alike[:SHOWN]:
        severity = incident.severity.label
        since = incident.onset_step
        yield 2, f"{severity}: {incident.detector} since step {since} in {name[incident.run]}"
        explained = (
            f"explained by {incident.inhibited_by}"
            if incident.inhibited_by
            else clean_text(incident.summary, 500)
        )
        yield 6, f"{explained} ({incident.state}, id {incident.id})"
        for other in others:
            yield 6, f"also in {name[other.run]} ({other.state}, id {other.id})"
    if rest := Counter(incident.severity for same in alike[SHOWN:] for incident in same):
        counted = ", ".join(f"{count} {severity.label}" for severity, count in sorted(rest.items()))
        yield 2, f"and {rest.total()} more: {counted}"


def _alike(shown: Status) -> list[list[Incident]]:
    """Return the incidents, each with those of other logs of its training that tell of the same."""
    training = {run.row.id: run.training for run in shown.runs}
    alike: list[list[Incident]] = []
    of_kind: dict[tuple[str, ...], list[list[Incident]]] = {}
    for incident in shown.incidents:
        others = of_kind.setdefault((training[incident.run], *kind_of(incident)), [])
        same = next((them for them in others if same_finding(them[0], incident)), None)
        if same is None:
            others.append(same := [])
            alike.append(same)
        same.append(incident)
    return alike


def _runs(shown: Status, name: _Names) -> _Lines:
    if shown.runs:
        yield 0, "Runs, the worst first"
    trainings = [[*logs] for _, logs in groupby(shown.runs, key=lambda run: run.training)]
    for first, *further in trainings[:SHOWN]:
        yield 2, f"{first.state}: {name[first.row.id]}{_progress(first)}"
        yield from _troubles(first)
        for run in further[:_FURTHER_SHOWN]:
            grows = run.state == RunState.RUNNING and first.state not in GOING_ON
            state = "which still grows" if grows else run.state
            yield 4, f"also in {name[run.row.id]}, {state}{_progress(run)}"
            yield from _troubles(run)
        if more := further[_FURTHER_SHOWN:]:
            yield 4, f"and in {counted(len(more), 'more log')}"
    if rest := [logs[0] for logs in trainings[SHOWN:]]:
        yield 2, f"and {len(rest)} more{_by_state(rest)}; --run shows those that you name"


def _progress(run: KnownRun) -> str:
    step = f", step {run.last_step}" if run.last_step is not None else ""
    why = f": {clean_text(run.evidence)}" if run.state in NEED_EVIDENCE else ""
    return f"{step}{why}"


def _troubles(run: KnownRun) -> _Lines:
    if run.lag:
        yield 6, f"read only in part: its end was not reached for {duration_text(run.lag)}"
    if run.not_judged:
        yield 6, f"not judged: {clean_text(run.not_judged, 500)}"


def _deliveries(shown: Status, name: _Names) -> _Lines:
    if shown.undelivered:
        yield 0, f"Undelivered notifications: {shown.undelivered_count}"
    for waiting in shown.undelivered:
        due = (waiting.next_attempt or shown.now) - shown.now
        when = "given up" if waiting.failed else f"next try in {duration_text(due)}"
        if waiting.error and not waiting.failed and waiting.next_attempt is None:
            when = "refused, tried again later"
        error = f": {waiting.error}" if waiting.error else ""
        tries = counted(waiting.attempts, "try", "tries")
        yield 2, clean_text(f"{waiting.sink}: incident {waiting.incident}, {tries}, {when}{error}", 500)
    if shown.decisions:
        yield 0, "Latest decisions"
    for decision in shown.decisions:
        change = f"{decision.event} of {decision.detector} in {name[decision.run]}"
        told = f"{_ago(shown.now, decision.at)}, {decision.sink}: {change}: {decision.reason_text}"
        yield 2, clean_text(told, 500)


def _silences(shown: Status, _: _Names) -> _Lines:
    if shown.silences:
        yield 0, "Silences"
    for silence in shown.silences:
        left = duration_text(silence.until - shown.now)
        only = f", incident {silence.incident}" if silence.incident else ""
        yield (
            2,
            clean_text(
                f"{silence.id}: {silence.detector} in {silence.run}{only} for {left}: {silence.reason}", 500
            ),
        )


def _feedback(shown: Status, _: _Names) -> _Lines:
    if shown.feedback:
        yield 0, "What people said of incidents"
    for (detector, verdict), count in shown.feedback.items():
        yield 2, f"{detector}: {count} {verdict}"


def _promise(shown: Status, _: _Names) -> _Lines:
    if shown.realised:
        yield 0, f"False pages, promised and realised since {_ago(shown.now, shown.realised.promise.since)}"
        for line in shown.realised.lines():
            yield 2, line


def _ago(now: float, then: float) -> str:
    return f"{duration_text(max(0.0, now - then))} ago"
