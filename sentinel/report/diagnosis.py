"""What a person would read of one run, on one page."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from sentinel.report.markdown import plain, run_markdown
from sentinel.report.model import RunReport

_MAX_IN_FULL = 2  # incidents
_MAX_OTHER_INCIDENTS = 8  # incidents of a line each
_MAX_ADVISORIES = 4
_MAX_LACKS = 4


def diagnosis(run: RunReport) -> list[str]:
    """Return the state of a run, what is wrong with it, and what cannot be judged, in lines of Markdown."""
    roots = [incident for incident in run.incidents if not incident.explained_by]
    title, *markdown_rest = run_markdown(replace(run, incidents=roots[:_MAX_IN_FULL])).splitlines()
    other_incidents = (
        f"also {incident.severity.label}: {incident.detector} since step {incident.onset_step:,}: "
        f"{plain(incident.headline)}"
        for incident in roots[_MAX_IN_FULL:]
    )
    advice = (f"worth a look: {plain(reason)}" for _, reason in run.advisories)
    lacks = (f"lacks {blind.signals}, so cannot judge: {', '.join(blind.detectors)}" for blind in run.blind)
    return [
        title,
        f"state: {run.state}, {plain(run.evidence)}",
        *markdown_rest,
        *_first_lines([*other_incidents], _MAX_OTHER_INCIDENTS, "incidents"),
        *_first_lines([*advice], _MAX_ADVISORIES, "things worth a look"),
        f"judged by {run.judged_by} of {run.detectors} detectors",
        *_first_lines([*lacks], _MAX_LACKS, "signals that it lacks"),
    ]


def _first_lines(report_lines: Sequence[str], most: int, things: str) -> Iterator[str]:
    yield from report_lines[:most]
    if len(report_lines) > most:
        yield f"and {len(report_lines) - most} more {things}"
