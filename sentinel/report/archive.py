"""An archive of judged runs: as the JSON of one replay, or what its failures cost."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest

from sentinel.alerts.incident import Incident
from sentinel.alerts.wire import incident_body, utc_text
from sentinel.archives.reducing import Archive, Settled
from sentinel.detectors.severity import Severity
from sentinel.ground.text import clean_text, counted, counted_runs, duration_text
from sentinel.report.json import ReplayBody, ReplayedRunBody, run_body, told_bodies

_SHOWN = 10
_HOUR = 3600.0


@dataclass(frozen=True)
class Failure:
    """The first trouble of a training that a sink would have been sent, and what followed it.

    ``seconds`` went by from its onset to the last point; 0 where the log has no times. ``processes`` trained
    together, None if the log does not say.
    """

    run: Settled
    incident: Incident
    seconds: float
    processes: float | None


def document(archive: Archive) -> ReplayBody:
    """The archive as `sentinel replay --format json` gives the same runs."""
    bodies = [_body(run) for run in archive.runs]
    read = [run for run in archive.runs if not run.record.unread]
    problems = [*archive.complaints, *(f"{one.path}: {one.failure}" for one in archive.failed)]
    return {
        "schema": 1,
        "coverage": {
            "read": len(read),
            "cut": sum(body["stopped"] is not None for body in bodies if body["points"]),
            "unread": len(archive.runs) - len(read) + len(problems),
        },
        "runs": bodies,
        "complaints": problems,
        "comparisons": [],
    }


def lines(archive: Archive) -> Iterator[tuple[int, str]]:
    """What the failures of the archive cost: each line with its indent."""
    read = [run for run in archive.runs if not run.record.unread]
    trainings = {archive.trainings[one.record.id] for one in read}
    failures = [*_failures(archive)]
    critical = sum(failure.incident.severity is Severity.CRITICAL for failure in failures)
    quiet = len(trainings) - len(failures)
    counts = f"{critical} critical, {len(failures) - critical} with a warning, {quiet} quiet"
    yield 0, f"{counted_runs(len(trainings), len(read))}: {counts}"
    if unread := len(archive.runs) - len(read) + len(archive.failed) + len(archive.complaints):
        yield 0, f"could not be read: {unread}"
    yield from _table("By fault", failures, lambda one: one.incident.detector)
    yield from _table("By framework", failures, lambda one: one.run.record.described.framework)
    yield from _table("By week", failures, lambda one: _week(one.incident.onset_time))
    if failures:
        yield 0, ""
        yield 0, "What cost the most after its trouble began:"
    for one in nlargest(_SHOWN, failures, key=lambda one: (one.seconds * (one.processes or 1), one.seconds)):
        yield 2, f"{clean_text(one.run.record.name)}  {_spent([one])}"
        yield 4, f"{one.incident.severity.label} {one.incident.detector}: {clean_text(one.incident.summary)}"


def _body(one: Settled) -> ReplayedRunBody:
    record, seen = one.record, one.seen
    return {
        **run_body(seen, one.standing, seen.stopped, record.lacking, record.held_back),
        "complaints": list(record.complaints),
        "checks": [
            {"catalogue": list(check.catalogue), "because": check.because, "settings": dict(check.settings)}
            for check in record.checks
        ],
        "incidents": [
            {**incident_body(incident), "told": told_bodies(one.told.get(incident.id, ()))}
            for incident in record.incidents
        ],
    }


def _failures(archive: Archive) -> Iterator[Failure]:
    """For each training that failed, its first trouble, as the log tells it that saw it first."""
    logs: Mapping[str, list[Settled]] = defaultdict(list)
    for run in archive.runs:
        logs[archive.trainings[run.record.id]].append(run)
    for training in logs.values():
        found = [failure for one in training if (failure := _failure(one))]
        if found:
            yield max(found, key=lambda one: one.seconds)


def _failure(run: Settled) -> Failure | None:
    told = {
        id_
        for id_, outcomes in run.told.items()
        if any(outcome.decision.reason.sends for outcome in outcomes)
    }
    own = [
        incident for incident in run.record.incidents if incident.id in told and incident.inhibited_by is None
    ]
    if not own:
        return None
    first = min(own, key=lambda one: (one.attempt, one.onset_step))
    last = run.seen.facts.last_time
    began = first.onset_time
    seconds = 0.0 if began is None or last is None else max(0.0, last - began)
    return Failure(run, first, seconds, run.record.described.world_size)


def _table(
    title: str, failures: Sequence[Failure], key: Callable[[Failure], str | None]
) -> Iterator[tuple[int, str]]:
    groups: dict[str, list[Failure]] = defaultdict(list)
    for failure in failures:
        groups[key(failure) or "unknown"].append(failure)
    if groups:
        yield 0, ""
        yield 0, f"{title}:"
    largest = Counter({name: sum(one.seconds for one in found) for name, found in groups.items()})
    for name, _ in largest.most_common(_SHOWN):
        found = groups[name]
        yield 2, f"{clean_text(name)}  {counted(len(found), 'run')}, {_spent(found)}"


def _spent(failures: Iterable[Failure]) -> str:
    """The time after the onsets, and the GPU-hours of those whose number of processes is known."""
    every = [*failures]
    told = duration_text(sum(one.seconds for one in every))
    sized = [(one.seconds, one.processes) for one in every if one.processes is not None]
    if not sized:
        return f"{told} after the onset"
    hours = sum(seconds * processes for seconds, processes in sized) / _HOUR
    of = "" if len(sized) == len(every) else f" in the {len(sized)} whose size is known"
    return f"{told} after the onset, {hours:,.1f} GPU-hours{of}"


def _week(time: float | None) -> str | None:
    from datetime import UTC, datetime

    if time is None or utc_text(time) is None:
        return None
    year, week, _ = datetime.fromtimestamp(time, UTC).isocalendar()
    return f"{year}-W{week:02}"
