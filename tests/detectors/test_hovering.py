"""A run that hovers at a detector's threshold is one incident, and a handful of messages."""

from collections import Counter
from itertools import groupby

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace

from sentinel.detection.row_detection import Verdicts
from sentinel.detectors.api import Detector, Severity
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.schema import INDEX, SEVERITY, STEP
from sentinel.incidents.duplicates import KnownIncidents
from sentinel.incidents.incident import Event
from sentinel.incidents.lifecycle import IncidentTracker
from sentinel.notifications.decide import REPEAT_SECONDS, SinkPolicy
from sentinel.notifications.routing import RoutingContext, RunChanges, route_changes
from sentinel.series.plan import KnownOfStream, Plans
from sentinel.series.stream import SeriesRows
from sentinel.series.windows import frame
from sentinel.sources.identity import RunIdentity
from tests.detectors.golden import Scenario, Stream, shipped, windows

pytestmark = pytest.mark.long

ROWS = 100_000
ROWS_A_POLL = 4000
SECONDS_A_ROW = 3.0
MAX_INCIDENTS = 3
MAX_NEWS = 4  # of an incident: that it fires, gets worse twice, and flaps
REPEATS = ROWS * SECONDS_A_ROW / REPEAT_SECONDS
WANDERING = ((0.1, 0.9), (0.2, 0.999))
"""How the walk moves: standard deviation, as a share of the scenario's length, and what is left of it from
row to row. It is restless and wanders for thousands of rows, too."""

SINK = SinkPolicy("sink", Severity.INFO, include_preview=True)
NOTHING_KNOWN = KnownOfStream(None, {}, Plans())
RUN = RunIdentity(run="hovering", path="/runs/hovering", framework=None)

DETECTORS = [d for d in all_detectors().values() if isinstance(d, Detector) and d.demand.judges]
"""Those that judge what a run logs; what sentinel counts itself does not hover."""


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda d: d.name)
def test_hovering_is_one_incident(detector):
    scenario, fired_at = _threshold(detector)
    changes, told = _told(detector, _walk(scenario, fired_at), scenario.settings)
    fired = sum(change.event is Event.FIRING for change in changes)
    least = 0 if detector.history.earlier else 1  # a walk has no restart in it
    assert least <= fired <= MAX_INCIDENTS, Counter(change.event.value for change in changes)
    openings = sum(event is not Event.RESOLVED for event in told)
    assert openings <= fired * MAX_NEWS + REPEATS, Counter(told)
    assert len(told) <= 2 * openings


def _threshold(detector: Detector) -> tuple[Scenario, int]:
    """A golden scenario that has a threshold in it, if there is one, and the first step beyond it."""
    candidates = []
    for scenario in shipped()[detector.name]:
        found = scenario.verdicts.sort(INDEX)
        if beyond := found.filter(pl.col(SEVERITY) > 0)[STEP].to_list():
            before = found.filter(pl.col(SEVERITY) == 0, pl.col(STEP) < beyond[0])
            candidates.append((min(len(before), len(beyond)), scenario, beyond[0]))
    _, scenario, step = max(candidates, key=lambda candidate: candidate[0])
    return scenario, step


def _walk(scenario: Scenario, fired_at: int) -> list[Stream]:
    """The scenario until its finding holds, and from there on back and forth around the step given."""
    steps = np.unique(np.concatenate([stream.step for stream in scenario.streams]))
    centre = int(np.searchsorted(steps, fired_at))
    begin = min(centre + 1 + scenario.detector.hold * scenario.detector.every, len(steps))
    shocks = np.random.default_rng(0).standard_normal((ROWS - begin, len(WANDERING)))
    away = np.zeros(ROWS - begin)
    shocks[0] *= 1 - np.array(WANDERING)[:, 1]  # the first one enters with its whole weight
    for (spread, kept), own in zip(WANDERING, shocks.T, strict=True):
        walk = pl.Series(own).ewm_mean(alpha=1 - kept, adjust=False).to_numpy()
        away += spread * np.sqrt(1 - kept**2) / (1 - kept) * walk
    places = np.clip(np.round(centre + len(steps) * away), 0, len(steps) - 1).astype(int)
    places = np.concatenate([np.arange(begin), places])
    every = int(np.median(np.diff(steps)))
    new_steps = steps[0] + every * np.arange(ROWS)
    walks = []
    for stream in scenario.streams:
        value = np.full(len(steps), np.nan)
        value[np.searchsorted(steps, stream.step)] = stream.value
        logged = np.isin(steps, stream.step)[places]
        walks.append(Stream(stream.signal, new_steps[logged], value[places][logged]))
    return walks


def _told(detector: Detector, streams: list[Stream], settings: object) -> tuple[list, list[Event]]:
    """The changes of all incidents, and what a sink that wants everything is told, poll by poll."""
    points = sum(len(stream.step) for stream in streams)
    a_poll = points * ROWS_A_POLL // ROWS
    shown = windows(detector, streams, range(a_poll, points, a_poll), settings)
    judged = {
        n: SeriesRows("run", "s", view, 1, view.judged.value, window, NOTHING_KNOWN)
        for n, (view, window) in enumerate(shown)
    }
    found = detector.run(frame(detector, shown))
    stretches = (rows for _, rows in Verdicts(found, judged, detector).segments())
    tracker = IncidentTracker("run", {detector.name: detector})
    changes = []
    told = []
    sent = {}
    audience = RoutingContext([SINK], [], sent, KnownIncidents([]))
    for number, poll in groupby(stretches, lambda rows: rows[0].position // a_poll):
        changes += (new := tracker.advance(poll))
        now = number * ROWS_A_POLL * SECONDS_A_ROW
        decided = route_changes(RunChanges(RUN, new, tracker.open()), audience, now)
        told += [outcome.decision.event for outcome in decided if outcome.body]
        for events in sent.values():
            events.update({event: replace(one, waiting=False) for event, one in events.items()})
    return changes, told
