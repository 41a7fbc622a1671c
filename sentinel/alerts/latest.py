"""The newest findings of open incidents, in words, for who is reminded that an incident is still there."""

from collections.abc import Mapping
from typing import Any

from sentinel.alerts.statement import summary
from sentinel.alerts.track import Track
from sentinel.alerts.turns import Key, Verdict
from sentinel.detectors.api import Declaration


class Latest:
    """Keeps the newest finding of each key until `tell` puts it into words, once for many rows.

    ``detectors`` and ``parameters`` are those of the `Book`.
    """

    def __init__(
        self, detectors: Mapping[str, Declaration], parameters: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._detectors = detectors
        self._parameters = parameters
        self._newest: dict[Key, Verdict] = {}

    def found(self, v: Verdict) -> None:
        """Note a verdict; one that is clean says nothing."""
        if v.severity:
            self._newest[v.key] = v

    def tell(self, tracks: Mapping[Key, Track]) -> None:
        """Let the open incidents tell the numbers of these findings, if they are of the same trouble."""
        for key, v in self._newest.items():
            track = tracks.get(key)
            incident = track.incident if track else None
            if track and incident and incident.open and v.variant == incident.variant:
                name, began = key.detector, (track.step, track.time)
                told = summary(v, began, self._detectors[name], self._parameters.get(name, {}))
                track.incident = incident.changed(latest="" if told == incident.summary else told)
        self._newest.clear()
