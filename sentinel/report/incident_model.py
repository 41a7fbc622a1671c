"""An incident as plain data for programs and for every layout of a report. All text is safe to show."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from sentinel import catalogue
from sentinel.catalogue import Entry
from sentinel.common.text import clean_text
from sentinel.detectors.api import Maturity
from sentinel.detectors.severity import Severity
from sentinel.incidents.causes import share
from sentinel.incidents.incident import Incident, State, began_first
from sentinel.incidents.json_body import clock_text
from sentinel.notifications.routing import cost
from sentinel.replays.judged import JudgedRun
from sentinel.report.evidence import evidence_rows
from sentinel.report.logged import Sample
from sentinel.report.printed import ConsoleExcerpt
from sentinel.sinks.checkpoints import last_checkpoint
from sentinel.sinks.message import lasted

_MAX_CAUSES = 4


class CauseReport(msgspec.Struct, frozen=True):
    """A catalogue entry that may be behind an incident. ``share`` says how likely; it may be empty.
    ``favoured`` says whether something in the run speaks for it.
    """

    entry: Entry
    share: str
    reason: str
    favoured: bool


class IncidentReport(msgspec.Struct, frozen=True):
    """An incident, as `sentinel.replay` and a `Monitor` give it.

    ``life`` says in words from when to when it lasted. What only a report looks up is empty in a monitor:
    ``notifications``, ``checkpoint``, ``printed`` and ``samples``.
    """

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
    causes: Sequence[CauseReport]
    notifications: Sequence[str]
    explained_by: str  # name of the detector; empty if the incident stands for itself
    checkpoint: str  # the last one from before the onset; empty if none is known
    tag: str
    cost: str  # from the onset to the newest finding; empty if not known
    printed: ConsoleExcerpt | None  # console lines around the onset
    samples: Sequence[Sample]  # texts and images that were logged nearest to the onset


def incident_report(
    incident: Incident,
    run_incidents: Mapping[str, Incident],
    run_path: Path | None = None,
    notifications: Sequence[str] = (),
    samples: Sequence[Sample] = (),
    printed: ConsoleExcerpt | None = None,
) -> IncidentReport:
    """Return the report of an incident.

    ``run_incidents`` are all incidents of its run by their ids, ``run_path`` is where the run's log lies, and
    the rest is what was sent of the incident, and what was logged and printed around its onset.
    """
    cause = run_incidents.get(incident.inhibited_by or "")
    first_incident = began_first(incident, run_incidents.values())
    checkpoint = (
        last_checkpoint(str(run_path), first_incident.onset_step, first_incident.onset_time)
        if run_path
        else ""
    )
    return IncidentReport(
        id=incident.id,
        severity=incident.severity,
        detector=incident.detector,
        preview=incident.maturity is Maturity.PREVIEW,
        headline=incident.headline,
        life=_life(incident),
        state=incident.state.value,
        onset_step=incident.onset_step,
        fired_step=incident.fired_step,
        resolved_step=incident.resolved_step,
        last_step=incident.last_step,
        fired_at=clock_text(incident.fired_time),
        evidence=evidence_rows(incident),
        causes=list(_causes(incident)),
        notifications=notifications,
        explained_by=(cause.detector if cause else "another incident") if incident.inhibited_by else "",
        checkpoint=clean_text(checkpoint),
        tag=clean_text(incident.drawn_tag),
        cost=cost(incident),
        printed=printed,
        samples=samples,
    )


def _causes(incident: Incident) -> Iterator[CauseReport]:
    catalogue_entries = catalogue.load()
    for cause in incident.causes[:_MAX_CAUSES]:
        yield CauseReport(
            catalogue_entries[cause.id],
            share(cause, incident.causes),
            clean_text(cause.reasons, 400),
            cause.favoured,
        )


def _life(incident: Incident) -> str:
    last_step = incident.fired_step if incident.last_step is None else incident.last_step
    if incident.onset_step == incident.fired_step == last_step and incident.state is not State.RESOLVED:
        return f"at step {last_step:,}"
    beginning = f"since step {incident.onset_step:,}, found at step {incident.fired_step:,}"
    if incident.state is State.RESOLVED:
        return f"{beginning}, over at step {incident.resolved_step:,} after {lasted(incident)}"
    return f"{beginning}, still there at step {last_step:,} after {lasted(incident)}"


SENT = ("sent to", "not sent to")
WOULD_BE_SENT = ("a watch would have sent it to", "a watch would not have sent it to")
"""What reports say of sinks: of those of a watch, and of those that a replay only supposes."""


def notification_lines(run: JudgedRun, incident: Incident, words: tuple[str, str] = SENT) -> Iterator[str]:
    """Yield which sinks would have been sent an incident, and why the others would not."""
    sent_to, not_sent_to = words
    decisions = [
        (outcome.sink, outcome.decision.reason) for outcome in run.notifications.get(incident.id, ())
    ]
    sent = {sink: None for sink, reason in decisions if reason.sends}
    if sent:
        yield f"{sent_to}: {', '.join(sent)}"
    for sink, reason in dict(reversed(decisions)).items():  # the first decision of each sink
        if sink not in sent:
            yield f"{not_sent_to}: {sink}, {reason.text}"
