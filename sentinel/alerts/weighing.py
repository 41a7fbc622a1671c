"""Weighs the causes of an open incident again when something else is found in its stream."""

from collections.abc import Iterable

from sentinel.alerts.incident import Incident
from sentinel.alerts.statement import Findings, weighed
from sentinel.alerts.track import Track
from sentinel.alerts.turns import Key, Verdict


def findings(open_: Iterable[tuple[Track, Incident]], stream: str) -> Findings:
    """The evidence of the open incidents of a stream."""
    return {told.detector: told.evidence for _, told in open_ if told.stream == stream}


class Weighing:
    """Keeps what was found last beside each incident until its causes are needed, once for many findings."""

    def __init__(self) -> None:
        self._beside: dict[Key, tuple[Verdict, Findings]] = {}

    def found(self, v: Verdict, open_: Iterable[tuple[Track, Incident]]) -> None:
        """Note a verdict that changed an incident, among all that are open. Its own causes are as of now."""
        of_stream = [(track, told) for track, told in open_ if told.stream == v.key.stream]
        known = findings(of_stream, v.key.stream)
        self._beside |= {track.key: (v, known) for track, _ in of_stream}
        self._beside.pop(v.key, None)

    def weighed(self, track: Track, incident: Incident) -> Incident:
        """The open incident of a track with the causes by what was found last."""
        beside = self._beside.pop(track.key, None)
        if beside is None:
            return incident
        v, known = beside
        causes = weighed(incident.detector, incident.cited, incident.evidence, known, v)
        return incident.changed(causes=causes)

    def weigh_all(self, open_: Iterable[tuple[Track, Incident]]) -> None:
        """Let all open incidents tell these causes, and forget what was found."""
        for track, incident in open_:
            track.incident = self.weighed(track, incident)
        self._beside.clear()
