"""The machine-readable reports: one JSON object."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sentinel.alerts.outcomes import Outcome
from sentinel.alerts.wire import incident_body
from sentinel.listing import ListedRun, Listing
from sentinel.replay import Replay, ReplayedRun
from sentinel.report.checks import checks
from sentinel.runs.log import Overview
from sentinel.runs.standings import observe, standings
from sentinel.runs.state import Standing


def document(replay: Replay, now: float) -> dict[str, Any]:
    """The whole replay, JSON-able. The states of the runs depend on the time of day ``now``."""
    stands = standings([observe(run.tracker.log, True, now) for run in replay.runs])
    runs = [_replayed(run, one, replay) for run, one in zip(replay.runs, stands, strict=True)]
    return {"schema": 1, "runs": runs, "comparisons": [asdict(one) for one in replay.comparisons]}


def listing_document(listing: Listing) -> dict[str, Any]:
    """The runs that were found, JSON-able."""
    return {
        "schema": 1,
        "runs": [_listed(run) for run in listing.runs],
        "complaints": [str(complaint) for complaint in listing.complaints],
    }


def _replayed(run: ReplayedRun, stands: Standing, replay: Replay) -> dict[str, Any]:
    overview = run.tracker.log.overview()
    signals, detectors = overview.understanding.signals, replay.pipeline.detectors
    no_clock = run.tracker.log.no_clock
    lacking = {name: one.demand.missing(signals, no_clock) for name, one in detectors.items()}
    return {
        **_described(overview, stands, run.stopped, lacking),
        "complaints": [str(complaint) for complaint in run.complaints],
        "checks": [
            {"catalogue": list(one.catalogue), "because": one.because, "settings": dict(one.settings)}
            for one in checks(run.tracker.log)
        ],
        "incidents": [
            {**incident_body(incident), "told": _told(run.told.get(incident.id, ()))}
            for incident in run.incidents.values()
        ],
    }


def _told(outcomes: Iterable[Outcome]) -> list[dict[str, str]]:
    """The decision of each sink about an incident, in order."""
    return [
        {"sink": one.sink, "event": one.decision.event, "reason": one.decision.reason} for one in outcomes
    ]


def _listed(run: ListedRun) -> dict[str, Any]:
    config = run.overview.facts.config
    return {
        **_described(run.overview, run.standing, run.stopped, run.lacking),
        "whole": run.whole,
        "config": {name: setting._asdict() for name, setting in config.items()},
    }


def _described(
    run: Overview, stands: Standing, stopped: str | None, lacking: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    understood = run.understanding
    return {
        "run": run.name,
        "path": run.path,
        "source": run.format,
        "framework": understood.framework,
        "state": stands.state,
        "state_evidence": stands.evidence,
        "stopped": stopped,
        "points": run.facts.points,
        "first_step": run.facts.first_step,
        "last_step": run.facts.last_step,
        "attempts": run.attempts,
        "signals": understood.signals,
        "unmapped": understood.unmapped,
        "not_judged": [
            {"detector": name, "missing": signals} for name, signals in lacking.items() if signals
        ],
    }
