"""Compares what two configurations find in the same logs."""

from itertools import zip_longest

import msgspec

from sentinel.incidents.incident import Incident
from sentinel.replays.replay import Replay

_Series = tuple[str, str, int, str, str]
"""Run, stream, attempt, tag and detector. Incidents of one series follow one another."""


class Difference(msgspec.Struct, frozen=True):
    """An incident under the old and the new configuration; None under the one that does not find it."""

    old: Incident | None
    new: Incident | None

    @property
    def either(self) -> list[Incident]:
        """The old one and the new one, or the only one that there is."""
        return [incident for incident in (self.old, self.new) if incident is not None]

    @property
    def kind(self) -> str:
        """`gained`, `lost`, `moved` to another step or severity, or `same`."""
        if self.old is None:
            return "gained"
        if self.new is None:
            return "lost"
        is_same = (self.old.fired_step, self.old.severity) == (self.new.fired_step, self.new.severity)
        return "same" if is_same else "moved"


def differences(old_replay: Replay, new_replay: Replay) -> list[Difference]:
    """Return all incidents of both replays, which are of the same logs, in the order of the runs.

    The incidents of a series are paired in their order.
    """
    old_incidents = _by_series(old_replay)
    new_incidents = _by_series(new_replay)
    return [
        Difference(*pair)
        for series in dict.fromkeys([*old_incidents, *new_incidents])
        for pair in zip_longest(old_incidents.get(series, ()), new_incidents.get(series, ()))
    ]


def _by_series(replay: Replay) -> dict[_Series, list[Incident]]:
    by_series: dict[_Series, list[Incident]] = {}
    for run in replay.runs:
        for incident in run.own:
            series = incident.run, incident.stream, incident.attempt, incident.tag, incident.detector
            by_series.setdefault(series, []).append(incident)
    for incidents in by_series.values():
        incidents.sort(key=lambda incident: incident.fired_step)
    return by_series
