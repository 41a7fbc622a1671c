"""What the failures of an archive cost, as plain data and as lines of text."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from heapq import nsmallest
from typing import Self

import msgspec

from sentinel.archives.record import Record
from sentinel.archives.reducing import Archive, SettledRun
from sentinel.common.text import clean_text, counted, counted_runs, duration_text
from sentinel.detectors.severity import Severity
from sentinel.incidents.incident import Incident
from sentinel.incidents.json_body import utc_text
from sentinel.report.comparisons import statements, title

_MAX_ROWS = 20  # of a table
_MAX_FAILURES_SHOWN = 5000  # in a report; the tables on disk have all
_MAX_COMPARISONS = 500  # in a report; its JSON has all
_MAX_WORST_FAILURES = 50  # failures in a list
_HOUR_SECONDS = 3600.0


class Failure(msgspec.Struct, frozen=True):
    """The first trouble of a training that a sink would have been sent, as a log of it tells it.

    ``run`` and ``path`` are those of the log. ``seconds`` went by from the onset to the last point; 0 where
    the log has no times. ``gpus`` is None where nobody says how many GPUs the training had.
    """

    run: str
    path: str
    user: str | None
    framework: str | None
    gpus: float | None
    detector: str
    severity: Severity
    headline: str
    onset_step: int
    onset_time: float | None
    seconds: float

    @classmethod
    def from_incident(cls, archived: Record, incident: Incident) -> Self:
        """Return an incident of a run, as the first trouble of its training."""
        return cls(
            run=archived.name,
            path=archived.path,
            user=archived.user,
            framework=archived.described.framework,
            gpus=archived.gpus,
            detector=incident.detector,
            severity=incident.severity,
            headline=incident.headline,
            onset_step=incident.onset_step,
            onset_time=incident.onset_time,
            seconds=archived.seconds_after(incident) or 0.0,
        )

    @property
    def name(self) -> str:
        """The name of the run, safe to show."""
        return clean_text(self.run)

    @property
    def rank(self) -> tuple[float, str]:
        """What sorts failures, the costliest first."""
        return -self.seconds * (self.gpus or 1.0), self.run

    @property
    def spent(self) -> str:
        """Time and GPU-hours, in words."""
        alone = CostGroup("")
        alone.add(self)
        return alone.spent


class CostGroup(msgspec.Struct):
    """Failures that have something in common: their number, and what they cost.

    ``hours`` are the GPU-hours after the onset of the ``sized`` ones, whose number of GPUs is known.
    ``costliest`` is the rank of the costliest one.
    """

    name: str
    failures: int = 0
    seconds: float = 0.0
    sized: int = 0
    hours: float = 0.0
    costliest: tuple[float, str] = (0.0, "")

    def add(self, failure: Failure) -> None:
        self.costliest = min(self.costliest, failure.rank) if self.failures else failure.rank
        self.failures += 1
        self.seconds += failure.seconds
        if failure.gpus is not None:
            self.sized += 1
            self.hours += failure.seconds * failure.gpus / _HOUR_SECONDS

    @property
    def spent(self) -> str:
        """Time and GPU-hours, in words."""
        time = f"{duration_text(self.seconds)} after the onset"
        if not self.sized:
            return time
        scope = "" if self.sized == self.failures else f" in the {self.sized} whose size is known"
        return f"{time}, {self.hours:,.1f} GPU-hours{scope}"


class CostOfFailures(msgspec.Struct, frozen=True):
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
        return self.failures[:_MAX_WORST_FAILURES]


def cost(archive: Archive) -> CostOfFailures:
    total = _CostCount()
    failures = nsmallest(_MAX_FAILURES_SHOWN, _failures(archive, total), key=lambda failure: failure.rank)
    quiet = total.trainings - total.failures
    incident_counts = (
        f"{total.critical} critical, {total.failures - total.critical} with a warning, {quiet} quiet"
    )
    run_rows = archive.contents.rows
    tables = {
        name: sorted(cost_groups.values(), key=lambda cost_group: (-cost_group.seconds, cost_group.costliest))
        for name, cost_groups in total.groups.items()
    }
    return CostOfFailures(
        verdict=f"{counted_runs(total.trainings, total.logs)}: {incident_counts}",
        unread=run_rows.height - total.logs + len(archive.read_issues),
        tables=[(name, cost_groups[:_MAX_ROWS]) for name, cost_groups in tables.items()] if failures else [],
        failures=failures,
        more=total.failures - len(failures),
        comparisons=[
            (title(comparison), [*statements(comparison)])
            for comparison in archive.comparisons[:_MAX_COMPARISONS]
        ],
    )


def lines(cost: CostOfFailures) -> Iterator[tuple[int, str]]:
    """Yield the cost for a terminal: each line with its indent."""
    yield 0, cost.verdict
    if cost.unread:
        yield 0, f"could not be read: {cost.unread}"
    for name, cost_groups in cost.tables:
        yield 0, ""
        yield 0, f"{name}:"
        for cost_group in cost_groups:
            yield 2, f"{cost_group.name}  {counted(cost_group.failures, 'run')}, {cost_group.spent}"
    if cost.worst:
        yield 0, ""
        yield 0, "What cost the most after its trouble began:"
    for failed in cost.worst:
        yield 2, f"{failed.name}  {failed.spent}"
        yield 4, f"{failed.severity.label} {failed.detector}: {failed.headline}"
    for compared, sentences in cost.comparisons:
        yield 0, ""
        yield 0, compared
        yield from ((2, sentence) for sentence in sentences)


class _CostCount(msgspec.Struct):
    """What is counted of an archive while it is read: ``logs`` and ``trainings`` that could be read, and the
    groups of failures by title and name.
    """

    logs: int = 0
    trainings: int = 0
    failures: int = 0
    critical: int = 0
    groups: dict[str, dict[str, CostGroup]] = msgspec.field(default_factory=dict)

    def add(self, failure: Failure) -> None:
        self.failures += 1
        self.critical += failure.severity is Severity.CRITICAL
        run_names = {
            "By fault": failure.detector,
            "By user": failure.user,
            "By framework": failure.framework,
            "By week": _week(failure.onset_time),
        }
        for table, group in run_names.items():
            name = clean_text(group or "unknown")
            self.groups.setdefault(table, {}).setdefault(name, CostGroup(name)).add(failure)


def _failures(archive: Archive, total: _CostCount) -> Iterator[Failure]:
    """Yield the first trouble of each training that failed, as the log tells it that saw it first."""
    for group in archive.groups():
        readable = [run for run in group if not run.record.unread]
        total.logs += len(readable)
        total.trainings += len({run.training for run in readable})
        first_failures: dict[str, Failure] = {}  # by training
        for run in group:
            if failure := _failure(run):
                earlier = first_failures.setdefault(run.training, failure)
                first_failures[run.training] = max(earlier, failure, key=lambda failed: failed.seconds)
        for failure in first_failures.values():
            total.add(failure)
            yield failure


def _failure(run: SettledRun) -> Failure | None:
    sent_ids = {
        id_
        for id_, outcomes in run.notifications.items()
        if any(outcome.decision.reason.sends for outcome in outcomes)
    }
    roots = [sent for sent in run.record.incidents if sent.id in sent_ids and sent.inhibited_by is None]
    if not roots:
        return None
    return Failure.from_incident(run.record, min(roots, key=lambda sent: (sent.attempt, sent.onset_step)))


def _week(time: float | None) -> str | None:
    if time is None or utc_text(time) is None:
        return None
    year, week, _ = datetime.fromtimestamp(time, UTC).isocalendar()
    return f"{year}-W{week:02}"
