"""Finds incidents that several logs of one training share, and those of logs that fell silent together.

Hugging Face's Trainer writes its state beside the logs for TensorBoard and W&B, and Lightning often uses two
loggers. Each log is a run of its own and has the incident, but a person should hear of it once.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from sentinel.common.text import quoted
from sentinel.incidents.incident import Incident

_SAME_MOMENT_SECONDS = 600.0  # loggers buffer, and not all for equally long
# of which the second may quote the line of the first
_ERROR = "console-error"
_CRASH = "run-crashed"
SAME_STEPS = 0.2
"""Of the step. Not all logs have each step, so the same trouble fires at a later one in some."""

_SAME_NUMBER = 0.01  # relative; TensorBoard rounds to float32, a console to few digits

SameTraining = Callable[[str, str, bool], bool]
"""Whether the logs with these run ids are of one training; with True, whether that is sure."""
Informed = Callable[[str], tuple[int, int]]
"""How much the log with this run id tells of its training."""


class JoinKeys(Protocol):
    """What a log may share with others of its training. Two that share nothing are of two trainings, and two
    of one format are unless they share one of the processes, which are joints as well.
    """

    @property
    def format(self) -> str:
        """The format of the log."""

    @property
    def join_keys(self) -> frozenset[str]:
        """Its places, ids and processes."""

    @property
    def processes(self) -> frozenset[str]:
        """Those that join logs of one format, too."""


@dataclass(frozen=True)
class _Anything:
    format: str = ""
    join_keys: frozenset[str] = frozenset({""})
    processes: frozenset[str] = frozenset({""})


_ByJoint = dict[str, dict[str, list[Incident]]]
"""Incidents by a joint of their log and by its format."""


class KnownIncidents:
    """The incidents of all runs, indexed so that those that tell of the same are found quickly.

    ``same_training`` and ``informed`` are asked only about runs that share one of the ``joints`` and whose
    incidents are alike.
    """

    def __init__(
        self,
        incidents: Iterable[Incident],
        same_training: SameTraining = lambda *_: False,
        informed: Informed = lambda _: (0, 0),
        joints: Callable[[str], JoinKeys] = lambda _: _Anything(),
    ) -> None:
        self._is_same_training = same_training
        self._informed = informed
        self._join_keys = joints
        self._by_kind: dict[tuple[str, str], list[Incident]] = {}
        self._by_joint: dict[tuple[str, str], _ByJoint] = {}  # by kind, where it is asked
        self._together: dict[tuple[Any, ...], list[Incident]] = {}
        for incident in incidents:
            self._by_kind.setdefault(kind_of(incident), []).append(incident)
            if silence := outage_key(incident):
                self._together.setdefault(silence, []).append(incident)

    def silent_together(self, incident: Incident) -> Iterator[Incident]:
        """Yield the incidents of other runs that fell silent together with its run."""
        others = self._together.get(outage_key(incident), ())
        yield from (other for other in others if other.id != incident.id)

    def duplicates_of(self, incident: Incident) -> Iterator[Incident]:
        """Yield the incidents of other logs of the same training that tell of the same."""
        if all(other.run == incident.run for other in self._by_kind.get(kind_of(incident), ())):
            return
        by_joint = self._joined(kind_of(incident))
        log = self._join_keys(incident.run)
        alike = {
            other.id: other
            for joint in log.join_keys
            for format_, others in by_joint.get(joint, {}).items()
            if format_ != log.format or joint in log.processes
            for other in others
        }
        for other in alike.values():
            if same_finding(incident, other):
                differ = not _same_numbers(incident, other)
                if self._is_same_training(incident.run, other.run, differ):
                    yield other

    def crashes_that_say(self, incident: Incident) -> Iterator[Incident]:
        """Yield the crashes of other logs of the training that tell the line which this incident is about."""
        if (crash := as_crash(incident)) is not None:
            line = incident.evidence["text"]
            yield from (other for other in self.duplicates_of(crash) if quoted(str(line)) in other.summary)

    def _joined(self, kind: tuple[str, str]) -> _ByJoint:
        if (known := self._by_joint.get(kind)) is None:
            known = self._by_joint[kind] = {}
            for incident in self._by_kind[kind]:
                log = self._join_keys(incident.run)
                for joint in log.join_keys:
                    known.setdefault(joint, {}).setdefault(log.format, []).append(incident)
        return known

    def tells_more(self, other: Incident, incident: Incident) -> bool:
        """Return whether the log of ``other`` is better informed, so that it speaks for the training."""
        return self._informed(other.run) > self._informed(incident.run)


def same_finding(this: Incident, other: Incident) -> bool:
    """Return whether two logs report the same problem, if they are of one training.

    It is of the same signal, or of one tag if that has no meaning. It began or was found at about the same
    step, unless it is of the whole run and a log has no steps, and at about the same time if both times are
    known. Where the logs are surely of one training, their numbers need not agree: a console rounds, and a
    log with fewer rows shows another peak.
    """
    return (
        this.run != other.run
        and kind_of(this) == kind_of(other)
        and _same_moment(this.fired_time, other.fired_time)
        and (
            _near(this.onset_step, other.onset_step)
            or _near(this.fired_step, other.fired_step)
            or (not kind_of(this)[1] and 0 in (this.fired_step, other.fired_step))
        )
    )


def as_crash(incident: Incident) -> Incident | None:
    """Return the crash that another log may tell instead of a printed error; None for anything else."""
    if incident.detector != _ERROR:
        return None
    return incident.replace(detector=_CRASH, signal="", tag="")


def outage_key(incident: Incident) -> tuple[Any, ...]:
    """Return what `stream-stall` says of runs that fell silent together: where and since when; else empty."""
    told = incident.evidence
    return (told["place"], told["since"]) if {"runs_silent", "place", "since"} <= told.keys() else ()


def kind_of(incident: Incident) -> tuple[str, str]:
    """Return what has to be equal of incidents that tell of the same: the detector, and the signal or the
    tag.
    """
    return incident.detector, incident.signal or incident.tag


def _near(this: int, other: int) -> bool:
    return abs(this - other) <= SAME_STEPS * max(this, other)


def _same_moment(this: float | None, other: float | None) -> bool:
    return this is None or other is None or abs(this - other) <= _SAME_MOMENT_SECONDS


def _same_numbers(this: Incident, other: Incident) -> bool:
    """Return whether the numbers of the evidence agree, as far as both have them. An escalation brings new
    ones.
    """
    if this.severity != other.severity:
        return True
    shared = (
        (this.evidence[name], other.evidence[name]) for name in this.evidence.keys() & other.evidence.keys()
    )
    pairs = [pair for pair in shared if all(isinstance(value, int | float) for value in pair)]
    return bool(pairs) and all(math.isclose(*pair, rel_tol=_SAME_NUMBER) for pair in pairs)
