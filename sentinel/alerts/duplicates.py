"""Finds incidents that several logs of one training share.

Hugging Face's Trainer writes its state beside the logs for TensorBoard and W&B, and Lightning often uses two
loggers. Each log is a run of its own and has the incident, but a person should hear of it once.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sentinel.alerts.incident import Incident

_SAME_MOMENT_SECONDS = 600.0  # loggers buffer, and not all for equally long
_SAME_NUMBER = 0.01  # relative; TensorBoard rounds to float32, a console to few digits


class KnownIncidents:
    """The incidents of all runs, indexed so that those that tell of the same are found quickly."""

    def __init__(self, incidents: Iterable[Incident]) -> None:
        self._by_place: dict[tuple[Any, ...], dict[str, list[Incident]]] = {}
        self._together: dict[tuple[Any, ...], list[Incident]] = {}
        for incident in incidents:
            by_format = self._by_place.setdefault(_place(incident), {})
            by_format.setdefault(_format(incident), []).append(incident)
            if silence := _common_silence(incident):
                self._together.setdefault(silence, []).append(incident)

    def telling_the_same(self, incident: Incident) -> Iterator[Incident]:
        """Those of other logs of the same training, and those of runs that fell silent together with its."""
        yield from self.duplicates_of(incident)
        silence = _common_silence(incident)
        yield from (other for other in self._together.get(silence, ()) if other.id != incident.id)

    def duplicates_of(self, incident: Incident) -> Iterator[Incident]:
        """The incidents for which `same_finding` holds. Runs of its own format are not compared."""
        for format_, others in self._by_place.get(_place(incident), {}).items():
            if format_ != _format(incident):
                yield from (other for other in others if same_finding(incident, other))


def same_finding(one: Incident, other: Incident) -> bool:
    """Whether two logs of different formats report the same problem of the same training.

    Their steps agree, and so do their times if both are known. The numbers of the evidence agree too, unless
    the severities differ: an escalation brings new numbers. Two trainings agree by chance only if their
    steps are the same and their numbers are at a limit, such as a share of 1.
    """
    return (
        _format(one) != _format(other)
        and _place(one) == _place(other)
        and _same_moment(one.fired_time, other.fired_time)
        and (one.severity != other.severity or _same_numbers(one.evidence, other.evidence))
    )


def _common_silence(incident: Incident) -> tuple[Any, ...]:
    """What `stream-stall` says of runs that fell silent together: where and since when; else empty."""
    told = incident.evidence
    return (told["place"], told["since"]) if {"runs_silent", "place", "since"} <= told.keys() else ()


def _place(incident: Incident) -> tuple[Any, ...]:
    return incident.detector, incident.signal, incident.onset_step, incident.fired_step


def _format(incident: Incident) -> str:
    return incident.run.partition(":")[0]


def _same_moment(one: float | None, other: float | None) -> bool:
    return one is None or other is None or abs(one - other) <= _SAME_MOMENT_SECONDS


def _same_numbers(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    pairs = [(one[name], other[name]) for name in one.keys() & other.keys()]
    numbers = [pair for pair in pairs if all(isinstance(value, int | float) for value in pair)]
    return bool(numbers) and all(math.isclose(*pair, rel_tol=_SAME_NUMBER) for pair in numbers)
