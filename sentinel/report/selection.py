"""Which incidents of a replay a report shows, and in which order its runs stand."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec
from msgspec.structs import replace

from sentinel.common.errors import SentinelError, UnknownName
from sentinel.detectors.severity import Severity

if TYPE_CHECKING:
    from sentinel.incidents.incident import Incident
    from sentinel.replays.judged import JudgedRun
    from sentinel.replays.replay import Replay

_SEVERITIES = {severity.label: severity for severity in Severity if severity}


Order = Literal["worst", "name", "newest"]
"""The run with the worst incident and then with the most first, by name, or what was written last first."""


class Selection(msgspec.Struct, frozen=True):
    """Incidents of these detectors or at least this severe that began at this step or time, or later.

    An incident is selected if one of ``detectors`` and ``severity`` fits it, or if there are neither.
    ``since`` is a step or seconds since the epoch, and ``text`` says it all in words.
    """

    detectors: Collection[str]
    severity: Severity | None
    since_step: int | None
    since_time: float | None
    text: str

    @classmethod
    def parse(cls, only: Sequence[str], since: str, detectors: Collection[str]) -> Self:
        """Return the selection that a person wrote.

        ``only`` holds names of ``detectors`` and of severities. ``since`` is a step, a date or an ISO 8601
        time, in UTC unless it says otherwise; empty for the whole run. Raises SentinelError for others.
        """
        for name in only:
            if name not in _SEVERITIES and name not in detectors:
                raise UnknownName("detector or severity", name, [*_SEVERITIES, *detectors])
        step = int(since) if since.isdecimal() else None
        time = None
        if since and step is None:
            try:
                moment = datetime.fromisoformat(since)
            except ValueError:
                problem = f"--since {since}: is neither a step nor a time (2026-01-31T12:00)"
                raise SentinelError(problem) from None
            time = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        severities = [_SEVERITIES[name] for name in only if name in _SEVERITIES]
        words = [f"{name} or worse" if name in _SEVERITIES else name for name in only]
        begin = f"since {'step ' if step is not None else ''}{since}" if since else ""
        selection_text = " ".join(filter(None, (", ".join(words), begin)))
        return cls({*only} - {*_SEVERITIES}, min(severities, default=None), step, time, selection_text)

    def apply(self, replay: "Replay") -> "Replay":
        """Reduce a replay to the selected incidents.

        It keeps the runs that have some, and those that could not be judged.
        """
        if not self.text:
            return replay
        runs = [
            replace(run, incidents={id_: each for id_, each in run.incidents.items() if self._selects(each)})
            for run in replay.runs
        ]
        selected = [run for run in runs if run.incidents or run.stopped]
        return replace(replay, runs=selected, selection=self.text)

    def _selects(self, incident: "Incident") -> bool:
        severe = self.severity is not None and incident.severity >= self.severity
        fits = severe or incident.detector in self.detectors or not (self.detectors or self.severity)
        is_late_step = self.since_step is None or incident.onset_step >= self.since_step
        began = incident.fired_time if incident.onset_time is None else incident.onset_time
        is_late_time = self.since_time is None or (began is not None and began >= self.since_time)
        return fits and is_late_step and is_late_time


def ordered(replay: "Replay", order: Order) -> "Replay":
    """Return the replay with its runs in this order; runs that are equal in it keep theirs."""
    return replace(replay, runs=sorted(replay.runs, key=ORDERS[order]))


ORDERS: Mapping[Order, Callable[["JudgedRun"], Any]] = {
    "worst": lambda run: (-run.worst, -len(run.own)),
    "name": lambda run: run.run_pipeline.log.name,
    "newest": lambda run: -(run.run_pipeline.log.metadata.last_time or 0.0),
}
