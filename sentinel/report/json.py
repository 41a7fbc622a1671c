"""The machine-readable reports: one JSON object, in the form that the README describes."""

from collections.abc import Mapping, Sequence
from typing import Any

from sentinel.alerts.wire import incident_body
from sentinel.listing import ListedRun, Listing
from sentinel.replay import Replay, ReplayedRun
from sentinel.run_state import Standing, standing
from sentinel.tracking import Tracker, Understanding


def document(replay: Replay) -> dict[str, Any]:
    """The whole replay, JSON-able."""
    return {"schema": 1, "runs": [_replayed(run, replay) for run in replay.runs]}


def listing_document(listing: Listing) -> dict[str, Any]:
    """The runs that were found, JSON-able."""
    return {
        "schema": 1,
        "runs": [_listed(run) for run in listing.runs],
        "complaints": [str(complaint) for complaint in listing.complaints],
    }


def _replayed(run: ReplayedRun, replay: Replay) -> dict[str, Any]:
    tracker, understood = run.tracker, run.tracker.understanding()
    stands = standing(tracker.ending, 0.0, tracker.facts.lost_after_seconds)  # by the log's own clock
    lacking = {name: understood.missing(d) for name, d in replay.pipeline.detectors.items()}
    return {
        **_described(tracker, understood, stands, lacking),
        "complaints": [str(complaint) for complaint in run.complaints],
        "incidents": [incident_body(incident) for incident in run.incidents.values()],
    }


def _listed(run: ListedRun) -> dict[str, Any]:
    config = run.tracker.facts.config
    return {
        **_described(run.tracker, run.understanding, run.standing, run.lacking),
        "whole": run.whole,
        "config": {name: setting._asdict() for name, setting in config.items()},
    }


def _described(
    tracker: Tracker, understood: Understanding, stands: Standing, lacking: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    return {
        "run": tracker.name,
        "path": str(tracker.run.path),
        "source": tracker.run.format,
        "framework": understood.framework,
        "state": stands.state,
        "state_evidence": stands.evidence,
        "points": tracker.facts.points,
        "first_step": tracker.facts.first_step,
        "last_step": tracker.facts.last_step,
        "attempts": tracker.attempts,
        "signals": understood.signals,
        "unmapped": understood.unmapped,
        "not_judged": [
            {"detector": name, "missing": signals} for name, signals in lacking.items() if signals
        ],
    }
