"""What the failures of an archive cost, as plain data and as lines of text."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sentinel.alerts.incident import Incident
from sentinel.alerts.wire import utc_text
from sentinel.archives.record import Record
from sentinel.archives.reducing import Archive, Settled
from sentinel.detectors.severity import Severity
from sentinel.ground.text import clean_text, counted, counted_runs, duration_text
from sentinel.report.comparisons import statements, title

_MOST_ROWS = 20  # of a table
_MOST_FAILURES = 5000  # in a report; the tables on disk have all
_MOST_COMPARISONS = 500  # in a report; its JSON has all
_WORST = 50
_HOUR = 3600.0


@dataclass(frozen=True)
class Failure:
    """The first trouble of a training that a sink would have been sent, as a log of it tells it.

    ``seconds`` went by from its onset to the last point; 0 where the log has no times. ``hours`` are
    GPU-hours, None where nobody says how many GPUs the training had.
    """

    record: Record
    incident: Incident
    seconds: float

    @property
    def hours(self) -> float | None:
        """The GPU-hours after the onset."""
        return None if self.record.gpus is None else self.seconds * self.record.gpus / _HOUR

    @property
    def name(self) -> str:
        """The name of the run, safe to show."""
        return clean_text(self.record.name)

    @property
    def spent(self) -> str:
        """Time and GPU-hours, in words."""
        return _spent([self])


@dataclass(frozen=True)
class CostGroup:
    """Failures that have something in common, and what they cost in words."""

    name: str
    failures: Sequence[Failure]

    @property
    def spent(self) -> str:
        """Time and GPU-hours, in words."""
        return _spent(self.failures)


@dataclass(frozen=True)
class CostOfFailures:
    """What the failures of an archive cost. ``tables`` have the costliest groups by title.

    ``failures`` are the costliest, and ``more`` is how many there are beside them. Each of ``comparisons``
    has a title and sentences.
    """

    verdict: str
    unread: int
    tables: Sequence[tuple[str, Sequence[CostGroup]]]
    failures: Sequence[Failure]
    more: int
    comparisons: Sequence[tuple[str, Sequence[str]]] = ()

    @property
    def worst(self) -> Sequence[Failure]:
        """The fifty costliest failures."""
        return self.failures[:_WORST]


def cost(archive: Archive) -> CostOfFailures:
    """What the failures of an archive cost."""
    read = [run for run in archive.runs if not run.record.unread]
    trainings = {archive.trainings[settled.record.id] for settled in read}
    failures = sorted(
        _failures(archive),
        key=lambda loss: (-loss.seconds * (loss.record.gpus or 1.0), loss.record.name),
    )
    critical = sum(failure.incident.severity is Severity.CRITICAL for failure in failures)
    quiet = len(trainings) - len(failures)
    counts = f"{critical} critical, {len(failures) - critical} with a warning, {quiet} quiet"
    keys: Sequence[tuple[str, Callable[[Failure], str | None]]] = (
        ("By fault", lambda loss: loss.incident.detector),
        ("By user", lambda loss: loss.record.user),
        ("By framework", lambda loss: loss.record.described.framework),
        ("By week", lambda loss: _week(loss.incident.onset_time)),
    )
    return CostOfFailures(
        verdict=f"{counted_runs(len(trainings), len(read))}: {counts}",
        unread=len(archive.runs) - len(read) + len(archive.failed) + len(archive.complaints),
        tables=[(name, _groups(failures, key)) for name, key in keys] if failures else [],
        failures=failures[:_MOST_FAILURES],
        more=max(0, len(failures) - _MOST_FAILURES),
        comparisons=[(title(one), [*statements(one)]) for one in archive.comparisons[:_MOST_COMPARISONS]],
    )


def lines(cost: CostOfFailures) -> Iterator[tuple[int, str]]:
    """The cost for a terminal: each line with its indent."""
    yield 0, cost.verdict
    if cost.unread:
        yield 0, f"could not be read: {cost.unread}"
    for name, groups in cost.tables:
        yield 0, ""
        yield 0, f"{name}:"
        for group in groups:
            yield 2, f"{group.name}  {counted(len(group.failures), 'run')}, {group.spent}"
    if cost.worst:
        yield 0, ""
        yield 0, "What cost the most after its trouble began:"
    for failed in cost.worst:
        yield 2, f"{failed.name}  {failed.spent}"
        yield 4, f"{failed.incident.severity.label} {failed.incident.detector}: {failed.incident.headline}"
    for compared, sentences in cost.comparisons:
        yield 0, ""
        yield 0, compared
        yield from ((2, sentence) for sentence in sentences)


def _failures(archive: Archive) -> Iterator[Failure]:
    """For each training that failed, its first trouble, as the log tells it that saw it first."""
    logs: dict[str, list[Settled]] = defaultdict(list)
    for run in archive.runs:
        logs[archive.trainings[run.record.id]].append(run)
    for training in logs.values():
        failures = [failure for log in training if (failure := _failure(log))]
        if failures:
            yield max(failures, key=lambda failed: failed.seconds)


def _failure(run: Settled) -> Failure | None:
    told = {
        id_
        for id_, outcomes in run.told.items()
        if any(outcome.decision.reason.sends for outcome in outcomes)
    }
    own = [sent for sent in run.record.incidents if sent.id in told and sent.inhibited_by is None]
    if not own:
        return None
    first = min(own, key=lambda sent: (sent.attempt, sent.onset_step))
    return Failure(run.record, first, run.record.seconds_after(first) or 0.0)


def _groups(failures: Iterable[Failure], key: Callable[[Failure], str | None]) -> list[CostGroup]:
    groups: dict[str, list[Failure]] = defaultdict(list)
    for failure in failures:
        groups[clean_text(key(failure) or "unknown")].append(failure)
    sorted_groups = [CostGroup(name, group) for name, group in groups.items()]
    sorted_groups.sort(key=lambda rows: sum(failure.seconds for failure in rows.failures), reverse=True)
    return sorted_groups[:_MOST_ROWS]


def _spent(failures: Sequence[Failure]) -> str:
    """The time after the onsets, and the GPU-hours of those whose number of GPUs is known."""
    told = duration_text(sum(failure.seconds for failure in failures))
    hours = [failure.hours for failure in failures if failure.hours is not None]
    if not hours:
        return f"{told} after the onset"
    of = "" if len(hours) == len(failures) else f" in the {len(hours)} whose size is known"
    return f"{told} after the onset, {sum(hours):,.1f} GPU-hours{of}"


def _week(time: float | None) -> str | None:
    if time is None or utc_text(time) is None:
        return None
    year, week, _ = datetime.fromtimestamp(time, UTC).isocalendar()
    return f"{year}-W{week:02}"
