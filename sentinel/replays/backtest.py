"""What another configuration would have found in the same logs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from sentinel.incidents.incident import Incident
from sentinel.replays.replay import Replay

_Series = tuple[str, str, int, str, str]
"""Run, stream, attempt, tag and detector: incidents of one series follow one another."""


@dataclass(frozen=True)
class Difference:
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
        before, after = ((incident.fired_step, incident.severity) for incident in (self.old, self.new))
        return "same" if before == after else "moved"


def differences(old: Replay, new: Replay) -> list[Difference]:
    """Return all incidents of both replays, which are of the same logs, in the order of the runs.

    The incidents of a series are paired in their order.
    """
    before = _by_series(old)
    after = _by_series(new)
    return [
        Difference(*pair)
        for series in dict.fromkeys([*before, *after])
        for pair in zip_longest(before.get(series, ()), after.get(series, ()))
    ]


def _by_series(replay: Replay) -> dict[_Series, Sequence[Incident]]:
    by_key: dict[_Series, list[Incident]] = {}
    for run in replay.runs:
        for incident in run.own:
            series = incident.run, incident.stream, incident.attempt, incident.tag, incident.detector
            by_key.setdefault(series, []).append(incident)
    return {series: sorted(own, key=lambda incident: incident.fired_step) for series, own in by_key.items()}
