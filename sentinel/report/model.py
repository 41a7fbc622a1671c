"""What a replay found, as plain data that every layout shares. All text is safe to show."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from sentinel.common.text import clean_text, counted, counted_runs, duration_text, sentence
from sentinel.detectors.api import Cause
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.logging_snippets import PROBE, line_for
from sentinel.detectors.run_checks import SiblingRange
from sentinel.detectors.severity import Severity
from sentinel.incidents.incident import Incident, began_first, drawn_onsets
from sentinel.incidents.json_body import clock_text
from sentinel.replays.coverage import Coverage
from sentinel.replays.judged import JudgedRun
from sentinel.replays.replay import Replay
from sentinel.report.checkpoint_choice import Keep, checkpoint_to_keep
from sentinel.report.comparisons import statements, title
from sentinel.report.incident_model import IncidentReport, incident_report, notification_lines
from sentinel.report.json import statuses_of
from sentinel.report.samples import Samples
from sentinel.report.selection import ORDERS, Order
from sentinel.runs.advisories import advisories
from sentinel.runs.fit import Fit, fit
from sentinel.runs.log import RunLog
from sentinel.runs.state import GOING_ON, RunState, RunStatus
from sentinel.series.curves import Curve
from sentinel.series.thumbnails import OBJECTIVES, Lead, onset_in
from sentinel.sinks.checkpoints import checkpoints
from sentinel.sinks.message import gpu_hours

MAX_IN_FULL = 300
"""Runs of a report that keep their curves."""

_PROBED = "what is seen only from inside the training"
_PROBE_LINE = f"{PROBE})  # then probe.step() after each step"
_PROBE_PAGES = "sentinel explain --list probes  # which numbers that logs, and what some need"
_LEAD_POINTS = 60  # of the curve in the table of runs
_MAX_SAMPLED = 3  # incidents of a run whose texts, images and console lines are shown


class Blind(msgspec.Struct, frozen=True):
    """Signals that a run lacks, the detectors that need them, and the lines that would log them."""

    signals: str
    detectors: Sequence[str]
    lines: Sequence[str]


class RunReport(msgspec.Struct, frozen=True):
    """A run. ``tags`` are its tags by signal, those without a meaning under the empty name."""

    name: str
    title: str  # its name, and what a tracker calls it
    path: str
    training: str  # the same in all logs of one training
    kind: str  # framework, else format
    state: str
    evidence: str  # for the state
    points: int
    first_step: int | None
    last_step: int | None
    planned_steps: int | None
    first_time: float | None  # of its points, in seconds since the epoch
    last_time: float | None
    lasted: float | None  # seconds
    to_go: float | None  # seconds to the planned end, of a run that goes on
    attempts: int
    incidents: Sequence[IncidentReport]
    tags: Mapping[str, Sequence[str]]
    curves: Mapping[str, Curve]
    siblings: Mapping[str, SiblingRange]  # the band of healthy siblings by tag, if the run has some
    lead: Lead
    outcome: tuple[
        str, str
    ]  # the tag by which a reader judges the run and its better direction; may be empty
    constant: Sequence[tuple[str, float]]  # tags whose value never changes, and that value
    fit: Fit  # of the detectors
    judged_by: int  # detectors
    detectors: int  # in all
    blind: Sequence[Blind]
    skipped: Sequence[tuple[str, Sequence[str]]]  # reasons, and detectors that judged nothing for them
    settings: Sequence[tuple[str, str, str]]  # name, value, origin
    advisories: Sequence[tuple[Sequence[str], str]]  # what is worth a look: catalogue ids and the reason
    keep: Keep | None
    checkpoints: Sequence[int]  # steps of those on disk
    cost: str  # of the trouble: from the first onset to the end; empty if nothing was found
    problems: Sequence[str]  # what could not be read or judged

    @property
    def goes_on(self) -> bool:
        """Whether more is expected of it."""
        return self.state in GOING_ON

    @property
    def found(self) -> Sequence[str]:
        """The detectors of the incidents that stand for themselves."""
        return [*dict.fromkeys(incident.detector for incident in self.incidents if not incident.explained_by)]

    @property
    def worst(self) -> Severity:
        """The severity of the worst incident that stands for itself."""
        severities = [incident.severity for incident in self.incidents if not incident.explained_by]
        return max(severities, default=Severity.CLEAN)


class ReplayReport(msgspec.Struct, frozen=True):
    """All runs, in the requested order, and read issues that belong to none of them."""

    verdict: str
    coverage: str  # how many logs were read and how many not, and of how many detectors the verdict speaks
    kinds: Sequence[tuple[str, int]]  # detectors and how many incidents each found, the most first
    selection: str  # which incidents these are, if not all
    runs: Sequence[RunReport]
    problems: Sequence[str]
    comparisons: Sequence[
        tuple[str, Sequence[str]]
    ]  # of runs that differ in one setting: title and sentences
    written_at: str  # in UTC


def replay_report(replays: Iterable[Replay], now: float, order: Order) -> ReplayReport:
    """Return the report of the parts of a replay at a time of day in seconds since the epoch.

    Only the first `MAX_IN_FULL` runs in this order keep their curves.
    """
    keyed: list[tuple[Any, RunReport]] = []
    problems: list[str] = []
    compared: list[tuple[str, Sequence[str]]] = []
    selection = ""
    coverage: Coverage | None = None
    for replay in replays:
        run_statuses = statuses_of(replay, now)
        keyed += [
            (ORDERS[order](run), run_report(run, status, replay.trainings[run.run_pipeline.id], Samples()))
            for run, status in zip(replay.runs, run_statuses, strict=True)
        ]
        keyed.sort(key=lambda pair: pair[0])
        keyed[MAX_IN_FULL:] = [
            (key, replace(run, curves={}, siblings={})) for key, run in keyed[MAX_IN_FULL:]
        ]
        problems += [clean_text(str(issue), 500) for issue in replay.read_issues]
        compared += [(title(comparison), [*statements(comparison)]) for comparison in replay.comparisons]
        selection = replay.selection
        coverage = coverage + replay.coverage if coverage else replay.coverage
    runs = [run for _, run in keyed]
    report = report_of_runs(runs, sentence(str(coverage or "")), now)
    return replace(report, selection=selection, problems=problems, comparisons=compared)


def report_of_runs(runs: Sequence[RunReport], coverage: str, now: float) -> ReplayReport:
    """Return the report of runs in this order, without read issues."""
    kinds = Counter(
        incident.detector for run in runs for incident in run.incidents if not incident.explained_by
    )
    return ReplayReport(verdict(runs), coverage, kinds.most_common(), "", runs, [], [], clock_text(now))


def verdict(runs: Sequence[RunReport]) -> str:
    """Return what a person wants to know first, in a sentence or two."""
    roots = [incident for run in runs for incident in run.incidents if not incident.explained_by]
    trainings = {run.training for run in runs}
    whole = (
        f"{counted_runs(len(trainings), len(runs))} with {counted(sum(run.points for run in runs), 'point')}"
    )
    if not roots:
        return f"Nothing found in {whole}."
    if len(runs) == 1:
        more_incidents = f" {counted(len(roots) - 1, 'more incident')}." if len(roots) > 1 else ""
        return f"{roots[0].severity.label.capitalize()}: {roots[0].headline}{more_incidents}"
    severities = [incident.severity for incident in roots]
    verdict_parts = [
        f"{severities.count(severity)} {severity.label}" for severity in sorted(set(severities), reverse=True)
    ]
    affected = {run.training for run in runs if run.worst > Severity.CLEAN}
    return f"{counted(len(roots), 'incident')} ({', '.join(verdict_parts)}) in {len(affected)} of {whole}."


def run_report(run: JudgedRun, status: RunStatus, training: str, samples: Samples) -> RunReport:
    """Return the report of a run in this state. ``training`` is the id of the first log of its training."""
    log = run.run_pipeline.log
    metadata = run.run_pipeline.log.metadata
    understanding = log.understanding()
    outcome = log.outcome()
    lacking = run.lacking
    tags = {signal: [clean_text(tag) for tag in names] for signal, names in understanding.signals.items()}
    if understanding.unmapped:
        tags[""] = [clean_text(tag) for tag in understanding.unmapped]
    curves = run.curves.of if run.curves else {}
    incidents = sorted(
        run.incidents.values(), key=lambda incident: (incident.inhibited_by is not None, -incident.severity)
    )
    samples.add(log, incidents[:_MAX_SAMPLED])
    local_path = str(log.run.local or "")
    run_path = log.run.path if isinstance(log.run.path, Path) else None
    return RunReport(
        name=clean_text(log.name),
        title=clean_text(log.title),
        training=training,
        path=clean_text(str(log.run.path), 1000),
        kind=understanding.framework or log.run.format,
        state=status.state.value,
        evidence=clean_text(status.evidence),
        points=metadata.points,
        first_step=metadata.first_step,
        last_step=metadata.last_step,
        planned_steps=None if log.planned_steps is None else int(log.planned_steps),
        first_time=metadata.first_time,
        last_time=metadata.last_time,
        lasted=metadata.lasted_seconds,
        to_go=metadata.seconds_to_go(log.planned_steps) if status.state is RunState.RUNNING else None,
        attempts=log.attempts,
        incidents=[
            incident_report(
                incident,
                run.incidents,
                run_path,
                [*notification_lines(run, incident)],
                *samples.near(incident),
            )
            for incident in incidents
        ],
        tags=tags,
        curves={clean_text(tag): curve for tag, curve in curves.items()},
        siblings={clean_text(tag): band for tag, band in (run.among.bands if run.among else {}).items()},
        outcome=("", "") if outcome is None else (clean_text(outcome.tag), outcome.role.direction),
        lead=_lead(incidents, log, curves),
        constant=[
            (clean_text(tag), value)
            for tag, curve in curves.items()
            if (value := curve.only_value) is not None
            and tag not in {incident.drawn_tag for incident in incidents}
        ],
        fit=fit(understanding.signals, lacking, len(lacking)),
        judged_by=sum(not missing for missing in lacking.values()),
        detectors=len(lacking),
        blind=list(_blind(lacking, understanding.framework or "")),
        skipped=[*_skipped(run.skipped(lacking)).items()],
        settings=[
            (clean_text(name), clean_text(str(setting.value)), clean_text(setting.origin))
            for name, setting in sorted(metadata.config.items())
        ],
        advisories=[(check.catalogue, clean_text(str(check), 500)) for check in advisories(log)],
        keep=checkpoint_to_keep(
            local_path,
            understanding.signals,
            curves,
            metadata.config,
            metadata.last_time,
            _damaged_since(run),
        )
        if local_path
        else None,
        checkpoints=sorted({step for step, _ in checkpoints(local_path) if step is not None})
        if local_path
        else [],
        cost=_cost_of(run),
        problems=[clean_text(problem, 500) for problem in (*_problems(run), *samples.problems)],
    )


def _lead(incidents: Sequence[Incident], log: RunLog, curves: Mapping[str, Curve]) -> Lead:
    """Return the curve of the worst incident's tag, else that of the objective."""
    understood = log.understanding()
    onsets = drawn_onsets(incidents)
    objective_tags = (tag for signal in OBJECTIVES for tag in understood.signals.get(signal, ()))
    tag = next((tag for tag in (*onsets, *objective_tags) if tag in curves), "")
    if not tag:
        return Lead()
    points = curves[tag].points(_LEAD_POINTS)
    onset = onset_in([point.step for point in points], onsets.get(tag))
    program = (understood.framework or log.run.format, frozenset(understood.tags))
    return Lead(clean_text(tag, 60), [point.value for point in points], program, onset)


def _damaged_since(run: JudgedRun) -> int | None:
    """Return the step from which on no checkpoint counts: where the first incident of a run began that sinks
    are sent by default. One about an evaluation damages no weights, and the checkpoints are compared by
    their evaluations.
    """
    notable = [
        incident
        for incident in run.own
        if incident.open and incident.severity > Severity.INFO and not _is_of_evaluation(incident)
    ]
    return min((began_first(incident, notable).onset_step for incident in notable), default=None)


def _is_of_evaluation(incident: Incident) -> bool:
    detector = all_detectors().get(incident.detector)
    return detector is not None and detector.cause is Cause.EVALUATION


def _cost_of(run: JudgedRun) -> str:
    """Return what the run spent from the first onset of its own incidents to its end."""
    metadata = run.run_pipeline.log.metadata
    open_ = [incident for incident in run.own if incident.severity > Severity.INFO and incident.open]
    if not open_ or metadata.last_step is None:
        return ""
    first_incident = min(open_, key=lambda incident: incident.onset_step)
    steps = metadata.last_step - first_incident.onset_step
    length = metadata.last_step - (metadata.first_step or 0)
    cost_parts = [f"{steps:,} of {length:,} steps"] if steps > 0 else []
    begin = first_incident.onset_time
    end = metadata.last_time
    if begin is not None and end is not None and end - begin >= 1.0:
        cost_parts.append(duration_text(end - begin))
        whole_incident = first_incident.replace(last_time=end)
        cost_parts.append(
            gpu_hours(whole_incident, run.run_pipeline.described().world_size).partition(" (")[0]
        )
    return (
        f"{', '.join(filter(None, cost_parts))} since step {first_incident.onset_step:,}"
        if any(cost_parts)
        else ""
    )


def _problems(run: JudgedRun) -> Iterator[str]:
    if run.stopped:
        yield f"not judged to its end: {run.stopped}"
    yield from map(str, run.read_issues)


def _blind(lacking: Mapping[str, Sequence[str]], framework: str) -> Iterator[Blind]:
    """Yield what the detectors lack: first in one row all that one line of `sentinel.probe` would log, then
    what most detectors lack.
    """
    by_signals: dict[tuple[str, ...], list[str]] = {}
    for detector, missing in sorted(lacking.items()):
        if missing:
            by_signals.setdefault(tuple(missing), []).append(detector)
    probed: list[str] = []
    blind = []
    for signals, detectors in by_signals.items():
        probe_lines = [line for signal in signals if (line := line_for(signal, framework))]
        if any(line.startswith(PROBE) for line in probe_lines):
            probed += detectors
        else:
            blind.append(Blind(" and ".join(signals), detectors, probe_lines))
    if probed:
        yield Blind(_PROBED, sorted(probed), [_PROBE_LINE, _PROBE_PAGES])
    yield from sorted(blind, key=lambda lack: -len(lack.detectors))


def _skipped(reasons: Mapping[str, Mapping[str, int]]) -> dict[str, list[str]]:
    by_reason: dict[str, list[str]] = {}
    for detector, skipped_rows in sorted(reasons.items()):
        by_reason.setdefault(" and ".join(skipped_rows), []).append(detector)
    return by_reason
