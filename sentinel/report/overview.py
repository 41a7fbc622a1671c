"""One screen about many logs: how many are in trouble, which ended unseen, and what cost the most."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nlargest

from sentinel.common.text import clean_text, counted, counted_runs, duration_text
from sentinel.detectors.severity import Severity
from sentinel.incidents.incident import Incident
from sentinel.replays.judged import JudgedRun
from sentinel.replays.replay import Replay
from sentinel.report.json import standings_of
from sentinel.runs.state import RunState, of_training
from sentinel.sources.base import ReadIssue
from sentinel.sources.discovery import unread_line

_MAX_LOSSES = 3
_UNSEEN = {
    RunState.CRASHED: "crashed",
    RunState.STALLED: "went silent",
    RunState.LOST: "went silent for good",
}
"""States of trainings that ended, or seem to have, without reaching what they were to do."""


@dataclass(frozen=True, order=True)
class Loss:
    """What a run spent since the first of its troubles that a sink would have been sent."""

    seconds: float  # 0 where the log has no times
    steps: int
    name: str = field(compare=False)
    worst: Incident = field(compare=False)


@dataclass
class Overview:
    """Counts over all runs, and the runs that lost most. Its size does not grow with the number of runs."""

    runs: int = 0
    logs: int = 0
    unread: int = 0
    severities: Counter[Severity] = field(default_factory=Counter)  # the worst one of each run
    states: Counter[RunState] = field(default_factory=Counter)
    losses: Sequence[Loss] = ()
    unread_files: Sequence[ReadIssue] = ()  # that look like logs

    def add(self, part: Replay, now: float) -> None:
        """Count the runs of one part of a replay at a time of day in seconds since the epoch."""
        readable = [run for run in part.runs if not run.unread]
        self.logs += len(readable)
        self.unread_files = [*self.unread_files, *part.unread]
        self.unread += len(part.runs) - len(readable) + len(part.read_issues)
        trainings: dict[str, list[JudgedRun]] = {}
        for run in readable:
            trainings.setdefault(part.trainings[run.run_pipeline.id], []).append(run)
        self.runs += len(trainings)
        self.severities.update(max(run.worst for run in logs) for logs in trainings.values())
        states = {
            run.run_pipeline.id: status.state
            for run, status in zip(part.runs, standings_of(part, now), strict=True)
        }
        self.states.update(
            of_training(states[run.run_pipeline.id] for run in logs) for logs in trainings.values()
        )
        spent = ([loss for run in logs if (loss := _loss(run))] for logs in trainings.values())
        worst = [max(losses) for losses in spent if losses]
        self.losses = nlargest(_MAX_LOSSES, [*self.losses, *worst])


def overview(parts: Iterable[Replay], now: float) -> Overview:
    """Return the overview of all parts of a replay."""
    whole = Overview()
    for part in parts:
        whole.add(part, now)
    return whole


def lines(whole: Overview, seconds: float, paths: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the screen: what was read in how many ``seconds``, the trouble, and the commands that show more.

    Each line comes with its indent.
    """
    counts = f"{counted_runs(whole.runs, whole.logs)} read in {duration_text(seconds)}"
    yield 0, f"{counts}: {_trouble(whole.severities)}"
    if unseen := [f"{n} {words}" for state, words in _UNSEEN.items() if (n := whole.states[state])]:
        yield 0, f"ended without reaching their end: {', '.join(unseen)}"
    if whole.unread:
        yield 0, f"could not be read: {whole.unread}"
    if line := unread_line(whole.unread_files):
        yield 0, clean_text(line, 500)
    if whole.losses:
        yield 0, ""
        yield 0, "What cost the most since its trouble began:"
    for loss in whole.losses:
        time = [duration_text(loss.seconds)] if loss.seconds >= 1 else []
        yield 2, f"{clean_text(loss.name)}  {', '.join([*time, counted(loss.steps, 'step')])}"
        yield 4, f"{loss.worst.severity.label} {loss.worst.detector}: {clean_text(loss.worst.summary)}"
    places = shlex.join(paths)
    yield 0, ""
    yield 0, "Next:"
    yield 2, f"sentinel replay {places} --format html -o report.html   # each run, its curves and causes"
    yield 2, f"sentinel watch {places}   # hear of the next trouble while it can be mended"


def _loss(run: JudgedRun) -> Loss | None:
    incidents = [incident for incident in run.own if incident.severity >= Severity.WARNING]
    if not incidents:
        return None
    metadata = run.run_pipeline.log.metadata
    onset_times = [incident.onset_time for incident in incidents if incident.onset_time is not None]
    seconds = 0.0
    if onset_times and metadata.last_time is not None:
        seconds = max(0.0, metadata.last_time - min(onset_times))
    steps = (metadata.last_step or 0) - min(incident.onset_step for incident in incidents)
    worst = max(incidents, key=lambda incident: (incident.severity, -incident.onset_step))
    return Loss(seconds, max(0, steps), run.run_pipeline.log.name, worst)


def _trouble(severities: Counter[Severity]) -> str:
    critical = severities[Severity.CRITICAL]
    warning = severities[Severity.WARNING]
    if not critical and not warning:
        return "no trouble found"
    return f"{critical} critical, {warning} with a warning, {severities.total() - critical - warning} quiet"
