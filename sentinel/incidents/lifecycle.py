"""Turns verdicts into incidents: they hold, escalate, resolve, reopen and are lost.

An incident belongs to one detector on one tag of one stream. It outlives a restart of the run: the next
attempt confirms it without a second alert, or resolves it. A problem that comes back soon after it was
resolved is the same incident. Each return doubles the clean rows that end it, so a signal that hovers at a
threshold is one incident that stays open.

Only ``IncidentTracker.silent`` and the moment of ``IncidentTracker.finalize`` depend on a clock. What
finalizing brought about is undone when the run goes on, so in the end only the log decides.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import msgspec

from sentinel.common.conversion import converter
from sentinel.detectors.api import Declaration, Severity
from sentinel.incidents.consent import Consent, Stored
from sentinel.incidents.incident import Change, Event, Incident, State, incident_id
from sentinel.incidents.inhibition import OF_AN_END, OF_THE_RUN, explains, goes_on_as
from sentinel.incidents.text import onset_of, statement
from sentinel.incidents.track import ENDLESS, FLAPPING_RETURNS, Latest, Track, Weighing, findings
from sentinel.incidents.verdict_merge import Key, Segment, Verdict, VerdictMerge, sort_key

_to_tracks = converter(tuple[list[Track], list[Track] | None, str, list[list[Stored]]])


class IncidentTracker:
    """The incidents and waiting findings of one run.

    ``detectors`` are all detectors whose verdicts may arrive. ``parameters`` are the configured thresholds of
    each detector that differ from its defaults.
    """

    def __init__(
        self,
        run: str,
        detectors: Mapping[str, Declaration],
        parameters: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self._run = run
        self.detectors = detectors
        self._parameters = parameters or {}
        self._tracks: dict[Key, Track] = {}
        self.before_finalize: list[Track] | None = None  # the tracks before the run was finalized
        self._end_of_run = ""  # with which it was finalized
        self._consent = Consent()
        self._latest = Latest(detectors, self._parameters)
        self._weighing = Weighing()

    def tracked_keys(self) -> set[Key]:
        """Return the keys for which a clean verdict matters. For all others it may be left out."""
        return set(self._tracks)

    @property
    def watches_run(self) -> bool:
        """Whether a clean verdict on the run as a whole matters."""
        return any(key.stream == OF_THE_RUN for key in self._tracks)

    def open(self) -> list[Incident]:
        """Return the open incidents, oldest first."""
        return [track.current(incident) for track, incident in self._open()]

    def advance(self, segments: Iterable[Segment]) -> list[Change]:
        """Apply the next verdicts, given as segments of equal severity, and return the changes.

        All verdicts of one position must come in one call; segments may come in any order.
        """
        merge = VerdictMerge(segments, self._skippable_rows, self._count)
        changes = [change for verdict in merge for change in self._judge_row(verdict, merge)]
        self._latest.update(self._tracks)
        self._weighing.weigh_all(self._open())
        return changes

    def finalize(self, segments: Iterable[Segment], end: str = "") -> list[Change]:
        """Apply the verdicts on a run that is over, once until `undo_finalize`, and again when its end
        is known.

        ``end`` says that in words; it is empty as long as nothing is known. Open incidents end with the run.
        """
        if self.before_finalize is not None and end in ("", self._end_of_run):
            return []
        if self.before_finalize is None:
            self.before_finalize = [copy(track) for track in self._tracks.values()]
        self._end_of_run = end
        open_before = [track.key for track, _ in self._open() if not track.final]
        changes = self.advance(segments)
        return [*changes, *(self._ended(open_before, end) if end else ())]

    def _ended(self, keys: Iterable[Key], end: str) -> Iterator[Change]:
        """Yield the ends of the incidents that were open when the run ended. That resolves none of them."""
        for track in (self._tracks[key] for key in keys if key in self._tracks):
            incident = track.incident
            if incident is not None and incident.open and incident.ended != end:
                state = track.before_lost or incident.state
                track.before_lost = None
                yield track.change(Event.ENDED, incident.replace(state=state, ended=end))

    def undo_finalize(self) -> list[Change]:
        """Undo what silence and `finalize` brought about, because the run goes on.

        Lost incidents return to their earlier state, without a change. Incidents that finalizing began are
        withdrawn. Incidents that it changed are again as they were; one that it reopened is resolved. Other
        incidents of the run as a whole have no part in this.
        """
        self._consent.forget_end()
        changes = [] if self.before_finalize is None else self._restore_before(self.before_finalize)
        for track, incident in self._open():
            if track.before_lost is not None:
                track.incident = incident.replace(state=track.before_lost)
                track.before_lost = None
        return changes

    def go_on_elsewhere(self) -> list[Change]:
        """Withdraw what was found because the run crashed or stopped: another log shows that it goes on."""
        changes = []
        for track, incident in self._open():
            if self.detectors[track.key.detector].cause in OF_AN_END:
                changes.append(track.change(Event.RESOLVED, incident.replace(state=State.WITHDRAWN)))
                del self._tracks[track.key]
        return changes

    def _restore_before(self, before_finalize: Sequence[Track]) -> list[Change]:
        """Restore the tracks from before `finalize`, and return the ends of what it began or reopened."""
        finalized = self._open()
        of_run = {
            key: track for key, track in self._tracks.items() if key.stream == OF_THE_RUN and not track.final
        }
        of_streams = {track.key: track for track in before_finalize if track.key.stream != OF_THE_RUN}
        self._tracks = of_streams | of_run
        self.before_finalize = None
        self._end_of_run = ""
        restored = {track.incident.id: track.incident for track in self._tracks.values() if track.incident}
        for track, effect in self._open():
            if effect.inhibited_by not in restored and track.alone is None:
                # Its cause was withdrawn, or something of the run as a whole may explain it by now.
                track.incident = effect.replace(inhibited_by=self._cause(effect))
        return [*_undone(finalized, restored)]

    def silent(self, silent_seconds: float, lost_after_seconds: float) -> list[Change]:
        """Mark the open incidents of a log that was silent for too long as lost.

        Incidents of the run as a whole are not lost, because they do not need new rows, and neither are those
        of a run that was finalized. Call this after ``advance``.
        """
        if silent_seconds <= lost_after_seconds:
            return []
        changes = []
        for track, incident in self._open():
            if incident.stream == OF_THE_RUN:
                continue
            if track.before_lost is None and self.before_finalize is None:
                track.before_lost = incident.state
                changes.append(track.change(Event.LOST, incident.replace(state=State.LOST)))
        return changes

    def dump(self) -> Any:
        """Return the state in built-in types."""
        tracks = list(self._tracks.values())
        return msgspec.to_builtins([tracks, self.before_finalize, self._end_of_run, self._consent.dump()])

    def restore(self, dumped: Any) -> None:
        """Restore what ``dump`` gave, without detectors that no longer exist.

        Raises msgspec.ValidationError for anything else.
        """
        tracks, before_finalize, self._end_of_run, opinions = _to_tracks(dumped)
        self._consent.restore(opinions)
        self._tracks = {track.key: track for track in self._with_detector(tracks)}
        self.before_finalize = None if before_finalize is None else self._with_detector(before_finalize)

    def _with_detector(self, tracks: Iterable[Track]) -> list[Track]:
        """Return those of detectors that exist, as tracks of this run: its log may have been moved since."""
        judged_tracks = [track for track in tracks if track.key.detector in self.detectors]
        for track in judged_tracks:
            if track.key.run != self._run:
                track.key = replace(track.key, run=self._run)
                track.incident = track.incident and track.incident.replace(run=self._run)
        return judged_tracks

    def _open(self) -> list[tuple[Track, Incident]]:
        return [
            (track, track.incident)
            for track in self._tracks.values()
            if track.incident and track.incident.open
        ]

    def _skippable_rows(self, verdict: Verdict) -> int:
        if track := self._tracks.get(verdict.key):
            return track.skippable_rows(verdict.severity, self.detectors[verdict.key.detector])
        return 0 if verdict.severity else ENDLESS

    def _count(self, last: Verdict, rows: int) -> None:
        if track := self._tracks.get(last.key):
            track.count(last, rows, self.detectors[last.key.detector])
            self._latest.found(last)

    def _judge_row(self, verdict: Verdict, merge: VerdictMerge) -> Iterator[Change]:
        if verdict.opinion is not None:
            self._consent.hear(verdict, verdict.opinion)
            yield from self._consented_to(verdict, merge)
            return
        detector = self.detectors[verdict.key.detector]
        track = self._tracks.get(verdict.key)
        if track is not None and track.key.attempt != verdict.key.attempt:
            track = self._restarted(track, verdict)
        if track is None:
            if not verdict.severity:
                return
            track = self._tracks[verdict.key] = Track(
                verdict.key, verdict.index, verdict.step, verdict.time, final=verdict.final
            )
        if track.waits(verdict):
            track.see(verdict.look)
            return
        if not track.findings:
            track.begin(verdict)
        track.count(verdict, 1, detector)
        self._latest.found(verdict)
        if verdict.severity:
            for change in self._found(track, detector, verdict):
                self._weighing.found(verdict, self._open())
                yield change
        elif track.is_over(detector) and not self._has_open_effect(track.incident):
            if track.incident is not None and track.incident.open and track.is_beyond(verdict, detector):
                track.clean = 0
            else:
                yield from self._end(track, verdict, merge)

    def _restarted(self, track: Track, verdict: Verdict) -> Track | None:
        """Carry an open incident into the next attempt, and forget everything else."""
        if track.incident is None or not track.incident.open:
            del self._tracks[track.key]
            return None
        track.key = verdict.key
        track.streak = []
        track.clean = 0
        track.doubts = {}
        track.withheld = Severity.CLEAN
        return track

    def _found(self, track: Track, detector: Declaration, verdict: Verdict) -> Iterator[Change]:
        fires = verdict.final or verdict.is_of_card or bool(verdict.interim)
        severity = Severity(verdict.severity) if fires else track.confirmed_severity(detector)
        severity = self._as_consented(track, detector, severity, verdict)
        if severity and track.incident is None:
            yield self._begin_change(Event.FIRING, track, self._incident(track, severity, verdict))
        elif severity and track.incident and not track.incident.open:
            yield self._reopen(track, track.incident, verdict)
        incident = track.incident
        if incident is None or not incident.open:
            return
        if severity > incident.severity:
            worse = incident.replace(
                severity=severity, state=State.ESCALATED, **self._statement(track, verdict)
            )
            if verdict.variant != incident.variant:  # another problem, which began when its own points did
                worse = worse.replace(**onset_of(verdict, incident.onset_step, incident.onset_time))
            yield self._begin_change(Event.ESCALATED, track, worse)
        elif track.alone is not None and track.alone >= detector.clear:  # it outlived its cause
            incident = self._weighing.weighed(track, incident)
            yield self._begin_change(Event.FIRING, track, incident.replace(latest=""))

    def _as_consented(
        self, track: Track, detector: Declaration, severity: Severity, verdict: Verdict
    ) -> Severity:
        """Return how bad a finding may be called: one about an outcome that looks well as a whole informs."""
        incident = track.incident
        told = incident.severity if incident is not None and incident.open else Severity.INFO
        if detector.needs_consent and severity > max(told, track.withheld):
            onset = onset_of(verdict, track.step, track.time)["onset_step"]
            if not self._consent.is_given(verdict.key.stream, verdict.key.attempt, onset):
                track.withheld = severity
        return min(severity, Severity.INFO) if severity <= track.withheld else severity

    def _consented_to(self, opinion: Verdict, merge: VerdictMerge) -> Iterator[Change]:
        """Page what was withheld in a stream whose outcome looks ill by now."""
        key = opinion.key
        withheld = [
            (track, incident)
            for track, incident in self._open()
            if track.withheld and (track.key.stream, track.key.attempt) == (key.stream, key.attempt)
            if self._consent.is_given(key.stream, key.attempt, incident.onset_step)
        ]
        for track, incident in withheld:
            merge.advance_to(track.key, sort_key(opinion))
            severity = track.withheld
            track.withheld = Severity.CLEAN
            if track.clean and not track.stays:
                continue  # it pages when it is found again
            self._latest.forget(track.key)
            paged = self._weighing.weighed(track, incident).replace(
                severity=severity,
                state=State.ESCALATED,
                fired_step=opinion.step,
                fired_time=opinion.time,
                latest="",
            )
            yield self._begin_change(Event.ESCALATED, track, paged)

    def _has_open_effect(self, incident: Incident | None) -> bool:
        """Return whether an incident that this one explains is the same problem and still open, so that this
        one must stay open although its own rows are clean.
        """
        return incident is not None and any(
            goes_on_as(incident, effect, self.detectors) for _, effect in self._open()
        )

    def _end(self, track: Track, verdict: Verdict, merge: VerdictMerge) -> Iterator[Change]:
        """Resolve an open incident; forget a finding that did not hold or an incident that did not return."""
        incident = track.incident
        if incident is None or not incident.open:
            del self._tracks[verdict.key]
            return
        track.before_lost = None
        track.alone = None
        track.withheld = Severity.CLEAN
        incident = self._weighing.weighed(track, incident)
        ended = self._end_of_run if verdict.final else ""  # which answers a question
        resolved = incident.replace(state=State.RESOLVED, resolved_step=verdict.step, latest="", ended=ended)
        yield track.change(Event.RESOLVED, resolved)
        if incident.attempt != verdict.key.attempt:
            del self._tracks[verdict.key]  # findings from now on belong to the present attempt
        for other, effect in self._open():
            if effect.inhibited_by == incident.id:
                merge.advance_to(other.key, sort_key(verdict))
                cause = self._cause(effect)
                other.alone = None if cause else 0
                other.incident = effect.replace(inhibited_by=cause or effect.inhibited_by)

    def _reopen(self, track: Track, incident: Incident, verdict: Verdict) -> Change:
        reopen_count = incident.reopen_count + 1
        event = Event.FLAPPING if reopen_count == FLAPPING_RETURNS else Event.REOPENED
        reopened = incident.replace(
            reopen_count=reopen_count,
            state=State.FIRING,
            resolved_step=None,
            ended="",
            **self._statement(track, verdict),
        )
        return self._begin_change(event, track, reopened)

    def _begin_change(self, event: Event, track: Track, incident: Incident) -> Change:
        """Record a change of an incident, and which incidents now explain each other."""
        track.before_lost = None
        track.alone = None
        change = track.change(event, incident.replace(inhibited_by=self._cause(incident)))
        root_id = change.incident.inhibited_by or incident.id
        explained = {incident.id}
        for other, effect in self._open():
            unexplained = effect.inhibited_by is None or other.alone is not None
            if unexplained and effect.id != root_id and explains(change.incident, effect, self.detectors):
                other.incident = effect.replace(inhibited_by=root_id)
                other.alone = None
                explained.add(effect.id)
        for other, effect in self._open():
            if effect.inhibited_by in explained - {root_id}:
                other.incident = effect.replace(inhibited_by=root_id)
        return change if event is not Event.FIRING else self._with_trouble(track, change)

    def _with_trouble(self, track: Track, change: Change) -> Change:
        """Return the beginning of an incident with the trouble that it takes over: what it explains."""
        incident = change.incident
        explained = [effect for _, effect in self._open() if effect.inhibited_by == incident.id]
        if not explained:
            return change
        first_effect = min(explained, key=lambda effect: (effect.attempt, effect.fired_step))
        return track.change(change.event, incident.replace(taken_over=first_effect.trouble))

    def _cause(self, effect: Incident) -> str | None:
        """Return the id of the open root incident that explains ``effect``; None if nothing does."""
        open_ = {incident.id: incident for _, incident in self._open()}
        for incident in open_.values():
            root_incident = open_.get(incident.inhibited_by or incident.id)
            if root_incident is None or effect.id in (incident.id, root_incident.id):
                continue
            if explains(incident, effect, self.detectors):
                return root_incident.id
        return None

    def _incident(self, track: Track, severity: Severity, verdict: Verdict) -> Incident:
        key = verdict.key
        return Incident(
            id=incident_id(
                self._run, key.stream, key.attempt, key.tag, key.detector, track.index, final=verdict.final
            ),
            run=self._run,
            stream=key.stream,
            attempt=key.attempt,
            detector=key.detector,
            severity=severity,
            maturity=self.detectors[key.detector].maturity,
            signal=verdict.signal,
            tag=key.tag,
            **onset_of(verdict, track.step, track.time),
            fired_step=verdict.step,
            fired_time=verdict.time,
            **self._statement(track, verdict),
        )

    def _statement(self, track: Track, verdict: Verdict) -> dict[str, Any]:
        name = verdict.key.detector
        began = (track.step, track.time)
        in_stream = findings(self._open(), verdict.key.stream)
        return statement(verdict, began, self.detectors[name], self._parameters.get(name, {}), in_stream)


def _undone(
    finalized: Iterable[tuple[Track, Incident]], restored: Mapping[str, Incident]
) -> Iterator[Change]:
    """Yield the ends of the incidents that `finalize` began or reopened.

    ``finalized`` are the open incidents after it, and ``restored`` the incidents before it, by id.
    """
    for track, incident in finalized:
        restored_incident = restored.get(incident.id)
        if restored_incident is None:
            yield Change(Event.RESOLVED, track.current(incident.replace(state=State.WITHDRAWN)))
        elif not restored_incident.open:
            yield Change(Event.RESOLVED, track.current(restored_incident))
