"""What several state directories hold, as one: those of the shares of a tree, or of a pair of watches."""

from collections import Counter
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from sentinel.report.status import MAX_DECISIONS, MAX_ROWS, KnownRun, Status, together, worst_first


def joined(statuses: Mapping[Path, Status]) -> Status:
    """Return the content of some state directories by their places, at least one.

    What several hold of a run is that of the state which recorded it last.
    """
    if len(statuses) == 1:
        return next(iter(statuses.values()))
    states = [*statuses.values()]
    latest: dict[str, KnownRun] = {}
    for run in chain.from_iterable(state.runs for state in states):
        if run.row.id not in latest or run.row.updated > latest[run.row.id].row.updated:
            latest[run.row.id] = run
    incidents = []
    for state in states:
        runs = {run.row.id for run in state.runs if latest[run.row.id] is run}
        incidents += [incident for incident in state.incidents if incident.run in runs]
    feedback = Counter[tuple[str, str]]()
    for state in states:
        feedback.update(state.feedback)
    decisions = chain.from_iterable(state.decisions for state in states)
    processes = [state.process for state in states if state.process]
    return Status(
        now=max(state.now for state in states),
        runs=together([*latest.values()]),
        incidents=worst_first(incidents, latest.values()),
        undelivered=[*chain.from_iterable(state.undelivered for state in states)][:MAX_ROWS],
        undelivered_count=sum(state.undelivered_count for state in states),
        decisions=sorted(decisions, key=lambda decision: -decision.at)[:MAX_DECISIONS],
        silences=[*{silence.id: silence for state in states for silence in state.silences}.values()],
        feedback=feedback,
        answers={incident: verdict for state in states for incident, verdict in state.answers.items()},
        promise=next((state.promise for state in states if state.promise), None),
        pages=[*{(page.incident, page.day): page for state in states for page in state.pages}.values()],
        useful=[*chain.from_iterable(state.useful for state in states)],
        health={
            f"{state_dir}: {component}": value
            for state_dir, state in statuses.items()
            for component, value in state.health.items()
        },
        process=", ".join(processes) or None,
        outage="; ".join(
            f"{state_dir}: {state.trouble}" for state_dir, state in statuses.items() if state.trouble
        ),
    )
