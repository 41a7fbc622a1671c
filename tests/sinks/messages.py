"""The first message about a finding of every detector as Slack shows it, and of five in each other form.

The files are for a person to read.

``python -m tests.tools.docs`` writes them anew after a change of words. The advice of the
catalogue is left out, because its pages change more often than messages do; so is what is the same for all.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
from msgspec.structs import replace

from sentinel.detectors.api import Declaration, Detector
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.run_checks import RunCheck
from sentinel.detectors.schema import FINDINGS, INDEX, ONSET, SEVERITY, SIGNAL, STEP, VARIANT
from sentinel.detectors.severity import Severity
from sentinel.incidents.duplicates import KnownIncidents
from sentinel.incidents.lifecycle import IncidentTracker
from sentinel.incidents.verdict_merge import Key, Verdict
from sentinel.notifications.decide import SinkPolicy
from sentinel.notifications.routing import RoutingContext, RunChanges, route_changes
from sentinel.sinks.base import Notification
from sentinel.sinks.batching import notification
from sentinel.sinks.message import subject, text
from sentinel.sinks.pagerduty import event
from sentinel.sinks.slack_blocks import slack_body
from sentinel.sources.identity import RunIdentity
from tests.detectors import golden
from tests.detectors.test_every_run_check import AMID, AMONG, ENDED, ILL

FOLDER = Path(__file__).parent / "golden"
START = 1_767_225_600.0
SECONDS_A_STEP = 2.0
FORMS = {
    "mail": lambda notification: f"Subject: {subject(notification)}\n\n{text(notification)}",
    "slack": lambda notification: "\n".join(map(block, slack_body(notification)["blocks"])),
    "pagerduty": lambda notification: paged(event(notification)),
}
"""A mail is what Apprise sends: its body is the plain text."""

DIFFERENT = (
    "console-error",  # quotes what the run printed
    "kl-blowup",  # supposes something about the run
    "lr-schedule-mismatch",  # began earlier than it was found
    "metric-band",  # a preview that only informs
    "run-crashed",  # has no cause
)
"""Detectors whose messages differ in form. Words are the same in each form, so one form shows all of them."""


def messages(form: str) -> str:
    """The whole file of a form."""
    return "\n".join(
        f"=== {one.incident.detector}\n\n{FORMS[form](one)}\n"
        for one in notifications()
        if form == "slack" or one.incident.detector in DIFFERENT
    )


VIEWS = ILL, AMID, *AMONG, *ENDED


def notifications() -> Iterator[Notification]:
    """What a sink that asks for everything is told first of each detector's findings."""
    audience = RoutingContext(
        [SinkPolicy("all", Severity.INFO, include_preview=True)], [], {}, KnownIncidents([])
    )
    for detector in all_detectors().values():
        (change,) = IncidentTracker("jsonl:/runs/a", {detector.name: detector}).advance([[verdict(detector)]])
        (outcome,) = route_changes(RunChanges(RunIdentity("a"), [change]), audience, START)
        stored = notification(json.dumps(outcome.body))
        entries = [{**entry, "fix": "...", "check": "..."} for entry in stored.catalogue[:1]]
        yield replace(stored, catalogue=entries)


def verdict(detector: Declaration) -> Verdict:
    """The first finding in the detector's goldens; of a run check, what it says of a run that is ill."""
    match detector:
        case Detector():
            for scenario in golden.shipped()[detector.name]:
                findings = scenario.verdicts.filter(pl.col(SEVERITY) > 0)
                for row in findings.head(1).iter_rows(named=True):
                    evidence = {name: row[name] for name in row if name not in {*FINDINGS, SIGNAL}}
                    tag = f"train/{row[SIGNAL]}"
                    position = row[INDEX]
                    return said(detector, tag, row[SIGNAL], position, row, evidence)
        case RunCheck():
            finding = next(one for view in VIEWS for one in detector.check(view) if one.variant)
            row = {SEVERITY: detector.severity(finding), VARIANT: finding.variant, STEP: 412, ONSET: None}
            return said(detector, finding.tag, "", 0, row, finding.evidence, finding.catalogue)
    raise LookupError(f"nothing fires in the goldens of {detector.name}")


def said(detector, tag, signal, position, row, evidence, catalogue=()):
    onset = row[ONSET]
    return Verdict(
        key=Key("jsonl:/runs/a", "", 1, tag, detector.name),
        signal=signal,
        index=position,
        step=row[STEP],
        time=START + SECONDS_A_STEP * row[STEP],
        position=position,
        severity=row[SEVERITY],
        variant=row[VARIANT],
        onset=lambda: None if onset is None else (onset, START + SECONDS_A_STEP * onset),
        evidence=evidence,
        catalogue=catalogue,
        final=True,
    )


def block(one):
    """A block of Slack's in words: its kind, and the text with its styles."""
    parts = (
        one["elements"][0] if one["type"] == "rich_text" else {"type": "header", "elements": [one["text"]]}
    )
    text = "".join(map(marked, parts["elements"]))
    return f"[{parts['type']}] {text}"


def marked(element):
    """The text as a person reads it: bold between stars, code between backticks."""
    style = element.get("style", {})
    words = element["text"]
    mark = "*" if style.get("bold") else "`" if style.get("code") else ""
    bare = words.strip()
    return f"<{element['url']}|{words}>" if "url" in element else words.replace(bare, f"{mark}{bare}{mark}")


def paged(event):
    """What PagerDuty shows in a list; the details of an alert are the plain text."""
    payload = event["payload"]
    rows = ("summary", "severity", "source", "component", "class", "timestamp")
    return "\n".join(f"{row}: {payload[row]}" for row in rows)


def write():
    for form in FORMS:
        (FOLDER / f"{form}.txt").write_text(messages(form))
