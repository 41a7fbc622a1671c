"""Incidents of one training that keeps several logs.

Hugging Face's Trainer writes its state beside what it reports to TensorBoard and W&B, Lightning's loggers
come in pairs. Each log is a run of its own, and each has the incident; a person is to hear of it once.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sentinel.alerts.incident import Incident

_SAME_MOMENT_SECONDS = 600.0  # loggers buffer, and not all for equally long
_SAME_NUMBER = 0.01  # relative; TensorBoard rounds to float32, a console to few digits


class KnownIncidents:
    """Incidents of all runs, among which the duplicates of one are found without looking at all."""

    def __init__(self, incidents: Iterable[Incident]) -> None:
        self._by_place: dict[tuple[Any, ...], dict[str, list[Incident]]] = {}
        for incident in incidents:
            by_format = self._by_place.setdefault(_place(incident), {})
            by_format.setdefault(_format(incident), []).append(incident)

    def duplicates_of(self, incident: Incident) -> Iterator[Incident]:
        """Those for which `same_finding` holds; a thousand runs of one format cost nothing."""
        for format_, others in self._by_place.get(_place(incident), {}).items():
            if format_ != _format(incident):
                yield from (other for other in others if same_finding(incident, other))


def same_finding(one: Incident, other: Incident) -> bool:
    """Whether two logs, of different formats, tell of the same problem of the same training.

    They agree in the steps, in the time where both know it, and in the numbers of the evidence unless one
    got worse since, which brings new ones. Two trainings may agree by chance only where the numbers are at
    a limit, as a share of 1 is, and the steps are the same all the same.
    """
    return (
        _format(one) != _format(other)
        and _place(one) == _place(other)
        and _same_moment(one.fired_time, other.fired_time)
        and (one.severity != other.severity or _same_numbers(one.evidence, other.evidence))
    )


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
