"""A replay in the Static Analysis Results Interchange Format 2.1.0 (OASIS), for code scanning.

A detector is a rule, and an incident that no other one explains is a result at the log of its run.
"""

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sentinel import catalogue
from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.paths import is_directory, is_file
from sentinel.common.text import clean_text, sentence
from sentinel.detectors.api import Declaration, Severity
from sentinel.incidents.incident import Incident
from sentinel.replays.judged import JudgedRun
from sentinel.replays.replay import Replay
from sentinel.report.comparisons import statements, title
from sentinel.sources.location import Location

_SARIF_LEVELS = {Severity.INFO: "note", Severity.WARNING: "warning", Severity.CRITICAL: "error"}
_SARIF_CHARACTERS = lazy_pattern(r"([\\\[\]])")  # of a link, 3.11.6 of the standard


def document(replays: Iterable[Replay], base: Path) -> dict[str, Any]:
    """Return the results of the parts of a replay.

    Paths of logs below the directory ``base`` are relative to it.
    """
    rules: dict[str, Declaration] = {}
    sarif_results: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    coverage = None
    for replay in replays:
        rules = dict(replay.pipeline.detectors)
        rule_index = {name: number for number, name in enumerate(rules)}
        sarif_results += [
            _sarif_result(run, incident, rule_index, base) for run in replay.runs for incident in run.own
        ]
        notes += [_notification("warning", str(issue)) for issue in replay.read_issues]
        for run in replay.runs:
            stopped = [f"not judged to its end: {run.stopped}"] if run.stopped else []
            troubles = [*stopped, *map(str, run.read_issues)]
            notes += [_notification("warning", text, _sarif_location(run, base)) for text in troubles]
        notes += [
            _notification("note", f"{title(comparison)}: {text}")
            for comparison in replay.comparisons
            for text in statements(comparison)
        ]
        coverage = coverage + replay.coverage if coverage else replay.coverage
    is_complete = coverage is not None and not coverage.cut and not coverage.unread
    text = _notification("note", sentence(str(coverage or "")))
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "sentinel",
                        "version": version("training-sentinel"),
                        "rules": [_rule(rule) for rule in rules.values()],
                    }
                },
                "invocations": [
                    {"executionSuccessful": is_complete, "toolExecutionNotifications": [text, *notes]}
                ],
                "results": sarif_results,
            }
        ],
    }


def _rule(detector: Declaration) -> dict[str, Any]:
    flags = " ".join(detector.doc.split("\n\n")[0].split())
    return {
        "id": detector.name,
        "shortDescription": {"text": _sarif_text(flags)},
        "help": {"text": detector.doc, "markdown": detector.doc},
        "defaultConfiguration": {"level": _SARIF_LEVELS[detector.severities[0]]},
        "properties": {"tags": [detector.maturity.value, *detector.catalogue]},
    }


def _sarif_result(
    run: JudgedRun, incident: Incident, rule_index: dict[str, int], base: Path
) -> dict[str, Any]:
    return {
        "ruleId": incident.detector,
        **({"ruleIndex": rule_index[incident.detector]} if incident.detector in rule_index else {}),
        "level": _SARIF_LEVELS[incident.severity],
        "message": {"text": _sarif_text(" ".join(_sentences(incident)), 3000)},
        "locations": [_sarif_location(run, base, incident)],
        "partialFingerprints": {"incident/v1": incident.id},
        "properties": {
            "onset_step": incident.onset_step,
            "fired_step": incident.fired_step,
            "resolved_step": incident.resolved_step,
            "state": incident.state.value,
            "catalogue": list(incident.catalogue),
        },
    }


def _sentences(incident: Incident) -> Iterator[str]:
    """Yield what is wrong, since when, the likeliest cause, and what to do."""
    yield sentence(incident.summary)
    yield f"It began at step {incident.onset_step:,} and was found at step {incident.fired_step:,}."
    for cause in incident.causes[:1]:
        entry = catalogue.load()[cause.id]
        yield f"{entry.id}: {sentence(entry.title)} {entry.fix} To tell: {entry.check}"


def _sarif_location(run: JudgedRun, base: Path, incident: Incident | None = None) -> dict[str, Any]:
    """Return the log of a run; for an incident about a printed line, the file and the line."""
    log = run.run_pipeline.log
    log_line = incident.evidence.get("line") if incident else None
    log_path = log.run.path
    if incident and log_line and isinstance(log_path, Path):
        printed = (log_path if is_directory(log_path) else log_path.parent) / incident.tag
        log_path = printed if is_file(printed) else log_path
    region = (
        {"region": {"startLine": log_line if isinstance(log_line, int) and log_line > 0 else 1}}
        if incident
        else {}
    )
    return {
        "physicalLocation": {"artifactLocation": {"uri": _uri(log_path, base)}, **region},
        "logicalLocations": [{"name": clean_text(log.name), "kind": "resource"}],
    }


def _uri(location: Location, base: Path) -> str:
    if isinstance(location, Path):
        return quote(str(location.relative_to(base))) if location.is_relative_to(base) else location.as_uri()
    return quote(str(location), safe="/:")


def _notification(level: str, sarif_text: str, *locations: dict[str, Any]) -> dict[str, Any]:
    located = {"locations": list(locations)} if locations else {}
    return {"level": level, "message": {"text": _sarif_text(sarif_text, 1000)}, **located}


def _sarif_text(sarif_text: str, limit: int = 300) -> str:
    """Escape text that may come from a run, so that it has no links."""
    return _SARIF_CHARACTERS.sub(r"\\\1", clean_text(sarif_text, limit))
