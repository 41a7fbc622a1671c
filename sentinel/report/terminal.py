"""A replay for a person: what went wrong, since when, the evidence, what to try, and the cost."""

import io
import math
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TextIO

import msgspec
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sentinel import catalogue
from sentinel.common.distinct_names import distinct
from sentinel.common.text import clean_text, counted, counted_runs, elided
from sentinel.detectors.api import Maturity, Severity
from sentinel.incidents.causes import share
from sentinel.incidents.incident import Incident, State
from sentinel.notifications.routing import cost
from sentinel.replays.judged import JudgedRun
from sentinel.replays.replay import Replay
from sentinel.report.comparisons import statements, title
from sentinel.report.evidence import evidence_rows
from sentinel.report.incident_model import WOULD_BE_SENT, notification_lines
from sentinel.report.sparkline import marks, sparkline
from sentinel.runs.advisories import advisories
from sentinel.runs.fit import Fit, fit
from sentinel.series.excerpt import Excerpt, Number
from sentinel.sources.discovery import unread_line

_SEVERITY_STYLES = {Severity.INFO: "cyan", Severity.WARNING: "yellow", Severity.CRITICAL: "bold red"}
_MAX_CAUSES = 3
_MAX_SUMMARY_ROWS = 15
_MANY_EQUAL = 3  # incidents that share a row of the summary
_SUMMARY_PADDING = 6  # columns between the four of the summary
_MAX_NAME = 40  # characters of the name of another run
_MIN_NAME = 12  # characters of a name in the summary, however narrow the terminal is
_Reasons = Mapping[str, Collection[str]]
"""Why detectors judged nothing, by their names; no reason for those that judged."""

_MAX_COLUMNS = 1_000_000  # of what is no terminal; no line is as long


def show(replay: Replay, file: TextIO, details: bool = False) -> None:
    """Write the report: of many runs one screen first, then runs with incidents, then a line for each other.

    What runs of one training program have in common stands with the first of them. With ``details`` it stands
    with each, and the report names each detector that could not judge a run, and why.
    Lines are as wide as the terminal. Elsewhere they are never folded or padded, unless ``COLUMNS`` is set.
    """
    if file.isatty() or "COLUMNS" in os.environ:
        console = Console(file=file, highlight=False)
        console.print(Group(*_report(replay, details, console.width)))
        return
    out = io.StringIO()
    Console(file=out, highlight=False, width=_MAX_COLUMNS).print(
        Group(*_report(replay, details, _MAX_COLUMNS))
    )
    file.writelines(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _report(replay: Replay, details: bool, width: int) -> Iterator[RenderableType]:
    with_incidents = [run for run in replay.runs if run.incidents]
    if len(with_incidents) > 1:
        yield from _replay_summary(replay, with_incidents, width)
    first_of_kind: dict[_Kind, str] = {}
    for run in with_incidents:
        yield from _run_lines(run, {} if details else first_of_kind)
    without_incidents = [run for run in replay.runs if not run.incidents]
    for run in without_incidents:
        yield Text.assemble(_mark(run), _headline(run), f"; {_able_count(run)} could judge it")
    if len(replay.runs) == len(without_incidents) == 1:
        yield from _advisories(without_incidents[0])
    if details:
        yield from _blind_spots(replay.runs)
    yield from _unjudged(replay)
    for comparison in replay.comparisons:
        yield Text(title(comparison), "bold")
        yield Padding(Group(*map(Text, statements(comparison))), (0, 0, 1, 2), expand=False)
    yield Text(f"{replay.coverage}", "dim")
    if not details and (able := _judged_detectors(replay.runs)):
        yield Text(able, "dim")
    yield _verdict(replay)


def _unjudged(replay: Replay) -> Iterator[RenderableType]:
    """Yield what could not be read, what was not, and which runs were judged to a part only."""
    for issue in [*replay.read_issues, *(issue for run in replay.runs for issue in run.read_issues)]:
        yield Text(f"unreadable: {clean_text(str(issue), 500)}", "yellow")
    if unread_text := unread_line(replay.unread):
        yield Text(clean_text(unread_text, 500), "dim")
    for run in replay.runs:
        if run.stopped:
            name = clean_text(run.run_pipeline.log.title)
            yield Text(f"judging stopped: {name}, {clean_text(run.stopped, 500)}", "yellow")


_Kind = tuple[Any, ...]
"""What equal incidents of runs of one training program have in common."""


def _incident_kind(run: JudgedRun, incident: Incident) -> _Kind:
    understood = run.run_pipeline.log.understanding()
    program = (run.run_pipeline.log.run.format, understood.framework, frozenset(understood.tags))
    causes = tuple(cause.id for cause in incident.causes[:_MAX_CAUSES])
    return (program, incident.severity, incident.detector, incident.variant, causes)


def _replay_summary(replay: Replay, runs: Sequence[JudgedRun], width: int) -> Iterator[RenderableType]:
    """Yield one screen: what was found, and the worst incidents that no other one explains."""
    roots = sorted(
        ((incident, run) for run in runs for incident in run.own), key=lambda pair: -pair[0].severity
    )
    incident_groups = _incident_groups(roots)
    summary_rows = [_SummaryRow.of(group) for group in incident_groups[:_MAX_SUMMARY_ROWS]]
    yield _verdict(replay)
    yield _summary_table(summary_rows, width)
    if further := [incident for group in incident_groups[_MAX_SUMMARY_ROWS:] for incident, _ in group]:
        kinds = Counter(incident.detector for incident in further)
        more = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        yield Text(f"and {counted(len(further), 'more incident')}: {more}")
    yield Text()


_Found = tuple[Incident, JudgedRun]


def _incident_groups(roots: Sequence[_Found]) -> list[list[_Found]]:
    """Return the incidents, each alone, but many equal ones of runs of one training program together."""
    equal: dict[_Kind, list[_Found]] = {}
    for incident, run in roots:
        equal.setdefault(_incident_kind(run, incident), []).append((incident, run))
    incident_groups: list[list[_Found]] = []
    for group in equal.values():
        incident_groups += [group] if len(group) >= _MANY_EQUAL else [[finding] for finding in group]
    return incident_groups


class _SummaryRow(msgspec.Struct, frozen=True):
    """A row of the summary."""

    severity: Severity
    detector: str
    name: str
    facts: str

    @classmethod
    def of(cls, group: Sequence[_Found]) -> "_SummaryRow":
        """Make a row of equal incidents of runs of one training program."""
        incident, run = group[0]
        others = len({run.run_pipeline.id for _, run in group}) - 1
        like_it = f", and in {counted(others, 'run')} like it" if others else ""
        name = clean_text(run.run_pipeline.log.title)
        return cls(incident.severity, incident.detector, name, f"step {incident.fired_step:,}{like_it}")


def _summary_table(summary_rows: Sequence[_SummaryRow], width: int) -> RenderableType:
    """Return the summary, in which no two names read alike however narrow the terminal is."""
    other_columns = (len(row.severity.label) + len(row.detector) + len(row.facts) for row in summary_rows)
    run_names = distinct(
        [row.name for row in summary_rows], max(_MIN_NAME, width - max(other_columns) - _SUMMARY_PADDING)
    )
    table = Table.grid(padding=(0, 2))
    for row, name in zip(summary_rows, run_names, strict=True):
        severity = Text(row.severity.label, _SEVERITY_STYLES[row.severity])
        table.add_row(severity, Text(row.detector, "bold"), Text(name), row.facts)
    return table


def _mark(run: JudgedRun) -> tuple[str, str]:
    if run.unread:
        return "could not be read  ", "yellow"
    return ("not judged to its end  ", "yellow") if run.stopped else ("nothing found  ", "green")


def _run_lines(run: JudgedRun, first_of_kind: dict[_Kind, str]) -> Iterator[RenderableType]:
    """Yield a run and its incidents. ``first_of_kind`` names the run that shows such an incident in full."""
    yield Text.assemble((_headline(run), "bold"))
    incidents = sorted(run.incidents.values(), key=lambda i: (i.inhibited_by is not None, i.fired_step))
    for incident in incidents:
        own_name = clean_text(run.run_pipeline.log.title)
        first_run_name = first_of_kind.setdefault(_incident_kind(run, incident), own_name)
        shown_in = "" if first_run_name == own_name else first_run_name
        yield Padding(Group(*_incident(run, incident, shown_in)), (0, 0, 1, 2), expand=False)
    yield from _advisories(run)


def _advisories(run: JudgedRun) -> Iterator[RenderableType]:
    """Yield what the settings and the console lines of a run give reason to read."""
    if checks := advisories(run.run_pipeline.log):
        table_rows = [(", ".join(check.catalogue), str(check)) for check in checks]
        yield Padding(_terminal_table("worth a look", table_rows), (0, 0, 1, 2), expand=False)


def _incident(run: JudgedRun, incident: Incident, shown_in: str) -> Iterator[RenderableType]:
    """Yield an incident. If an equal one of another run is ``shown_in`` full, only its own numbers follow."""
    style = _SEVERITY_STYLES[incident.severity]
    preview = " (preview)" if incident.maturity is Maturity.PREVIEW else ""
    yield Text.assemble(
        (f"{incident.severity.label} ", style),
        (f"{incident.detector}{preview}", "bold"),
        f"  {_life(incident)}",
    )
    if incident.inhibited_by is not None:
        cause = run.incidents.get(incident.inhibited_by)
        yield Text(f"  not sent: explained by {cause.detector if cause else incident.inhibited_by}", "dim")
        return
    yield Text(clean_text(incident.summary, 1000))
    for incident_line in notification_lines(run, incident, WOULD_BE_SENT):
        yield Text(incident_line, "dim")
    if shown_in:
        yield Text(f"evidence and what to try: as above, in {elided(shown_in, _MAX_NAME)}", "dim")
        return
    if excerpts := run.run_pipeline.excerpts(incident):
        yield from _picture(incident, *excerpts)
    if spent := cost(incident):
        yield Text(f"cost so far: {spent} since onset")
    yield _terminal_table("evidence", evidence_rows(incident))
    yield _terminal_table("what to try", [*_causes(incident)])


def _causes(incident: Incident) -> Iterator[tuple[str, str]]:
    """Yield the likeliest causes: what speaks for each, what to try, and the check that tells."""
    catalogue_entries = catalogue.load()
    for cause in incident.causes[:_MAX_CAUSES]:
        cited_entry = catalogue_entries[cause.id]
        reason = ": ".join(filter(None, (share(cause, incident.causes), cause.reasons)))
        likely = f"{cited_entry.title} ({reason})" if reason else cited_entry.title
        yield cause.id, f"{likely}. {cited_entry.fix} To tell: {cited_entry.check}"


def _life(incident: Incident) -> str:
    beginning = f"onset at step {incident.onset_step}, fired at {incident.fired_step}"
    if incident.state is State.RESOLVED:
        return f"{beginning}, resolved at {incident.resolved_step}"
    return f"{beginning}, still there at {incident.last_step}"


def _picture(incident: Incident, excerpt: Excerpt, *other_excerpts: Excerpt) -> Iterator[Text]:
    """Yield the curves of the attempt, above the steps at which the incident began, fired and ended."""
    steps = [(incident.onset_step, "o"), (incident.fired_step, "!")]
    legend = "o onset, ! fired"
    if incident.resolved_step is not None:
        steps.append((incident.resolved_step, "x"))
        legend += ", x resolved"
    style = _SEVERITY_STYLES[incident.severity]
    yield _curve_line(clean_text(incident.tag, 60), excerpt.mean, [*excerpt.low, *excerpt.high], style)
    for other_excerpt in other_excerpts:
        yield _curve_line(other_excerpt.label, other_excerpt.mean, other_excerpt.mean, "dim")
    yield Text(f"{marks(excerpt.step, steps):{len(excerpt.step)}}  from {excerpt.step[0]:,}: {legend}", "dim")


def _curve_line(name: str, mean: Sequence[Number], span: Sequence[Number], style: str) -> Text:
    span_values = [value for value in span if value is not None]
    curve = sparkline([math.nan if value is None else value for value in mean])
    low, high = (f"{end(span_values):.4g}" if span_values else "" for end in (min, max))
    span_text = f", {low}" + (f" to {high}" if high != low else "") if span_values else ""
    return Text.assemble((curve, style), (f"  {name}{span_text}", "dim" if style == "dim" else ""))


def _terminal_table(title: str, table_rows: Sequence[tuple[str, str]]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for row_number, (name, value) in enumerate(table_rows):
        table.add_row(Text("" if row_number else title, "dim"), Text(name), Text(clean_text(value, 1000)))
    return table


def _headline(run: JudgedRun) -> str:
    log = run.run_pipeline.log
    metadata = run.run_pipeline.log.metadata
    framework = log.understanding().framework or log.run.format
    attempts = f", {log.attempts} attempts" if log.attempts > 1 else ""
    steps = f"steps {metadata.first_step} to {metadata.last_step}" if metadata.points else "no points"
    return f"{clean_text(log.title)}  {framework}, {steps}, {metadata.points} points{attempts}"


def _able_count(run: JudgedRun) -> str:
    """Return how many of the detectors that fit found the signals that they need."""
    fit = _fit(run)
    return f"{fit.able} of {counted(fit.fitting, 'detector')} that fit"


def _blind_spots(runs: Sequence[JudgedRun]) -> Iterator[Text]:
    if lacking := ", ".join(f"no {reason}" for reason in _not_judged([run.lacking for run in runs])):
        yield Text(f"not judged: {lacking}", "dim")
    if skipped := ", ".join(_not_judged([run.skipped(run.lacking) for run in runs])):
        yield Text(f"not judged, because of {skipped}", "dim")


def _judged_detectors(runs: Sequence[JudgedRun]) -> str:
    """Return how many of the detectors that fit could judge, of the run of which that is the least."""
    fits = [(_fit(run), run) for run in runs if not run.unread]
    if not fits:
        return ""
    least, run = min(fits, key=lambda pair: pair[0].able / pair[0].fitting)
    name = f" in {clean_text(run.run_pipeline.log.title)}, the least" if len(fits) > 1 else ""
    return f"judged{name} by {least}; --details names the others"


def _fit(run: JudgedRun) -> Fit:
    lacking = run.lacking
    return fit(run.run_pipeline.log.understanding().signals, lacking, len(lacking))


def _not_judged(reasons_of_runs: Sequence[_Reasons]) -> Iterator[str]:
    """Yield the reasons for which detectors judged nothing, with these detectors.

    If not all runs have a reason, the number of those that do stands with it.
    """
    blind: Counter[tuple[str, str]] = Counter()
    for by_detector in reasons_of_runs:
        for name, reasons in by_detector.items():
            if reasons:
                blind[" and ".join(reasons), name] += 1
    silent: dict[tuple[str, int], list[str]] = {}
    for (reasons, name), runs in sorted(blind.items()):
        silent.setdefault((reasons, runs), []).append(name)
    for (reasons, runs), detector_names in silent.items():
        where = "" if runs == len(reasons_of_runs) else f" in {runs} of {len(reasons_of_runs)} runs"
        yield f"{reasons}{where} ({', '.join(detector_names)})"


def _verdict(replay: Replay) -> Text:
    incidents = [incident for run in replay.runs for incident in run.own]
    points = sum(run.run_pipeline.log.metadata.points for run in replay.runs)
    selection = f"{replay.selection}: " if replay.selection else ""
    runs = counted_runs(len({*replay.trainings.values()}), len(replay.runs))
    beginning = f"{selection}{runs}, {counted(points, 'point')}: "
    if not incidents:
        return Text(f"{beginning}nothing found", "green")
    trainings = {replay.trainings[run.run_pipeline.id] for run in replay.runs if run.incidents}
    return Text(
        f"{beginning}{counted(len(incidents), 'incident')} in {counted(len(trainings), 'run')}", "bold"
    )
