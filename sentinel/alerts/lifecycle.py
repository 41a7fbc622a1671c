"""From verdicts to incidents: hold, escalate, resolve, lose.

Everything is counted in judged rows and nothing in polls or seconds, so an incident's life depends
only on the sequence of verdicts and not on how it was cut. Only ``Book.silent`` is told of a clock.

A finding belongs to one detector on one tag of one stream and outlives a restart of the run: the next
attempt confirms it without a second page, or resolves it. Counts start afresh with an attempt.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from detectors.api import Detector, Severity
from sentinel.alerts.incident import Change, Event, Incident, State, format_message, incident_id
from sentinel.alerts.inhibition import Rules, builtin_rules


@dataclass(frozen=True)
class Key:
    """Whose verdict it is. Keys that differ only in the attempt are equal: see the module's text."""

    run: str
    stream: str
    attempt: int = field(compare=False)
    tag: str
    detector: str


class Verdict(msgspec.Struct, frozen=True):
    """A detector's word on one row of one series. ``severity`` 0 is a clean row."""

    key: Key
    signal: str
    index: int  # position of the row in its series
    step: int
    time: float | None
    position: int  # ordinal, within the stream, of the point that completed the row
    severity: int
    variant: str | None = None
    onset_step: int | None = None
    evidence: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Policy:
    """How long a finding must hold before it counts, and be gone before it is over, in judged rows."""

    hold: int = 2
    clear: int = 10


@dataclass(slots=True)
class _Track:
    """One key's way: a finding that waits to hold, or an open incident."""

    key: Key
    index: int  # of the first row of the finding, as are the next two
    step: int
    time: float | None
    recent: list[int] = field(default_factory=list)  # severities of the last ``hold`` rows
    last_step: int = 0
    last_time: float | None = None
    findings: int = 0
    clean: int = 0  # clean rows since the last finding
    alone: int | None = None  # findings since the incident that explained this one was resolved
    before_lost: State | None = None
    incident: Incident | None = None

    def current(self) -> Incident | None:
        """The incident with its newest finding."""
        return self.incident and self.incident.changed(
            last_step=self.last_step, last_time=self.last_time, findings=self.findings
        )


class Book:
    """The open incidents and waiting findings of one run.

    ``parameters`` are the configured thresholds of each detector where they are not the defaults.
    """

    def __init__(
        self,
        run: str,
        detectors: Mapping[str, Detector],
        parameters: Mapping[str, Mapping[str, Any]] | None = None,
        policy: Policy | None = None,
        rules: Rules | None = None,
    ) -> None:
        self._run = run
        self._detectors = detectors
        self._parameters = parameters or {}
        self._policy = policy or Policy()
        self._own_rules = rules
        self._tracks: dict[Key, _Track] = {}

    @property
    def _rules(self) -> Rules:
        return self._own_rules or builtin_rules()  # which a book without verdicts need not read

    def awake(self) -> set[Key]:
        """Keys for which a clean verdict matters; for all others it may be left out."""
        return set(self._tracks)

    def open(self) -> list[Incident]:
        """The open incidents, oldest first."""
        return [incident for track in self._tracks.values() if (incident := track.current())]

    def advance(self, verdicts: Iterable[Verdict]) -> list[Change]:
        """What the next verdicts change. All verdicts of one position must come in one call, in any order."""
        changes = (self._judge(verdict) for verdict in sorted(verdicts, key=self._place))
        return [change for change in changes if change]

    def silent(self, silent_seconds: float, lost_after_seconds: float) -> list[Change]:
        """Open incidents of a log that got nothing for too long are lost: nobody knows how they stand.

        Once the log goes on they are what they were before, without a word, since whoever was told of
        them still knows. To be called on every poll, after ``advance``.
        """
        lost = silent_seconds > lost_after_seconds
        changes = []
        for track in self._tracks.values():
            if track.incident is None:
                continue
            if lost and track.before_lost is None:
                track.before_lost = track.incident.state
                changes.append(self._change(Event.LOST, track, track.incident, state=State.LOST))
            elif not lost and track.before_lost is not None:
                track.incident = track.incident.changed(state=track.before_lost)
                track.before_lost = None
        return changes

    def dump(self) -> Any:
        """The state in built-in types."""
        return msgspec.to_builtins(list(self._tracks.values()))

    def restore(self, dumped: Any) -> None:
        """Go on where ``dump`` was called. Raises msgspec.ValidationError for what it did not make."""
        self._tracks = {track.key: track for track in msgspec.convert(dumped, list[_Track])}

    def _place(self, v: Verdict) -> tuple[str, int, int, int, str, str, int]:
        key = v.key
        rank = self._rules.rank(key.detector)
        return key.stream, v.position, key.attempt, rank, key.detector, key.tag, v.index

    def _judge(self, v: Verdict) -> Change | None:
        track = self._tracks.get(v.key)
        if track is not None and track.key.attempt != v.key.attempt:
            track = self._restarted(track, v)
        if track is None:
            if not v.severity:
                return None
            track = self._tracks[v.key] = _Track(v.key, v.index, v.step, v.time)
        track.recent = [*track.recent, v.severity][-self._policy.hold :]
        return self._found(track, v) if v.severity else self._not_found(track, v)

    def _restarted(self, track: _Track, v: Verdict) -> _Track | None:
        if track.incident is None:
            del self._tracks[track.key]
            return None
        track.key, track.recent, track.clean = v.key, [], 0
        return track

    def _not_found(self, track: _Track, v: Verdict) -> Change | None:
        track.clean += 1
        incident = track.incident
        if incident is not None and track.clean < self._policy.clear:
            return None
        del self._tracks[v.key]
        if incident is None:
            return None
        for other in self._tracks.values():
            if other.incident and other.incident.inhibited_by == incident.id:
                other.alone = 0
        return self._change(Event.RESOLVED, track, incident, state=State.RESOLVED, resolved_step=v.step)

    def _found(self, track: _Track, v: Verdict) -> Change | None:
        track.last_step, track.last_time, track.clean = v.step, v.time, 0
        track.findings += 1
        held = Severity(min(track.recent) if len(track.recent) == self._policy.hold else 0)
        incident = track.incident
        if incident is None:
            return self._fire(track, held, v) if held else None
        if held > incident.severity:
            return self._escalate(track, incident.changed(severity=held), v)
        if track.alone is not None:
            track.alone += 1
            if track.alone >= self._policy.clear:
                return self._release(track, incident)
        return None

    def _fire(self, track: _Track, severity: Severity, v: Verdict) -> Change:
        key = v.key
        incident = Incident(
            id=incident_id(self._run, key.stream, key.attempt, key.tag, key.detector, track.index),
            run=self._run,
            stream=key.stream,
            attempt=key.attempt,
            detector=key.detector,
            severity=severity,
            maturity=self._detectors[key.detector].maturity,
            signal=v.signal,
            tag=key.tag,
            onset_step=track.step if v.onset_step is None else v.onset_step,
            onset_time=track.time,
            fired_step=v.step,
            fired_time=v.time,
            **self._said(v),
        )
        return self._change(Event.FIRING, track, incident, inhibited_by=self._cause(incident))

    def _escalate(self, track: _Track, incident: Incident, v: Verdict) -> Change:
        """Worse news may free an incident from its cause, never bind it: who was told goes on hearing."""
        track.before_lost = track.alone = None
        cause = incident.inhibited_by and self._cause(incident)
        return self._change(
            Event.ESCALATED, track, incident, state=State.ESCALATED, inhibited_by=cause, **self._said(v)
        )

    def _release(self, track: _Track, incident: Incident) -> Change | None:
        """What outlives its cause for as long as a resolve takes has another one, and is sent after all."""
        cause, track.alone = self._cause(incident), None
        if cause is None:
            return self._change(Event.FIRING, track, incident, inhibited_by=None)
        track.incident = incident.changed(inhibited_by=cause)
        return None

    def _cause(self, effect: Incident) -> str | None:
        """The id of the open incident that explains another; an explained one explains nothing itself."""
        open_ = [track.incident for track in self._tracks.values() if track.incident]
        causes = [i for i in open_ if i.inhibited_by is None and self._rules.explains(i, effect)]
        return min(causes, key=lambda i: self._rules.rank(i.detector)).id if causes else None

    def _said(self, v: Verdict) -> dict[str, Any]:
        """The words and numbers of a verdict."""
        detector = self._detectors[v.key.detector]
        variant = detector.variants.get(v.variant or "")
        thresholds = {name: parameter.default for name, parameter in detector.parameters.items()}
        thresholds.update(self._parameters.get(detector.name, {}))
        evidence = {name: _rounded(value) for name, value in v.evidence.items()}
        values = {**thresholds, **evidence, "step": v.step, "tag": v.key.tag, "signal": v.signal}
        return {
            "summary": format_message(variant.message, values) if variant else detector.name,
            "catalogue": variant.catalogue if variant else detector.catalogue,
            "evidence": evidence,
        }

    def _change(self, event: Event, track: _Track, incident: Incident, **fields: Any) -> Change:
        """Record what an incident has become."""
        track.incident = incident.changed(**fields)
        return Change(event, track.current() or track.incident)


def _rounded(value: Any) -> Any:
    """Nine digits: what lies beyond depends on where a sum over a window happened to begin."""
    return float(f"{value:.9g}") if isinstance(value, float) else value
