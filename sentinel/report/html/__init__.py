"""A replay as one HTML file: it asks for nothing from outside, and a strict content policy holds in it.

The page works without its script; with it, curves are drawn, and many runs can be sorted and filtered.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.metadata import version
from importlib.resources import files
from math import isfinite
from typing import TYPE_CHECKING, Any

from sentinel import catalogue
from sentinel.common.text import counted, duration_text, sentence
from sentinel.report.html.inline import parted, zoned
from sentinel.report.html.sparks import scales_of, spark
from sentinel.report.incident_model import IncidentReport
from sentinel.report.model import MAX_IN_FULL, ReplayReport, RunReport
from sentinel.runs.state import MEANINGS
from sentinel.series.curves import BUCKETS, Point

if TYPE_CHECKING:
    from jinja2 import Environment

SCRIPTS = "uPlot.iife.min.js", "base.js", "charts.js", "table.js", "signals.js", "keys.js", "page.js"
STYLES = "uPlot.min.css", "page.css", "table.css"

_MAX_POINTS_OF_FILE = 3_000_000  # of all curves of a file
_MAX_POINTS_OF_RUN = 40_000  # some 700 kB
_MIN_POINTS_OF_CURVE = 64
_MAX_CHECKPOINTS = 500
_MAX_SPARKS = 1000  # half of a page of 10,000 runs would be small curves, and a browser waits for them
_MAX_OPEN_GROUPS = 4  # of the signals of a run; the others unfold

ROWS_AT_FIRST = 100
"""Rows of a table that become elements at once. A browser takes seconds for thousands of them."""


def render(story: ReplayReport) -> str:
    """Return the page of a report."""
    runs = story.runs[:MAX_IN_FULL]
    further_runs = story.runs[MAX_IN_FULL:]
    scripts, styles = (["".join(asset(name)) for name in names] for names in (SCRIPTS, STYLES))
    allowed = min(_MAX_POINTS_OF_RUN, _MAX_POINTS_OF_FILE // max(len(runs), 1))
    all_runs: Any = environment().get_template("runs.html").module
    scales = scales_of(run.lead for run in story.runs)
    summary_rows = [
        all_runs.row(
            logs=[story.runs[index] for index in logs],
            hrefs=[f"#run-{index}" if index < len(runs) else "" for index in logs],
            spark=spark(story.runs[logs[0]].lead, scales) if logs[0] < _MAX_SPARKS else None,
            id=f"row-{logs[0]}",
        )
        for logs in _logs_of_trainings(story.runs)
    ]
    return (
        environment()
        .get_template("page.html")
        .render(
            story=story,
            counted=counted,
            verdict=story.verdict,
            runs=runs,
            rest=further_runs,
            scripts=scripts,
            styles=styles,
            policy=policy(scripts, styles),
            data=[data_of(run, allowed) for run in runs],
            rows=summary_rows if len(story.runs) > 1 else [],
            rows_at_first=ROWS_AT_FIRST,
            entries=cited(runs),
        )
    )


def _logs_of_trainings(runs: Sequence[RunReport]) -> Iterable[Sequence[int]]:
    """Return the places of the logs of each training, in the order of the runs."""
    members: dict[str, list[int]] = {}
    for run_index, run in enumerate(runs):
        members.setdefault(run.training, []).append(run_index)
    return members.values()


@cache
def environment(package: str = __name__) -> "Environment":
    """Return the templates of a package beside those of this one, which it may extend and include."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined  # slow to import

    templates = Environment(
        loader=ChoiceLoader([PackageLoader(name, "") for name in dict.fromkeys((package, __name__))]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    templates.filters |= {
        "coded": _coded,
        "duration": duration_text,
        "parted": parted,
        "sentence": sentence,
        "zoned": zoned,
    }
    templates.globals |= {
        "timeline": _timeline,
        "groups_open": _MAX_OPEN_GROUPS,
        "multiples": _multiples,
        "script_names": SCRIPTS,
        "state_meanings": MEANINGS,
        "style_names": STYLES,
        "version": version("training-sentinel"),
    }
    return templates


def asset(name: str) -> str:
    """Return a script or a style of the page."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def cited(runs: Iterable[RunReport]) -> list[tuple[catalogue.Entry, str]]:
    """Return the catalogue entries that runs cite, each with its body as HTML."""
    catalogue_entries = {
        cause.entry.id: cause.entry for run in runs for incident in run.incidents for cause in incident.causes
    }
    return [(entry, _html_of(entry)) for entry in catalogue_entries.values()]


def policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Return the content policy: what stands in the file, and nothing else."""

    def hashes(texts: Sequence[str]) -> str:
        return " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts)

    return (
        f"default-src 'none'; script-src {hashes(scripts)}; style-src {hashes(styles)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _coded(script_text: str) -> str:
    """Convert text of the catalogue to HTML, with what stands between backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(script_text))


def _html_of(cited_entry: catalogue.Entry) -> str:
    """Return the body of a catalogue page, which is our own text."""
    from markdown_it import MarkdownIt

    return str(MarkdownIt("commonmark", {"html": False}).render(cited_entry.body))


def data_of(run: RunReport, max_of_run: int, *, times: bool = False) -> str:
    """Return the curves of a run as JSON that may stand in a script element.

    They have about ``max_of_run`` points in all.

    With ``times`` each point has its time, too, for a page that lays runs over each other.
    """
    max_points = min(2 * BUCKETS, max(_MIN_POINTS_OF_CURVE, max_of_run // max(len(run.curves), 1)))
    report_data = {
        "curves": {tag: _attempts(curve.points(max_points), times) for tag, curve in run.curves.items()},
        "siblings": {
            tag: [band.steps, *([float(f"{edge:.4g}") for edge in edges] for edges in (band.low, band.high))]
            for tag, band in run.siblings.items()
        },
        "lost": {tag: curve.lost_at for tag, curve in run.curves.items() if curve.lost_at is not None},
        "marks": [_mark(incident) for incident in run.incidents],
        "checkpoints": run.checkpoints[-_MAX_CHECKPOINTS:],
    }
    if times:
        report_data |= {"signals": run.tags, "planned": run.planned_steps}
    return json.dumps(report_data, separators=(",", ":")).replace("<", "\\u003c")


def _attempts(points: Sequence[Point], times: bool) -> list[list[list[float | None]]]:
    """Return steps and values of each attempt, and times if they are wanted."""
    columns: dict[int, list[list[float | None]]] = {}
    for point in points:
        steps, point_values, *clock = columns.setdefault(point.attempt, [[], [], *([[]] if times else [])])
        steps.append(point.step)
        point_values.append(float(f"{point.value:.6g}"))
        if clock:
            clock[0].append(round(point.time, 1) if isfinite(point.time) else None)
    return [*columns.values()]


def _mark(incident: IncidentReport) -> Mapping[str, Any]:
    return {
        "tag": incident.tag,
        "severity": incident.severity.label,
        "onset": incident.onset_step,
        "fired": incident.fired_step,
        "resolved": incident.resolved_step,
    }


def _timeline(run: RunReport) -> Sequence[tuple[IncidentReport, float, float]]:
    """Return the incidents with their begin and end in percent of the run."""
    first_step = run.first_step or 0
    last_step = run.last_step or 0
    length = max(last_step - first_step, 1)

    def place(step: int | None) -> float:
        return 100.0 * min(max(((last_step if step is None else step) - first_step) / length, 0.0), 1.0)

    return [
        (incident, place(incident.onset_step), place(incident.resolved_step)) for incident in run.incidents
    ]


def _multiples(run: RunReport) -> Sequence[tuple[str, Sequence[tuple[str, str]]]]:
    """Return groups of tags, each tag with its signal in words, those of incidents first.

    A group is what stands before the last slash. Tags that never change are left out. The words of the
    outcome say that it is.
    """
    meaning = {tag: signal.replace("_", " ") for signal, tags in run.tags.items() for tag in tags}
    outcome, direction = run.outcome
    constant = {tag for tag, _ in run.constant}
    incident_tags = [incident.tag for incident in run.incidents]
    groups: dict[str, list[tuple[str, str]]] = {}
    for tag in dict.fromkeys([*incident_tags, *meaning]):
        if tag in run.curves and tag not in constant:
            words = meaning.get(tag, "")
            says_itself = re.sub(r"[_/-]", " ", tag.lower()).endswith(words)  # as `train/grad_norm` does
            words = "" if says_itself else words
            if tag == outcome:
                words = f"{words}, the outcome, {direction} is better".removeprefix(", ")
            groups.setdefault(tag.rpartition("/")[0], []).append((tag, words))
    return [*groups.items()]
