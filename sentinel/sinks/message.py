"""The words of a notification as plain text; each sink only lays them out.

All text has passed ``clean_text``.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sentinel.alerts.evidence import evidence_rows
from sentinel.alerts.incident import Event, Incident
from sentinel.sinks.base import Digest, Notification
from sentinel.text import clean_text, duration_text

_TITLES = {
    Event.FIRING: "{severity}: {detector}",
    Event.ESCALATED: "{severity}, got worse: {detector}",
    Event.REPEAT: "{severity}, still there: {detector}",
    Event.RESOLVED: "Resolved: {detector}",
    Event.REOPENED: "{severity}, came back: {detector}",
    Event.FLAPPING: "{severity}, keeps coming back: {detector}",
    Event.LOST: "Log went silent with {detector} open",
    Event.TEST: "Test of this sink: {detector}",
}
_MOST_CAUSES = 5
_SHOWN = "id", "title", "fix", "check"  # of a catalogue entry
_MOST_OTHERS = 5
MOST_IN_FULL = 10
"""How many messages of a digest are shown in detail."""


@dataclass(frozen=True)
class Cause:
    """A catalogue entry that may be behind the incident; likelier ones come first."""

    id: str
    title: str
    fix: str
    check: str
    share: str  # "80%": how likely it is among all
    because: str  # what in the run speaks for it and against it; may be empty


@dataclass(frozen=True)
class Message:
    """The parts of a notification in reading order. Empty parts are not shown."""

    title: str
    run: str
    summary: str
    since: str  # onset and how long
    cost: str
    evidence: Sequence[tuple[str, str]]
    causes: Sequence[Cause]
    also_open: Sequence[str]


def message(notification: Notification) -> Message:
    """The words of a notification. A resolved incident shows no evidence and no causes."""
    incident = notification.incident
    over = notification.event is Event.RESOLVED
    titled = _TITLES[notification.event].format(
        severity=incident.severity.name.capitalize(), detector=incident.detector
    )
    return Message(
        title=clean_text(titled, 100),
        run=clean_text(str(notification.run.get("run", incident.run))),
        summary=clean_text(incident.summary, 1000) or clean_text(titled),
        since=_since(incident),
        cost=clean_text(notification.cost),
        evidence=[] if over else evidence_rows(incident),
        causes=[] if over else _causes(notification),
        also_open=[clean_text(summary) for summary in notification.also_open[:_MOST_OTHERS]],
    )


@dataclass(frozen=True)
class Summary:
    """The parts of a digest in reading order."""

    title: str
    counts: Sequence[str]  # "12 critical", "3 resolved": the worst first
    detectors: Sequence[tuple[str, int]]  # of those that are not resolved, the most frequent first
    messages: Sequence[Message]  # the worst first


def summary(digest: Digest) -> Summary:
    """The words of a digest."""
    notifications = digest.notifications
    over = [n for n in notifications if n.event is Event.RESOLVED]
    still = [n for n in notifications if n.event is not Event.RESOLVED]
    severities = Counter(n.incident.severity for n in still)
    counts = [f"{severities[severity]} {severity.label}" for severity in sorted(severities, reverse=True)]
    return Summary(
        title=f"{len(notifications)} incidents, in one message because {digest.why}",
        counts=[*counts, *([f"{len(over)} resolved"] if over else [])],
        detectors=Counter(clean_text(n.incident.detector, 100) for n in still).most_common(),
        messages=[message(n) for n in notifications],
    )


def _since(incident: Incident) -> str:
    began = f"{'since' if incident.open else 'from'} step {incident.onset_step}"
    last = incident.last_step
    if last is None or last <= incident.onset_step:
        return began
    steps = f"{began} to {last}, {last - incident.onset_step} steps"
    if incident.onset_time is None or incident.last_time is None:
        return steps
    return f"{steps} or {duration_text(incident.last_time - incident.onset_time)}"


def _causes(notification: Notification) -> list[Cause]:
    entries = {entry["id"]: entry for entry in notification.catalogue}
    return [
        Cause(
            **{field: clean_text(entries[one.id].get(field, ""), 400) for field in _SHOWN},
            share=f"{one.score:.0%}",
            because=clean_text(one.because, 400),
        )
        for one in notification.incident.causes[:_MOST_CAUSES]
        if one.id in entries
    ]
