"""The machine-readable replay: one JSON object, in the form that the README describes."""

from typing import Any

from sentinel.alerts.wire import incident_body
from sentinel.replay import Replay, ReplayedRun
from sentinel.run_state import standing


def document(replay: Replay) -> dict[str, Any]:
    """The whole replay, JSON-able."""
    return {"schema": 1, "runs": [_run(run, replay) for run in replay.runs]}


def _run(run: ReplayedRun, replay: Replay) -> dict[str, Any]:
    tracker, facts, understood = run.tracker, run.tracker.facts, run.tracker.understanding()
    stands = standing(tracker.ending, 0.0, facts.lost_after_seconds)  # by the log's own clock
    lacking = {name: understood.missing(d) for name, d in replay.pipeline.detectors.items()}
    return {
        "run": tracker.name,
        "path": str(tracker.run.path),
        "source": tracker.run.format,
        "framework": understood.framework,
        "state": stands.state,
        "state_evidence": stands.evidence,
        "points": facts.points,
        "first_step": facts.first_step,
        "last_step": facts.last_step,
        "attempts": tracker.attempts,
        "signals": understood.signals,
        "unmapped": understood.unmapped,
        "not_judged": [
            {"detector": name, "missing": signals} for name, signals in lacking.items() if signals
        ],
        "complaints": [str(complaint) for complaint in run.complaints],
        "incidents": [incident_body(incident) for incident in run.incidents.values()],
    }
