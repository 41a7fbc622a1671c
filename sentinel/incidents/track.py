"""The state of one key: a finding that waits to hold, then an incident, its end and its return.

A track counts judged rows, not polls or seconds. An incident's life therefore depends only on the sequence
of verdicts, not on how the log was cut into polls.

`Latest` puts the newest findings of open incidents into words, for reminders. `Weighing` weighs the causes of
an open incident again when something else is found in its stream.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from sentinel.detectors.api import Cause, Declaration, Severity
from sentinel.detectors.interims import next_interim
from sentinel.detectors.reading.looks import Look
from sentinel.incidents.incident import Change, Event, Incident, State
from sentinel.incidents.text import Findings, summary, weighed
from sentinel.incidents.verdict_merge import Key, Limits, Verdict

REMEMBERED_ROWS = 10_000
"""A problem that returns within this many clean rows after its end is the same incident. A random walk of
100,000 rows around a threshold is then one incident, seldom two."""

FLAPPING_RETURNS = 3
"""An incident is flapping from this many returns on."""

ENDLESS = 1 << 62
"""More rows than any log has."""

_MAX_DOUBLINGS = 6  # each return doubles the clean rows that end it: 10 rows become 640 at most


class Track(msgspec.Struct):
    """The state of one key. ``incident`` is None while a finding waits to hold. A resolved incident stays for
    a while in case it returns.
    """

    key: Key
    index: int  # of the first row of the finding, as are the next two
    step: int
    time: float | None
    streak: list[int] = msgspec.field(
        default_factory=list
    )  # severities of the last rows found, ``hold`` at most
    last_step: int = 0
    last_time: float | None = None
    findings: int = 0
    clean: int = 0  # clean rows since the last finding
    alone: int | None = None  # findings since the incident that explained this one was resolved
    before_lost: State | None = None
    final: bool = False  # it began with a verdict on a run that was over
    look: Look = Look.WELL  # the last one
    interim: bool = False  # the last one found what the rows before it did not show
    # times to which a log has to grow -> rows at the first of the last interims that found what needs no more
    doubts: dict[float, int] = msgspec.field(default_factory=dict)
    doubt_until: int = 0  # rows at the last of them
    limits: Limits = (None, None)  # of the newest finding that has some
    withheld: Severity = Severity.CLEAN  # of a finding about an outcome that looks well as a whole
    incident: Incident | None = None

    def current(self, incident: Incident) -> Incident:
        """Return the incident with the newest finding of this track."""
        return incident.replace(last_step=self.last_step, last_time=self.last_time, findings=self.findings)

    def change(self, event: Event, incident: Incident) -> Change:
        """Record what an event made of the incident."""
        self.incident = incident
        return Change(event, self.current(incident))

    def begin(self, verdict: Verdict) -> None:
        """Let the finding begin with this verdict."""
        self.index = verdict.index
        self.step = verdict.step
        self.time = verdict.time

    def waits(self, verdict: Verdict) -> bool:
        """Return whether what an interim found has not stood for long enough yet.

        An interim at which a rule finds nothing says so, if it can judge at all; at which a card finds none,
        there is no verdict. What has to stand for less counts for what has to stand for longer, too.
        """
        if verdict.interim is None or verdict.final:
            return False
        rows = verdict.index + 1
        goes_on = not verdict.is_of_card or rows <= next_interim(self.doubt_until)
        doubts = self.doubts if verdict.interim and goes_on else {}
        needed = {growth for growth in (*doubts, verdict.interim) if growth and growth >= verdict.interim}
        self.doubts = doubts | {growth: doubts.get(growth, rows) for growth in needed}
        self.doubt_until = rows
        return bool(needed) and all(rows < growth * self.doubts[growth] for growth in needed)

    def see(self, look: Look | None) -> None:
        """Remember what the cards say at a look."""
        if look is not None:
            self.look = self._next_look(look)

    def count(self, last: Verdict, rows: int, detector: Declaration) -> None:
        """Count ``rows`` rows of one severity, of which ``last`` is the last. Change counts only."""
        was_judged = last.look is not None or last.interim is not None
        is_again = last.final and was_judged and not self.stays  # and was counted before
        self.see(last.look)
        if last.interim and last.is_of_card:
            self.look = max(self.look, Look.DOUBT)  # as a look would say here
        elif last.interim is not None:
            self.interim = last.interim > 0 and (not self.streak or self.streak[-1] < last.severity)
        if not last.severity:
            self.streak = []
            self.clean += 0 if is_again else rows
            return
        self.limits = self.limits if last.limits == (None, None) else last.limits
        self.streak = [*self.streak, *[last.severity] * min(rows, detector.hold)][-detector.hold :]
        self.last_step = last.step
        self.last_time = last.time
        self.clean = 0
        self.findings += rows
        if self.alone is not None:
            self.alone += rows

    @property
    def stays(self) -> bool:
        """Whether a card found it at a look, or the rule at an interim, and no later one says that all is
        well. What waits to stand for long enough stays as well.
        """
        return self._is_of_card or self.interim or (bool(self.doubts) and self.incident is None)

    @property
    def _is_of_card(self) -> bool:
        return self.look is not Look.WELL

    def _next_look(self, look: Look) -> Look:
        """Return what the cards say from a look on: a doubt alone begins nothing."""
        return Look.WELL if look is Look.DOUBT and not self._is_of_card else look

    def confirmed_severity(self, detector: Declaration) -> Severity:
        """Return the lowest severity of the last ``hold`` rows; CLEAN if fewer rows in a row were found."""
        return Severity(min(self.streak) if len(self.streak) == detector.hold else Severity.CLEAN)

    def is_over(self, detector: Declaration) -> bool:
        """Return whether enough clean rows have passed to resolve the incident or to drop the finding.

        What a card found stays until a look at which none would page, what only the run so far as a whole
        showed until an interim at which it does not.
        """
        return self.clean >= self._clean_rows(detector) and not self.stays

    def is_beyond(self, verdict: Verdict, detector: Declaration) -> bool:
        """Return whether the metric is still where the finding was, although a rule that compares it with
        what is usual calls it clean: what is usual is as bad by now.
        """
        above, below = self.limits
        level = None if above is None and below is None else verdict.level(detector.clear)
        if level is None:
            return False
        return (above is not None and level > above) or (below is not None and level < below)

    def skippable_rows(self, severity: int, detector: Declaration) -> int:
        """Return how many further rows of this severity cannot change the incident, if no other key does."""
        if not severity and self.stays:
            return ENDLESS
        if not severity:
            return max(0, self._clean_rows(detector) - self.clean - 1)
        incident = self.incident
        if incident is None or not incident.open or severity > max(incident.severity, self.withheld):
            return 0
        return ENDLESS if self.alone is None else detector.clear - self.alone - 1

    def _clean_rows(self, detector: Declaration) -> int:
        """Return after how many clean rows the incident ends, or the track is dropped."""
        if self.incident is None:
            return 1
        enough = detector.clear << min(self.incident.reopen_count, _MAX_DOUBLINGS)
        return enough if self.incident.open else enough + REMEMBERED_ROWS


class Latest:
    """The newest finding of each key and variant, until `update` puts it into words, once for many rows.

    ``detectors`` and ``parameters`` are those of the `IncidentTracker`.
    """

    def __init__(
        self, detectors: Mapping[str, Declaration], parameters: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._detectors = detectors
        self._parameters = parameters
        self._newest: dict[tuple[Key, str | None], Verdict] = {}

    def found(self, verdict: Verdict) -> None:
        """Remember a verdict, unless it is clean, or about a crash, of which the first finding counts."""
        if verdict.severity and self._detectors[verdict.key.detector].cause is not Cause.CRASH:
            self._newest[verdict.key, verdict.variant] = verdict

    def forget(self, key: Key) -> None:
        """Forget the findings of a key that a message is about to tell anew."""
        self._newest = {newest: verdict for newest, verdict in self._newest.items() if newest[0] != key}

    def update(self, tracks: Mapping[Key, Track]) -> None:
        """Write the numbers of these findings into the open incidents, if they are of the same variant."""
        for (key, variant), verdict in self._newest.items():
            track = tracks.get(key)
            incident = track.incident if track else None
            if track and incident and incident.open and variant == incident.variant:
                name = key.detector
                began = (track.step, track.time)
                latest = summary(verdict, began, self._detectors[name], self._parameters.get(name, {}))
                track.incident = incident.replace(latest="" if latest == incident.summary else latest)
        self._newest.clear()


def findings(open_: Iterable[tuple[Track, Incident]], stream: str) -> Findings:
    """Return the evidence of the open incidents of a stream. What a score card says of a whole run came
    before nothing in it, so it is no clue to the cause of another incident.
    """
    return {
        incident.detector: incident.evidence
        for _, incident in open_
        if incident.stream == stream and not incident.is_of_card
    }


class Weighing:
    """The last finding in the stream of each incident, weighed for causes once for many findings."""

    def __init__(self) -> None:
        self._clues: dict[Key, tuple[Verdict, Findings]] = {}

    def found(self, verdict: Verdict, open_: Iterable[tuple[Track, Incident]]) -> None:
        """Remember a verdict that changed an incident, for all others that are open in its stream. The causes
        of the changed one are up to date.
        """
        in_stream = [(track, incident) for track, incident in open_ if incident.stream == verdict.key.stream]
        evidence = findings(in_stream, verdict.key.stream)
        self._clues |= {track.key: (verdict, evidence) for track, _ in in_stream}
        self._clues.pop(verdict.key, None)

    def weighed(self, track: Track, incident: Incident) -> Incident:
        """Return the open incident of a track with the causes by what was found last."""
        clues = self._clues.pop(track.key, None)
        if clues is None:
            return incident
        verdict, evidence = clues
        of_all = {**evidence, incident.detector: incident.evidence}
        causes = weighed(incident.detector, incident.cited, incident.evidence, of_all, verdict)
        return incident.replace(causes=causes)

    def weigh_all(self, open_: Iterable[tuple[Track, Incident]]) -> None:
        """Write these causes into all open incidents, and forget what was found."""
        for track, incident in open_:
            track.incident = self.weighed(track, incident)
        self._clues.clear()
