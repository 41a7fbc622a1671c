"""A replay for a person: what went wrong, since when, the evidence, what to try, and the cost."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from detectors.api import Maturity, Severity
from sentinel import catalogue
from sentinel.alerts.evidence import evidence_rows
from sentinel.alerts.incident import Incident, State
from sentinel.alerts.outcomes import cost
from sentinel.frames.excerpt import Excerpt, Number
from sentinel.replay import Replay, ReplayedRun
from sentinel.report.checks import checks
from sentinel.report.comparisons import statements, title
from sentinel.report.sparkline import marks, sparkline
from sentinel.report.told import told_lines
from sentinel.text import clean_text

_STYLES = {Severity.INFO: "cyan", Severity.WARNING: "yellow", Severity.CRITICAL: "bold red"}
_MOST_CAUSES = 3


def show(replay: Replay, console: Console | None = None) -> None:
    """Print the report: runs with incidents first in full, then the others in a line each."""
    console = console or Console(highlight=False)
    troubled = [run for run in replay.runs if run.incidents]
    for run in troubled:
        console.print(Group(*_run(run)))
    quiet = [run for run in replay.runs if not run.incidents]
    for run in quiet:
        console.print(Text.assemble(_mark(run), _headline(run), f"; {_judged(run, replay)} could judge it"))
    if len(replay.runs) == len(quiet) == 1:
        console.print(*_checks(quiet[0]), end="")
    if lacking := ", ".join(_not_judged(replay)):
        console.print(Text(f"not judged: {lacking}", "dim"))
    for complaint in [*replay.complaints, *(c for run in replay.runs for c in run.complaints)]:
        console.print(Text(f"unreadable: {clean_text(str(complaint), 500)}", "yellow"))
    for run in replay.runs:
        if run.stopped:
            name = clean_text(run.tracker.log.name)
            console.print(Text(f"judging stopped: {name}, {clean_text(run.stopped, 500)}", "yellow"))
    if len(troubled) > 1:
        console.print(_overview(troubled))
    for comparison in replay.comparisons:
        console.print(Text(title(comparison), "bold"))
        console.print(Padding(Group(*map(Text, statements(comparison))), (0, 0, 1, 2)))
    console.print(_verdict(replay, len(troubled)))


def _mark(run: ReplayedRun) -> tuple[str, str]:
    if run.unread:
        return "could not be read  ", "yellow"
    return ("not judged to its end  ", "yellow") if run.stopped else ("nothing found  ", "green")


def _run(run: ReplayedRun) -> Iterator[RenderableType]:
    yield Text.assemble((_headline(run), "bold"))
    told = sorted(run.incidents.values(), key=lambda i: (i.inhibited_by is not None, i.fired_step))
    for incident in told:
        yield Padding(Group(*_incident(run, incident)), (0, 0, 1, 2))
    yield from _checks(run)


def _checks(run: ReplayedRun) -> Iterator[RenderableType]:
    """What the settings and the console lines of a run give reason to read."""
    if found := checks(run.tracker.log):
        yield Padding(
            _table("worth a look", [(", ".join(one.catalogue), str(one)) for one in found]), (0, 0, 1, 2)
        )


def _incident(run: ReplayedRun, incident: Incident) -> Iterator[RenderableType]:
    style = _STYLES[incident.severity]
    preview = " (preview)" if incident.maturity is Maturity.PREVIEW else ""
    yield Text.assemble(
        (f"{incident.severity.label} ", style),
        (f"{incident.detector}{preview}", "bold"),
        f"  {_life(incident)}",
    )
    if incident.inhibited_by is not None:
        cause = run.incidents.get(incident.inhibited_by)
        yield Text(f"  not told: explained by {cause.detector if cause else incident.inhibited_by}", "dim")
        return
    yield Text(clean_text(incident.summary, 1000))
    for line in told_lines(run, incident):
        yield Text(line, "dim")
    if known := run.tracker.excerpts(incident):
        yield from _picture(incident, *known)
    if spent := cost(incident):
        yield Text(f"cost so far: {spent} since onset")
    yield _table("evidence", evidence_rows(incident))
    yield _table("what to try", [*_causes(incident)])


def _causes(incident: Incident) -> Iterator[tuple[str, str]]:
    """The likeliest causes: what speaks for each, what to try, and the check that tells."""
    entries = catalogue.load()
    for cause in incident.causes[:_MOST_CAUSES]:
        entry, because = entries[cause.id], f": {cause.because}" if cause.because else ""
        likely = f"{entry.title} ({cause.score:.0%}{because})"
        yield cause.id, f"{likely}. {entry.fix} To tell: {entry.check}"


def _life(incident: Incident) -> str:
    told = f"onset at step {incident.onset_step}, fired at {incident.fired_step}"
    if incident.state is State.RESOLVED:
        return f"{told}, resolved at {incident.resolved_step}"
    return f"{told}, still there at {incident.last_step}"


def _picture(incident: Incident, judged: Excerpt, *others: Excerpt) -> Iterator[Text]:
    """The signals over the attempt, and below them the steps at which the incident began, fired and ended."""
    steps, legend = [(incident.onset_step, "o"), (incident.fired_step, "!")], "o onset, ! fired"
    if incident.resolved_step is not None:
        steps.append((incident.resolved_step, "x"))
        legend += ", x resolved"
    style = _STYLES[incident.severity]
    yield _line(clean_text(incident.tag, 60), judged.mean, [*judged.low, *judged.high], style)
    for other in others:
        yield _line(other.label, other.mean, other.mean, "dim")
    yield Text(f"{marks(judged.step, steps):{len(judged.step)}}  from step {judged.step[0]}: {legend}", "dim")


def _line(name: str, mean: Sequence[Number], span: Sequence[Number], style: str) -> Text:
    known = [value for value in span if value is not None]
    drawn = sparkline([math.nan if value is None else value for value in mean])
    told = f", {min(known):.4g} to {max(known):.4g}" if known else ""
    return Text.assemble((drawn, style), (f"  {name}{told}", "dim" if style == "dim" else ""))


def _table(title: str, rows: Sequence[tuple[str, str]]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for number, (name, value) in enumerate(rows):
        table.add_row(Text("" if number else title, "dim"), Text(name), Text(clean_text(value, 1000)))
    return table


def _headline(run: ReplayedRun) -> str:
    log, facts = run.tracker.log, run.tracker.log.facts
    framework = log.understanding().framework or log.run.format
    attempts = f", {log.attempts} attempts" if log.attempts > 1 else ""
    steps = f"steps {facts.first_step} to {facts.last_step}" if facts.points else "no points"
    return f"{clean_text(log.name)}  {framework}, {steps}, {facts.points} points{attempts}"


def _judged(run: ReplayedRun, replay: Replay) -> str:
    """How many of the detectors found the signals that they need."""
    log, detectors = run.tracker.log, replay.pipeline.detectors.values()
    signals = log.understanding().signals
    able = sum(not detector.demand.missing(signals, log.no_clock) for detector in detectors)
    return f"{able} of {_count(len(detectors), 'detector')}"


def _not_judged(replay: Replay) -> Iterator[str]:
    """The detectors that lack a signal, by that signal, with the number of runs where not all lack it."""
    lacking: Counter[tuple[str, str]] = Counter()
    for run in replay.runs:
        log, understood = run.tracker.log, run.tracker.log.understanding()
        for name, detector in replay.pipeline.detectors.items():
            if missing := detector.demand.missing(understood.signals, log.no_clock):
                lacking[" and ".join(missing), name] += 1
    blind: dict[tuple[str, int], list[str]] = {}
    for (signals, name), runs in sorted(lacking.items()):
        blind.setdefault((signals, runs), []).append(name)
    for (signals, runs), names in blind.items():
        where = "" if runs == len(replay.runs) else f" in {runs} of {len(replay.runs)} runs"
        yield f"no {signals}{where} ({', '.join(names)})"


def _overview(troubled: Sequence[ReplayedRun]) -> RenderableType:
    """A line for each incident that is sent, the worst first."""
    sent = [(i, run) for run in troubled for i in run.incidents.values() if i.inhibited_by is None]
    table = Table.grid(padding=(0, 2))
    for incident, run in sorted(sent, key=lambda one: -one[0].severity):
        severity = Text(incident.severity.label, _STYLES[incident.severity])
        name = Text(clean_text(run.tracker.log.name))
        table.add_row(severity, Text(incident.detector, "bold"), name, f"step {incident.fired_step}")
    return table


def _verdict(replay: Replay, troubled: int) -> Text:
    incidents = [i for run in replay.runs for i in run.incidents.values() if i.inhibited_by is None]
    points = sum(run.tracker.log.facts.points for run in replay.runs)
    counted = f"{_count(len(replay.runs), 'run')}, {_count(points, 'point')}: "
    if not incidents:
        able = f"; {_judged(replay.runs[0], replay)} could judge it" if len(replay.runs) == 1 else ""
        return Text(f"{counted}nothing found{able}", "green")
    return Text(f"{counted}{_count(len(incidents), 'incident')} in {_count(troubled, 'run')}", "bold")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
