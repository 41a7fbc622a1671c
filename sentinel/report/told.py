"""Who would have heard of an incident, in words that every layout of a replay shares."""

from collections.abc import Iterator

from sentinel.alerts.incident import Incident
from sentinel.replaying import ReplayedRun


def told_lines(run: ReplayedRun, incident: Incident) -> Iterator[str]:
    """Which sinks would have been sent an incident, and why the others would not."""
    decided = [(one.sink, one.decision.reason) for one in run.told.get(incident.id, ())]
    told = {sink: None for sink, reason in decided if reason.sends}
    if told:
        yield f"told: {', '.join(told)}"
    for sink, reason in dict(reversed(decided)).items():  # the first decision of each sink
        if sink not in told:
            yield f"not told: {sink}, {reason.text}"
