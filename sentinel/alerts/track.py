"""One key's way: a finding that waits to hold, an incident, its end, and its return.

Everything is counted in judged rows and nothing in polls or seconds, so an incident's life depends only on
the sequence of verdicts and not on how it was cut.
"""

from dataclasses import dataclass, field

from detectors.api import Declaration, Severity
from sentinel.alerts.incident import Incident, State
from sentinel.alerts.turns import Key, Verdict

REMEMBERED_ROWS = 10_000
"""Clean rows after its end in which an incident that comes back is the same one. A walk around a threshold
of 100,000 rows is then one incident, and seldom two, also where it wanders for thousands of rows."""

FLAPPING_RETURNS = 3
"""Returns that make an incident a flapping one."""

_MOST_DOUBLINGS = 6  # each return doubles the clean rows that end it: 10 rows become 640 at most
ENDLESS = 1 << 62


@dataclass(slots=True)
class Track:
    """What is known of one key. ``incident`` is None while a finding waits; once resolved it is kept for a
    while, in case it comes back.
    """

    key: Key
    index: int  # of the first row of the finding, as are the next two
    step: int
    time: float | None
    streak: list[int] = field(default_factory=list)  # severities of the last rows found, ``hold`` at most
    last_step: int = 0
    last_time: float | None = None
    findings: int = 0
    clean: int = 0  # clean rows since the last finding
    alone: int | None = None  # findings since the incident that explained this one was resolved
    before_lost: State | None = None
    incident: Incident | None = None

    def current(self, incident: Incident) -> Incident:
        """Its incident with its newest finding."""
        return incident.changed(last_step=self.last_step, last_time=self.last_time, findings=self.findings)

    def count(self, last: Verdict, rows: int, detector: Declaration) -> None:
        """Take in so many rows of one severity, of which this is the last, whatever follows from them."""
        if not last.severity:
            self.streak, self.clean = [], self.clean + rows
            return
        self.streak = [*self.streak, *[last.severity] * min(rows, detector.hold)][-detector.hold :]
        self.last_step, self.last_time, self.clean = last.step, last.time, 0
        self.findings += rows
        if self.alone is not None:
            self.alone += rows

    def held(self, detector: Declaration) -> Severity:
        """How bad the finding was on each of the last ``hold`` rows; CLEAN if it was not there on all."""
        return Severity(min(self.streak) if len(self.streak) == detector.hold else Severity.CLEAN)

    def is_over(self, detector: Declaration) -> bool:
        """Whether an incident was gone for long enough to be resolved, or a finding did not hold."""
        return self.clean >= self._clean_rows(detector)

    def uneventful(self, severity: int, detector: Declaration) -> int:
        """How many more rows of this severity change nothing but counts, if nothing happens to other keys."""
        if not severity:
            return self._clean_rows(detector) - self.clean - 1
        incident = self.incident
        if incident is None or not incident.open or severity > incident.severity:
            return 0
        return ENDLESS if self.alone is None else detector.clear - self.alone - 1

    def _clean_rows(self, detector: Declaration) -> int:
        """Clean rows that end what this track is."""
        if self.incident is None:
            return 1
        enough = detector.clear << min(self.incident.returns, _MOST_DOUBLINGS)
        return enough if self.incident.open else enough + REMEMBERED_ROWS
