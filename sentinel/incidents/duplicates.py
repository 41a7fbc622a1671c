"""Finds incidents that several logs of one training report, and those of logs that fell silent together.

Hugging Face's Trainer writes its state beside the logs for TensorBoard and W&B, and Lightning often uses two
loggers. Each log is a run and has the incident, but a person should be notified of it once.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import msgspec

from sentinel.incidents.incident import Incident, near, same_moment

_MAX_NUMBER_DIFFERENCE = 0.01  # relative; TensorBoard rounds to float32, a console to few digits
_CRASHES = frozenset(("console-error", "rank-died", "run-crashed"))
"""Detectors that tell of the end of a training: what it printed, which process died, how it ended."""

SameTraining = Callable[[str, str, bool], bool]
"""Whether the logs with these run ids are of one training; with True, whether that is sure."""
Informed = Callable[[str], tuple[int, int]]
"""How much the log with this run id tells of its training."""


class JoinKeys(Protocol):
    """What a log may share with others of its training. Two logs that share nothing are of two trainings, and
    so are two of one format unless they share one of the processes, which are keys as well.
    """

    @property
    def format(self) -> str:
        """The format of the log."""

    @property
    def join_keys(self) -> frozenset[str]:
        """Its places, ids and processes."""

    @property
    def processes(self) -> frozenset[str]:
        """The keys that join logs of one format, too."""


class _Anything(msgspec.Struct, frozen=True):
    format: str = ""
    join_keys: frozenset[str] = frozenset({""})
    processes: frozenset[str] = frozenset({""})


_ByJoinKey = dict[str, dict[str, list[Incident]]]
"""Incidents by a join key of their log and by its format."""


class KnownIncidents:
    """The incidents of all runs, indexed so that those that report the same problem are found quickly.

    ``same_training`` and ``informed`` are called only for runs that share one of the ``joints`` and have
    similar incidents.
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
        self._by_join_key: dict[tuple[str, str], _ByJoinKey] = {}  # by kind, once it is needed
        self._by_outage: dict[tuple[Any, ...], list[Incident]] = {}
        for incident in incidents:
            self._by_kind.setdefault(kind_of(incident), []).append(incident)
            if outage := outage_key(incident):
                self._by_outage.setdefault(outage, []).append(incident)

    def silent_together(self, incident: Incident) -> Iterator[Incident]:
        """Yield the incidents of other runs that fell silent together with its run."""
        silent = self._by_outage.get(outage_key(incident), ())
        yield from (other for other in silent if other.id != incident.id)

    def duplicates_of(self, incident: Incident) -> Iterator[Incident]:
        """Yield the incidents of other logs of the same training that report the same problem.

        What joins two logs may be a third one, such as the TensorBoard log of Hugging Face's Trainer, which
        shares the process with the console and the place with the trainer's state.
        """
        duplicates = {incident.id: incident}
        unsearched = [incident]
        while unsearched:
            for other in self._direct_duplicates_of(unsearched.pop()):
                if other.id not in duplicates and other.run != incident.run:
                    duplicates[other.id] = other
                    unsearched.append(other)
                    yield other

    def _direct_duplicates_of(self, incident: Incident) -> Iterator[Incident]:
        """Yield those of which a log itself shares something with that of the incident."""
        if all(other.run == incident.run for other in self._by_kind.get(kind_of(incident), ())):
            return
        by_join_key = self._indexed(kind_of(incident))
        log = self._join_keys(incident.run)
        candidates = {
            other.id: other
            for key in log.join_keys
            for format_, others in by_join_key.get(key, {}).items()
            if format_ != log.format or key in log.processes
            for other in others
        }
        for other in candidates.values():
            if same_finding(incident, other):
                differ = not _same_numbers(incident, other)
                if self._is_same_training(incident.run, other.run, differ):
                    yield other

    def _indexed(self, kind: tuple[str, str]) -> _ByJoinKey:
        """Return the incidents of a kind by join key and format."""
        if kind not in self._by_join_key:
            index: _ByJoinKey = {}
            for incident in self._by_kind[kind]:
                log = self._join_keys(incident.run)
                for key in log.join_keys:
                    index.setdefault(key, {}).setdefault(log.format, []).append(incident)
            self._by_join_key[kind] = index
        return self._by_join_key[kind]

    def tells_more(self, other: Incident, incident: Incident) -> bool:
        """Return whether the log of ``other`` is better informed, so that it speaks for the training."""
        return self._informed(other.run) > self._informed(incident.run)


def same_finding(incident: Incident, other: Incident) -> bool:
    """Return whether two logs report the same problem, if they are of one training.

    It is of the same signal, or of one tag if that has no meaning. It began or was found at about the same
    step, unless it is of the whole run and a log has no steps, and at about the same time if both times are
    known. Where the logs are surely of one training, their numbers need not agree: a console rounds, and a
    log with fewer rows shows another peak.
    """
    return (
        incident.run != other.run
        and kind_of(incident) == kind_of(other)
        and same_moment(incident.fired_time, other.fired_time)
        and (
            near(incident.onset_step, other.onset_step)
            or near(incident.fired_step, other.fired_step)
            or (not kind_of(incident)[1] and 0 in (incident.fired_step, other.fired_step))
        )
    )


def outage_key(incident: Incident) -> tuple[Any, ...]:
    """Return what `stream-stall` says of runs that fell silent together: where and since when; else empty."""
    evidence = incident.evidence
    is_outage = {"runs_silent", "place", "since"} <= evidence.keys()
    return (evidence["place"], evidence["since"]) if is_outage else ()


def kind_of(incident: Incident) -> tuple[str, str]:
    """Return what is equal in incidents that report the same problem: the detector, and the signal or the
    tag. A training crashes once, whichever of its logs tell of that.
    """
    is_crash = incident.detector in _CRASHES
    return ("crash", "") if is_crash else (incident.detector, incident.signal or incident.tag)


def _same_numbers(incident: Incident, other: Incident) -> bool:
    """Return whether the numbers in both pieces of evidence agree. An escalation brings new ones."""
    if incident.severity != other.severity:
        return True
    shared = (
        (incident.evidence[name], other.evidence[name])
        for name in incident.evidence.keys() & other.evidence.keys()
    )
    pairs = [pair for pair in shared if all(isinstance(value, int | float) for value in pair)]
    return bool(pairs) and all(math.isclose(*pair, rel_tol=_MAX_NUMBER_DIFFERENCE) for pair in pairs)
