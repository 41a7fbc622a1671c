"""Finds incidents that several logs of one training share, and those of logs that fell silent together.

Hugging Face's Trainer writes its state beside the logs for TensorBoard and W&B, and Lightning often uses two
loggers. Each log is a run of its own and has the incident, but a person should hear of it once.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from sentinel.alerts.incident import Incident

_SAME_MOMENT_SECONDS = 600.0  # loggers buffer, and not all for equally long
_SAME_NUMBER = 0.01  # relative; TensorBoard rounds to float32, a console to few digits

SameTraining = Callable[[str, str], bool]
"""Whether the logs with these run ids are of one training."""
Informed = Callable[[str], tuple[int, int]]
"""How much the log with this run id tells of its training."""


class KnownIncidents:
    """The incidents of all runs, indexed so that those that tell of the same are found quickly.

    ``same_training`` and ``informed`` are asked about runs only whose incidents are alike.
    """

    def __init__(
        self,
        incidents: Iterable[Incident],
        same_training: SameTraining = lambda *_: False,
        informed: Informed = lambda _: (0, 0),
    ) -> None:
        self._same_training = same_training
        self._informed = informed
        self._by_place: dict[tuple[Any, ...], list[Incident]] = {}
        self._together: dict[tuple[Any, ...], list[Incident]] = {}
        for incident in incidents:
            self._by_place.setdefault(_place(incident), []).append(incident)
            if silence := _common_silence(incident):
                self._together.setdefault(silence, []).append(incident)

    def silent_together(self, incident: Incident) -> Iterator[Incident]:
        """The incidents of other runs that fell silent together with its run."""
        others = self._together.get(_common_silence(incident), ())
        yield from (other for other in others if other.id != incident.id)

    def duplicates_of(self, incident: Incident) -> Iterator[Incident]:
        """The incidents of other logs of the same training that tell of the same."""
        for other in self._by_place.get(_place(incident), ()):
            if same_finding(incident, other) and self._same_training(incident.run, other.run):
                yield other

    def tells_more(self, other: Incident, incident: Incident) -> bool:
        """Whether the log of ``other`` is better informed, so that it speaks for the training."""
        return self._informed(other.run) > self._informed(incident.run)


def same_finding(one: Incident, other: Incident) -> bool:
    """Whether two logs report the same problem, if they are of one training.

    Their steps agree, and so do their times if both are known. The numbers of the evidence agree too, unless
    the severities differ: an escalation brings new numbers.
    """
    return (
        one.run != other.run
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


def _same_moment(one: float | None, other: float | None) -> bool:
    return one is None or other is None or abs(one - other) <= _SAME_MOMENT_SECONDS


def _same_numbers(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    pairs = [(one[name], other[name]) for name in one.keys() & other.keys()]
    numbers = [pair for pair in pairs if all(isinstance(value, int | float) for value in pair)]
    return bool(numbers) and all(math.isclose(*pair, rel_tol=_SAME_NUMBER) for pair in numbers)
