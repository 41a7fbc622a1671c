"""What a run logged and printed around its incidents, searched once for each incident."""

from collections.abc import Sequence

from sentinel.incidents.incident import Incident
from sentinel.report.logged import Sample, samples_near
from sentinel.report.printed import ConsoleExcerpt, Transcript
from sentinel.runs.log import RunLog


class Samples:
    """The texts, images and console lines of one run, by incident."""

    def __init__(self) -> None:
        self.problems: list[str] = []  # where nothing was searched, and why
        self._by_incident: dict[str, tuple[Sequence[Sample], ConsoleExcerpt | None]] = {}

    def add(self, log: RunLog, incidents: Sequence[Incident]) -> None:
        """Search for these incidents of a run."""
        new_incidents = [incident for incident in incidents if incident.id not in self._by_incident]
        onsets = [incident.onset_step for incident in new_incidents if incident.inhibited_by is None]
        samples, unsearched = samples_near(log.run, onsets) if onsets else ({}, ())
        transcript = Transcript(log)
        self._by_incident |= {
            incident.id: (samples.get(incident.onset_step, ()), transcript.around(incident))
            for incident in new_incidents
        }
        self.problems += [problem for problem in unsearched if problem not in self.problems]

    def near(self, incident: Incident) -> tuple[Sequence[Sample], ConsoleExcerpt | None]:
        """Return the texts and images nearest to the onset, and the console lines around it."""
        return self._by_incident.get(incident.id, ((), None))
