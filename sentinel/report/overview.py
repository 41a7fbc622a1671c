"""One screen about many logs: how many are in trouble, which ended unseen, and what cost the most."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec
from typing_extensions import TypedDict

from sentinel.common.distinct_names import distinct
from sentinel.common.text import clean_text, counted, counted_runs, duration_text
from sentinel.detectors.severity import Severity
from sentinel.incidents.incident import Incident
from sentinel.incidents.json_body import IncidentBody, incident_body
from sentinel.replays.judged import JudgedRun
from sentinel.replays.replay import Replay
from sentinel.report.json import statuses_of
from sentinel.runs.state import RunState, of_training
from sentinel.sources.base import ReadIssue
from sentinel.sources.discovery import unread_line
from sentinel.sources.identity import Label

_MAX_CRITICAL = 6  # kinds of critical trouble that are shown
_MAX_LOSSES = 3
_MAX_NAME = 60  # characters of a run's name
_MIN_NAME = 12  # likewise, however narrow the terminal is
_END_WORDS = {
    RunState.CRASHED: "crashed",
    RunState.STALLED: "went silent before the end of the plan",
    RunState.SILENT: "silent, with nothing in the log that says whether it ended",
    RunState.LOST: "ended, with nothing in the log that says how",
}
"""States of trainings that ended, or seem to have, without saying that they reached what they were to do."""


@dataclass(frozen=True, order=True)
class Loss:
    """What a run spent since the first of its troubles that a sink would have been sent."""

    running: bool
    seconds: float  # 0 where the log has no times
    steps: int
    name: str = field(compare=False)
    label: Label = field(compare=False)
    worst: Incident = field(compare=False)

    @property
    def title(self) -> str:
        """The name of the run, and what a tracker calls it."""
        return self.label.beside(self.name)


class Kind(msgspec.Struct):
    """The runs with one kind of trouble, as siblings have."""

    worst: Loss
    runs: int


class Overview(msgspec.Struct):
    """Counts over all runs, and the runs that lost most. Its size does not grow with the number of runs."""

    runs: int = 0
    logs: int = 0
    unread: int = 0
    severities: Counter[Severity] = msgspec.field(default_factory=Counter)  # the worst one of each run
    states: Counter[RunState] = msgspec.field(default_factory=Counter)
    kinds: dict[tuple[str, ...], Kind] = msgspec.field(
        default_factory=dict
    )  # by severity, detector and variant
    unread_files: Sequence[ReadIssue] = ()  # that look like logs

    def add(self, replay: Replay, now: float) -> None:
        """Count the runs of one part of a replay at a time of day in seconds since the epoch."""
        readable = [run for run in replay.runs if not run.unread]
        self.logs += len(readable)
        self.unread_files = [*self.unread_files, *replay.unread]
        self.unread += len(replay.runs) - len(readable) + len(replay.read_issues)
        trainings: dict[str, list[JudgedRun]] = {}
        for run in readable:
            trainings.setdefault(replay.trainings[run.run_pipeline.id], []).append(run)
        self.runs += len(trainings)
        self.severities.update(max(run.worst for run in logs) for logs in trainings.values())
        states = {
            run.run_pipeline.id: status.state
            for run, status in zip(replay.runs, statuses_of(replay, now), strict=True)
        }
        self.states.update(
            of_training(states[run.run_pipeline.id] for run in logs) for logs in trainings.values()
        )
        for logs in trainings.values():
            losses = [loss for run in logs if (loss := _loss(run, states[run.run_pipeline.id]))]
            if losses:
                self._note_trouble(max(losses, key=lambda loss: (loss.worst.severity, loss)))

    def _note_trouble(self, loss: Loss) -> None:
        incident = loss.worst
        trouble_kind = self.kinds.setdefault(
            (incident.severity.label, incident.detector, incident.variant), Kind(loss, 0)
        )
        trouble_kind.worst = max(trouble_kind.worst, loss)
        trouble_kind.runs += 1


def overview(replays: Iterable[Replay], now: float) -> Overview:
    summary = Overview()
    for replay in replays:
        summary.add(replay, now)
    return summary


class TroubleBody(TypedDict):
    """One kind of trouble, in how many runs, and the run that lost most by it.

    ``lost_seconds`` is null where the log has no times. ``display_name`` and ``project`` are what a tracker
    calls the run, null without one.
    """

    severity: str
    detector: str
    runs: int
    run: str
    display_name: str | None
    project: str | None
    running: bool
    lost_seconds: float | None
    lost_steps: int
    incident: IncidentBody


class OverviewBody(TypedDict):
    """`sentinel PATH --format json`. ``severities`` counts runs by their worst incident, and ``states`` by
    how they stand. The costliest trouble comes first.
    """

    schema: Literal[1]
    runs: int
    logs: int
    unread: int
    severities: dict[str, int]
    states: dict[str, int]
    troubles: list[TroubleBody]


def overview_body(summary: Overview) -> OverviewBody:
    """Return the screen as one object."""
    ordered = sorted(summary.kinds.values(), key=lambda kind: kind.worst, reverse=True)
    return {
        "schema": 1,
        "runs": summary.runs,
        "logs": summary.logs,
        "unread": summary.unread,
        "severities": {severity.label: count for severity, count in summary.severities.items()},
        "states": {state.value: count for state, count in summary.states.items()},
        "troubles": [_trouble_body(kind) for kind in ordered],
    }


def _trouble_body(trouble_kind: Kind) -> TroubleBody:
    loss = trouble_kind.worst
    return {
        "severity": loss.worst.severity.label,
        "detector": loss.worst.detector,
        "runs": trouble_kind.runs,
        "run": loss.name,
        "display_name": loss.label.name or None,
        "project": loss.label.project or None,
        "running": loss.running,
        "lost_seconds": loss.seconds or None,
        "lost_steps": loss.steps,
        "incident": incident_body(loss.worst),
    }


def lines(
    summary: Overview, seconds: float, paths: Sequence[str], width: int | None = None
) -> Iterator[tuple[int, str]]:
    """Yield the screen: what was read in how many ``seconds``, the trouble, and the commands that show more.

    Each line comes with its indent. On a terminal of that ``width`` each run has one line.
    """
    read_text = f"{counted_runs(summary.runs, summary.logs)} read in {duration_text(seconds)}"
    yield 0, f"{read_text}: {_trouble(summary.severities)}"
    for run_state, words in _END_WORDS.items():
        if state_count := summary.states[run_state]:
            yield 0, f"{state_count} {words}"
    if summary.unread:
        yield 0, f"could not be read: {summary.unread}"
    if unread_text := unread_line(summary.unread_files):
        yield 0, clean_text(unread_text, 500)
    ordered = sorted(summary.kinds.values(), key=lambda kind: kind.worst, reverse=True)
    critical = [kind for kind in ordered if kind.worst.worst.severity >= Severity.CRITICAL]
    milder_kinds = [kind for kind in ordered if kind.worst.worst.severity < Severity.CRITICAL]
    yield from _section("Critical", critical, _MAX_CRITICAL, width)
    yield from _section("Warnings that cost the most", milder_kinds, _MAX_LOSSES, width)
    quoted_paths = shlex.join(paths)
    yield 0, ""
    yield 0, "Next:"
    yield 2, f"sentinel replay {quoted_paths} -o report.html   # each run, its curves and causes"
    yield 2, f"sentinel watch {quoted_paths}   # hear of the next trouble while it can be mended"


def _section(title: str, kinds: Sequence[Kind], most: int, width: int | None) -> Iterator[tuple[int, str]]:
    """Yield the runs with some kinds of trouble: a run that goes on first, then what cost the most."""
    if not kinds:
        return
    yield 0, ""
    yield 0, f"{title}:"
    facts = [_facts(kind) for kind in kinds[:most]]
    room = _MAX_NAME if width is None else max(_MIN_NAME, width - 2 - max(map(len, facts)))
    trouble_titles = distinct([clean_text(kind.worst.title) for kind in kinds[:most]], min(room, _MAX_NAME))
    for kind, name, fact in zip(kinds[:most], trouble_titles, facts, strict=True):
        loss = kind.worst
        yield 2, f"{name}{fact}"
        yield 4, f"{loss.worst.detector}: {clean_text(loss.worst.latest or loss.worst.summary)}"
    if further_runs := sum(kind.runs for kind in kinds[most:]):
        yield (
            2,
            f"and {counted(further_runs, 'run')} with {counted(len(kinds) - most, 'other kind')} of trouble",
        )


def _facts(trouble_kind: Kind) -> str:
    """Return what stands behind the name of the run that lost most by a kind of trouble."""
    loss = trouble_kind.worst
    like_it = f" and {counted(trouble_kind.runs - 1, 'run')} like it" if trouble_kind.runs > 1 else ""
    run_state = ["still running"] if loss.running else []
    time = [duration_text(loss.seconds)] if loss.seconds >= 1 else []
    return f"{like_it}  for {', '.join([counted(loss.steps, 'step'), *time, *run_state])}"


def _loss(run: JudgedRun, run_state: RunState) -> Loss | None:
    incidents = [incident for incident in run.own if incident.severity >= Severity.WARNING]
    if not incidents:
        return None
    log = run.run_pipeline.log
    metadata = log.metadata
    onset_times = [incident.onset_time for incident in incidents if incident.onset_time is not None]
    seconds = 0.0
    if onset_times and metadata.last_time is not None:
        seconds = max(0.0, metadata.last_time - min(onset_times))
    steps = (metadata.last_step or 0) - min(incident.onset_step for incident in incidents)
    worst = max(incidents, key=lambda incident: (incident.severity, -incident.onset_step))
    return Loss(run_state is RunState.RUNNING, seconds, max(0, steps), log.name, log.metadata.label, worst)


def _trouble(severities: Counter[Severity]) -> str:
    critical = severities[Severity.CRITICAL]
    warning = severities[Severity.WARNING]
    if not critical and not warning:
        return "no trouble found"
    return f"{critical} critical, {warning} with a warning, {severities.total() - critical - warning} quiet"
