"""The machine-readable reports. `deploy/schema/` holds the JSON Schema of each.

``schema`` increases when a field changes its meaning or is removed. A new field does not change it. Times are
ISO 8601 in UTC, and what is not known is null.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NotRequired

from typing_extensions import TypedDict

from sentinel.incidents.json_body import IncidentBody, incident_body
from sentinel.notifications.routing import SinkDecision
from sentinel.replays.judged import JudgedRun
from sentinel.replays.replay import Replay
from sentinel.report.pair import PairBody
from sentinel.report.run_body import RunBody, absolute
from sentinel.report.siblings import SiblingsBody
from sentinel.runs.advisories import advisories
from sentinel.runs.continuations import observe, statuses
from sentinel.runs.log import RunOverview
from sentinel.runs.state import RunStatus
from sentinel.series.roles.outcome import Outcome

if TYPE_CHECKING:
    from sentinel.comparison.measures import Comparison
    from sentinel.replays.listing import ListedRun, Listing


class NotJudgedBody(TypedDict):
    """A detector that judged nothing of the run, and the signals that it lacks.

    If it lacks none, ``skipped`` says why it gave no verdict on any row, with the number of rows by reason.
    """

    detector: str
    missing: list[str]
    skipped: dict[str, int]


class CheckBody(TypedDict):
    """What in a run is worth a look: the reason, catalogue ids, and the settings that it rests on."""

    catalogue: list[str]
    reason: str
    settings: dict[str, float | str | bool]


class NotificationBody(TypedDict):
    """The decision whether a sink hears of an event of an incident, and the name of its reason."""

    sink: str
    event: str
    reason: str


class ReportedIncidentBody(IncidentBody):
    """An incident, and in ``notifications`` the decisions of the sinks about it, in order."""

    notifications: list[NotificationBody]


class OutcomeBody(TypedDict):
    """The series by which a reader judges the run, such as a metric of held-out data, and ``why`` it is that.

    ``direction`` is the one in which it is better: higher or lower. ``split`` is train or held-out, and
    ``unit`` share, percent, nats or own.
    """

    tag: str
    kind: str
    direction: str
    split: str
    unit: str
    why: str


class JudgedRunBody(RunBody):
    """A run whose log was read. ``judged_by`` of all ``detectors`` can judge it. ``signals`` holds the tags
    by what they mean, and ``unmapped`` the other tags. ``outcome`` is null for a run without one.
    """

    judged_by: int
    detectors: int
    signals: dict[str, list[str]]
    unmapped: list[str]
    outcome: OutcomeBody | None
    not_judged: list[NotJudgedBody]


class ReplayedRunBody(JudgedRunBody):
    """A run that was read to its end and judged. ``read_issues`` are about what could not be read."""

    read_issues: list[str]
    checks: list[CheckBody]
    incidents: list[ReportedIncidentBody]


class MeasureBody(TypedDict):
    """Where a signal ends and its best value, in the mean, by the value of the setting in which runs differ.

    ``bests`` is empty for a signal that runs are not judged by.
    ``spread`` is the standard deviation between equal runs; ``beyond_chance`` says whether the values differ
    by more than that lets expect. Both are null where no two runs are equal.
    """

    signal: str
    ends: dict[str, float]
    bests: dict[str, float]
    spread: float | None
    beyond_chance: bool | None


class FindingBody(TypedDict):
    """What a comparison shows, in a sentence, and the ids of the catalogue entries about it."""

    text: str
    catalogue: list[str]


class ComparisonBody(TypedDict):
    """Runs that differ in one setting; ``arms`` holds their names by its value.

    The setting "baseline" stands for a run beside its baseline.
    """

    setting: str
    arms: dict[str, list[str]]
    measures: list[MeasureBody]
    findings: list[FindingBody]


class CoverageBody(TypedDict):
    """How many runs were ``read``, how many of them were ``cut`` off before their end, and how many not read.

    They count all runs, also those without an incident that was asked for.
    """

    read: int
    cut: int
    unread: int


class ReplayBody(TypedDict):
    """`sentinel replay --format json`. ``read_issues`` are those that belong to no run.

    ``comparisons`` is empty without `--compare` and `--baseline`.
    """

    schema: Literal[1]
    coverage: CoverageBody
    runs: list[ReplayedRunBody]
    read_issues: list[str]
    comparisons: list[ComparisonBody]


class ComparedBody(TypedDict):
    """`sentinel compare --format json`. ``pair`` is null unless there are two runs."""

    schema: Literal[1]
    pair: PairBody | None
    comparisons: list[ComparisonBody]


class LineBody(ReplayedRunBody):
    """A line of `sentinel replay --format jsonl`: one run."""

    schema: Literal[1]


class SettingBody(TypedDict):
    """A setting of a run, and its origin: the format of the log, or the name of a file beside it."""

    value: float | int | str | bool | None
    origin: str


class ListedRunBody(JudgedRunBody):
    """A run that was found. If it was not read ``whole``, it may have more points and attempts."""

    whole: bool
    config: dict[str, SettingBody]


class ListingBody(TypedDict):
    """`sentinel runs --format json`. Only `--siblings` adds the groups of siblings."""

    schema: Literal[1]
    runs: list[ListedRunBody]
    read_issues: list[str]
    siblings: NotRequired[list[SiblingsBody]]


def document(replay: Replay, now: float) -> ReplayBody:
    """Return the whole replay. The states of the runs depend on the time of day ``now``."""
    coverage = replay.coverage
    return {
        "schema": 1,
        "coverage": {"read": coverage.read, "cut": coverage.cut, "unread": coverage.unread},
        "runs": [*_replayed_runs(replay, now)],
        "read_issues": [str(issue) for issue in replay.read_issues],
        "comparisons": [comparison_body(comparison) for comparison in replay.comparisons],
    }


def lines(replay: Replay, now: float) -> Iterator[LineBody]:
    """Yield the runs of a replay, one by one."""
    for body in _replayed_runs(replay, now):
        yield {"schema": 1, **body}


def listing_document(listing: "Listing") -> ListingBody:
    """Return the runs that were found."""
    return {
        "schema": 1,
        "runs": [_listed(run, listing.detectors) for run in listing.runs],
        "read_issues": [str(issue) for issue in listing.read_issues],
    }


def statuses_of(replay: Replay, now: float) -> list[RunStatus]:
    """Return the states of the runs of a replay at the time of day ``now``, in their order."""
    return statuses([observe(run.run_pipeline.log, True, now) for run in replay.runs])


def comparison_body(comparison: "Comparison") -> ComparisonBody:
    """Return what differs between runs that differ in one setting."""
    return {
        "setting": comparison.setting,
        "arms": {value: list(names) for value, names in comparison.arms.items()},
        "measures": [
            {
                "signal": measure.signal.value,
                "ends": dict(measure.ends),
                "bests": dict(measure.bests),
                "spread": measure.spread,
                "beyond_chance": measure.beyond_chance,
            }
            for measure in comparison.measures
        ],
        "findings": [
            {"text": finding.text, "catalogue": list(finding.catalogue)} for finding in comparison.findings
        ],
    }


def _replayed_runs(replay: Replay, now: float) -> Iterator[ReplayedRunBody]:
    for run, status in zip(replay.runs, statuses_of(replay, now), strict=True):
        yield _replayed(run, status, replay.trainings[run.run_pipeline.id])


def _replayed(run: JudgedRun, status: RunStatus, training: str) -> ReplayedRunBody:
    overview = run.run_pipeline.log.overview()
    lacking = run.lacking
    return {
        **run_body(overview, status, training, run.stopped, lacking, run.skipped(lacking)),
        "read_issues": [str(issue) for issue in run.read_issues],
        "checks": [
            {"catalogue": list(check.catalogue), "reason": check.reason, "settings": dict(check.settings)}
            for check in advisories(run.run_pipeline.log)
        ],
        "incidents": [
            {
                **incident_body(incident),
                "notifications": notification_bodies(run.notifications.get(incident.id, ())),
            }
            for incident in run.incidents.values()
        ],
    }


def notification_bodies(outcomes: Iterable[SinkDecision]) -> list[NotificationBody]:
    """Return the decision of each sink about an incident, in order."""
    decisions = ((outcome.sink, outcome.decision) for outcome in outcomes)
    return [
        {"sink": sink, "event": decision.event, "reason": decision.reason} for sink, decision in decisions
    ]


def _listed(run: "ListedRun", detectors: int) -> ListedRunBody:
    config = run.overview.metadata.config
    body = run_body(run.overview, run.status, run.training, run.stopped, run.lacking, {})
    body["judged_by"] = detectors - len(run.lacking)  # a listing keeps only what is lacking
    body["detectors"] = detectors
    return {
        **body,
        "whole": run.whole,
        "config": {
            name: {"value": setting.value, "origin": setting.origin} for name, setting in config.items()
        },
    }


def _outcome_body(outcome: Outcome) -> OutcomeBody:
    return {
        "tag": outcome.tag,
        "kind": outcome.kind,
        "direction": outcome.role.direction,
        "split": outcome.split,
        "unit": outcome.role.unit,
        "why": outcome.why,
    }


def run_body(
    run: RunOverview,
    status: RunStatus,
    training: str,
    stopped: str | None,
    lacking: Mapping[str, Sequence[str]],
    skipped: Mapping[str, Mapping[str, int]],
) -> JudgedRunBody:
    """Return a run with the signals that each detector lacks, and why detectors judged nothing."""
    understood = run.understanding
    return {
        "run": run.name,
        "display_name": run.metadata.label.name or None,
        "project": run.metadata.label.project or None,
        "path": absolute(run.path),
        "source": run.format,
        "framework": understood.framework,
        "training": training,
        "state": status.state,
        "state_evidence": status.evidence,
        "stopped": stopped,
        "judged_by": sum(not missing for missing in lacking.values()),
        "detectors": len(lacking),
        "points": run.metadata.points,
        "first_step": run.metadata.first_step,
        "last_step": run.metadata.last_step,
        "attempts": run.attempts,
        "signals": {signal: list(tags) for signal, tags in understood.signals.items()},
        "unmapped": list(understood.unmapped),
        "outcome": None if run.outcome is None else _outcome_body(run.outcome),
        "not_judged": [
            {"detector": name, "missing": list(missing), "skipped": dict(skipped.get(name, {}))}
            for name, missing in lacking.items()
            if missing or name in skipped
        ],
    }
