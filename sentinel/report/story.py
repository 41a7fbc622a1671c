"""What a replay found, as plain data that every layout shares. All text is safe to show."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from detectors.api import Maturity
from detectors.severity import Severity
from sentinel import catalogue
from sentinel.alerts.evidence import evidence_rows
from sentinel.alerts.incident import Incident, State
from sentinel.alerts.wire import utc_text
from sentinel.catalogue import Entry
from sentinel.frames.curves import Curve
from sentinel.replay import Replay, ReplayedRun
from sentinel.report.json import document
from sentinel.report.told import told_lines
from sentinel.sinks.checkpoints import last_checkpoint
from sentinel.sinks.message import lasted, sentence
from sentinel.text import clean_text

_MOST_CAUSES = 4


@dataclass(frozen=True)
class Cause:
    """A catalogue entry that may be behind an incident. ``share`` is how likely it is among all, 0..1."""

    entry: Entry
    share: float
    because: str


@dataclass(frozen=True)
class IncidentStory:
    """An incident. ``life`` says in words from when to when it lasted."""

    id: str
    severity: Severity
    detector: str
    preview: bool
    headline: str
    life: str
    state: str
    onset_step: int
    fired_step: int
    resolved_step: int | None
    last_step: int | None
    fired_at: str  # in UTC; empty if not known
    evidence: Sequence[tuple[str, str]]
    causes: Sequence[Cause]
    told: Sequence[str]
    explained_by: str  # name of the detector; empty if the incident stands for itself
    checkpoint: str  # the last one from before the onset; empty if none is known
    tag: str


@dataclass(frozen=True)
class RunStory:
    """A run. ``tags`` are its tags by signal, those without a meaning under the empty name."""

    name: str
    path: str
    kind: str  # framework, else format
    state: str
    evidence: str  # for the state
    points: int
    first_step: int | None
    last_step: int | None
    planned_steps: int | None
    attempts: int
    incidents: Sequence[IncidentStory]
    tags: Mapping[str, Sequence[str]]
    curves: Mapping[str, Curve]
    judged_by: int  # detectors
    detectors: int  # in all
    blind: Sequence[tuple[str, Sequence[str]]]  # missing signals, and the detectors that need them
    settings: Sequence[tuple[str, str, str]]  # name, value, origin
    problems: Sequence[str]  # what could not be read or judged

    @property
    def worst(self) -> Severity:
        """The severity of the worst incident that stands for itself."""
        own = [one.severity for one in self.incidents if not one.explained_by]
        return max(own, default=Severity.CLEAN)


@dataclass(frozen=True)
class Story:
    """All runs, the worst first, and complaints that belong to none of them."""

    verdict: str
    runs: Sequence[RunStory]
    problems: Sequence[str]
    written_at: str  # in UTC


def story(replay: Replay, now: float) -> Story:
    """The story of a replay at a time of day in seconds since the epoch."""
    told = document(replay, now)["runs"]
    runs = [_run(run, shown, replay) for run, shown in zip(replay.runs, told, strict=True)]
    runs.sort(key=lambda run: -run.worst)
    problems = [clean_text(str(complaint), 500) for complaint in replay.complaints]
    return Story(verdict(runs), runs, problems, utc_text(now) or "")


def verdict(runs: Sequence[RunStory]) -> str:
    """What a person wants to know first, in a sentence or two."""
    own = [one for run in runs for one in run.incidents if not one.explained_by]
    counted = f"{_count(len(runs), 'run')} with {_count(sum(run.points for run in runs), 'point')}"
    if not own:
        able = (
            f"; {runs[0].judged_by} of {runs[0].detectors} detectors could judge it" if len(runs) == 1 else ""
        )
        return f"Nothing found in {counted}{able}."
    if len(runs) == 1:
        others = f" {_count(len(own) - 1, 'more incident')}." if len(own) > 1 else ""
        return f"{own[0].severity.label.capitalize()}: {own[0].headline}{others}"
    severities = [one.severity for one in own]
    parts = [f"{severities.count(s)} {s.label}" for s in sorted(set(severities), reverse=True)]
    troubled = sum(run.worst > Severity.CLEAN for run in runs)
    return f"{_count(len(own), 'incident')} ({', '.join(parts)}) in {troubled} of {counted}."


def _run(run: ReplayedRun, shown: Mapping[str, object], replay: Replay) -> RunStory:
    log, facts = run.tracker.log, run.tracker.log.facts
    understood, detectors = log.understanding(), replay.pipeline.detectors
    lacking = {n: one.demand.missing(understood.signals, log.no_clock) for n, one in detectors.items()}
    tags = {signal: [clean_text(tag) for tag in of] for signal, of in understood.signals.items()}
    if understood.unmapped:
        tags[""] = [clean_text(tag) for tag in understood.unmapped]
    incidents = sorted(run.incidents.values(), key=lambda one: (one.inhibited_by is not None, -one.severity))
    return RunStory(
        name=clean_text(log.name),
        path=clean_text(str(log.run.path), 1000),
        kind=understood.framework or log.run.format,
        state=str(shown["state"]),
        evidence=clean_text(str(shown["state_evidence"])),
        points=facts.points,
        first_step=facts.first_step,
        last_step=facts.last_step,
        planned_steps=None if log.planned_steps is None else int(log.planned_steps),
        attempts=log.attempts,
        incidents=[_incident(run, one) for one in incidents],
        tags=tags,
        curves={clean_text(tag): curve for tag, curve in run.curves.of.items()} if run.curves else {},
        judged_by=sum(not missing for missing in lacking.values()),
        detectors=len(detectors),
        blind=list(_blind(lacking)),
        settings=[
            (clean_text(name), clean_text(str(setting.value)), clean_text(setting.origin))
            for name, setting in sorted(facts.config.items())
        ],
        problems=[clean_text(problem, 500) for problem in _problems(run)],
    )


def _problems(run: ReplayedRun) -> Iterator[str]:
    if run.stopped:
        yield f"not judged to its end: {run.stopped}"
    yield from map(str, run.complaints)


def _blind(lacking: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Sequence[str]]]:
    by_signals: dict[str, list[str]] = {}
    for detector, missing in sorted(lacking.items()):
        if missing:
            by_signals.setdefault(" and ".join(missing), []).append(detector)
    yield from sorted(by_signals.items(), key=lambda item: -len(item[1]))


def _incident(run: ReplayedRun, incident: Incident) -> IncidentStory:
    cause = run.incidents.get(incident.inhibited_by or "")
    place = run.tracker.log.run.path
    found = isinstance(place, Path)
    return IncidentStory(
        id=incident.id,
        severity=incident.severity,
        detector=incident.detector,
        preview=incident.maturity is Maturity.PREVIEW,
        headline=sentence(incident.summary),
        life=_life(incident),
        state=incident.state.value,
        onset_step=incident.onset_step,
        fired_step=incident.fired_step,
        resolved_step=incident.resolved_step,
        last_step=incident.last_step,
        fired_at=utc_text(incident.fired_time) or "",
        evidence=evidence_rows(incident),
        causes=list(_causes(incident)),
        told=list(told_lines(run, incident)),
        explained_by=(cause.detector if cause else "another incident") if incident.inhibited_by else "",
        checkpoint=clean_text(last_checkpoint(str(place), incident.onset_step, incident.onset_time))
        if found
        else "",
        tag=clean_text(incident.tag),
    )


def _causes(incident: Incident) -> Iterator[Cause]:
    entries = catalogue.load()
    for one in incident.causes[:_MOST_CAUSES]:
        yield Cause(entries[one.id], one.score, clean_text(one.because, 400))


def _life(incident: Incident) -> str:
    last = incident.fired_step if incident.last_step is None else incident.last_step
    begun = f"since step {incident.onset_step:,}, found at step {incident.fired_step:,}"
    if incident.state is State.RESOLVED:
        return f"{begun}, over at step {incident.resolved_step:,} after {lasted(incident)}"
    return f"{begun}, still there at step {last:,} after {lasted(incident)}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'}"
