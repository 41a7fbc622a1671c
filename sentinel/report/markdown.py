"""A replay as Markdown, for a pull request or an issue: a table, and details that fold."""

import re
from collections.abc import Iterator, Sequence

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.text import sentence
from sentinel.report.incident_model import CauseReport, IncidentReport
from sentinel.report.model import ReplayReport, RunReport
from sentinel.report.sparkline import sparkline

_SEVERITY_MARKS = {"critical": "🔴", "warning": "🟠", "info": "🔵"}
_MAX_TABLE_ROWS = 200
_SPARK_POINTS = 40
_MARKDOWN_CHARACTERS = lazy_pattern(r"([\\`*_\[\]<>|~&#])")
_JOINER = "\u2060"  # an invisible mark that keeps a name or an address from becoming a mention or a link


def render(story: ReplayReport) -> str:
    """Return the report as GitHub-flavoured Markdown."""
    return "\n".join(_markdown_lines(story)) + "\n"


def run_markdown(run: RunReport) -> str:
    """Return one run as GitHub-flavoured Markdown: how far it is, and what is wrong with it."""
    plan = f" of {run.planned_steps:,}" if run.planned_steps else ""
    roots = [incident for incident in run.incidents if not incident.explained_by]
    nothing = f"Nothing was found by the {run.judged_by} detectors that could judge this run."
    head = f"**{plain(run.title)}** ({plain(run.state)}, step {run.last_step or 0:,}{plan})"
    return "\n".join([head, "", *(_notifications(run, roots) if roots else [nothing])]).rstrip() + "\n"


def _markdown_lines(story: ReplayReport) -> Iterator[str]:
    yield f"**{plain(story.verdict)}** {story.coverage}"
    yield ""
    if story.selection:
        yield f"Only these incidents are shown: {plain(story.selection)}.\n"
    incident_rows = [
        (run, incident) for run in story.runs for incident in run.incidents if not incident.explained_by
    ]
    if incident_rows:
        yield "| | Run | What is wrong | Since step | Curve |"
        yield "| --- | --- | --- | --- | --- |"
    for run, incident in incident_rows[:_MAX_TABLE_ROWS]:
        headline = f"**{incident.detector}**: {plain(incident.headline)}"
        curve = run.curves.get(incident.tag)
        row = (
            _SEVERITY_MARKS[incident.severity.label],
            plain(run.title),
            headline,
            f"{incident.onset_step:,}",
            sparkline([point.value for point in curve.points(_SPARK_POINTS)]) if curve else "",
        )
        yield f"| {' | '.join(row)} |"
    if len(incident_rows) > _MAX_TABLE_ROWS:
        yield f"\nand {len(incident_rows) - _MAX_TABLE_ROWS} more incidents"
    for run in story.runs:
        roots = [incident for incident in run.incidents if not incident.explained_by]
        if roots:
            yield from _details(run, roots)
    yield from compared_lines(story.comparisons)
    problems = [
        *story.problems,
        *(f"{run.title}: {problem}" for run in story.runs for problem in run.problems),
    ]
    if problems:
        yield ""
        yield from (f"- could not be read or judged: {plain(problem)}" for problem in problems)


def _details(run: RunReport, incidents: list[IncidentReport]) -> Iterator[str]:
    yield f"\n<details><summary>{plain(run.title)}</summary>\n"
    yield from _notifications(run, incidents)
    yield "</details>"


def _notifications(run: RunReport, incidents: list[IncidentReport]) -> Iterator[str]:
    if run.keep:
        yield f"Keep `{run.keep.path.replace('`', '')}`: {plain(run.keep.reason)}\n"
    for incident in incidents:
        yield f"### {incident.detector} ({incident.severity.label})\n"
        yield f"{plain(incident.headline)}\n"
        yield f"{plain(sentence(incident.life))}\n"
        if incident.cost:
            yield f"Cost so far: {incident.cost} since the onset.\n"
        if incident.evidence:
            yield "| | |\n| --- | --- |"
            yield from (f"| {plain(label)} | {plain(value)} |" for label, value in incident.evidence)
            yield ""
        yield from map(_cause, incident.causes)
        yield ""


def _cause(cause: CauseReport) -> str:
    reason = f" {plain(sentence(cause.reason))}" if cause.reason else ""
    entry = cause.entry
    share = f" ({cause.share})" if cause.share else ""
    return f"- **{entry.id}: {entry.title}**{share}.{reason} {entry.fix} *To tell:* {entry.check}"


def compared_lines(comparisons: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """Yield a title and sentences for each comparison of runs."""
    for title, sentences in comparisons:
        yield f"\n### {plain(title)}\n"
        yield from (f"- {plain(sentence)}" for sentence in sentences)


def plain(markdown_text: str) -> str:
    """Escape text from a run, which must not become Markdown, HTML, a mention or a link."""
    joined = re.sub(r"(@|://|www\.|#(?=\d))", rf"\1{_JOINER}", markdown_text)
    return _MARKDOWN_CHARACTERS.sub(r"\\\1", joined)
