"""The states of runs that lie beside one another: one may continue where another one stopped."""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from sentinel.runs.copied_logs import silence_of
from sentinel.runs.end_inference import infer_end
from sentinel.runs.log import RunLog, RunOverview
from sentinel.runs.metadata import RunMetadata
from sentinel.runs.state import RunStatus, run_status
from sentinel.runs.training_groups import TrainingEvidence, is_same_training, trace_of
from sentinel.sources.base import Ending

_MAX_START = 1  # the first step of a run that continues no other one, at most


class Observation(msgspec.Struct, frozen=True):
    """A run, whether its log was read ``whole``, and for how long it was silent (None: the log is gone).

    ``evidence`` is what the log says of its training, if that is known without a look at its files.
    """

    run: RunOverview
    whole: bool
    silent_seconds: float | None
    evidence: TrainingEvidence | None = None

    @property
    def trace(self) -> TrainingEvidence:
        """What the log says of its training."""
        return self.evidence or trace_of(_id(self.run), self.run.metadata)


def observe(log: RunLog, whole: bool, now: float) -> Observation:
    """Observe a run as far as its log was read, at the time of day ``now``."""
    silent = silence_of(log.run.path, log.metadata, now, whole=whole)
    if whole:
        infer_end(log, silent)
    return Observation(log.overview(), whole, silent)


def statuses(
    observations: Sequence[Observation], goes_on_in: Mapping[str, str] | None = None
) -> list[RunStatus]:
    """Return the state of each run, in their order.

    ``goes_on_in`` is what `successors` gives of more runs than these, which hold all logs of their trainings.
    """
    if goes_on_in is None:
        goes_on_in = successors(
            Member(
                observation.run.name, kind_of(observation.run), observation.run.metadata, observation.whole
            )
            for observation in observations
        )
    endings = _endings_of_siblings(observations)
    return [
        run_status(
            endings.get(_id(observation.run), observation.run.ending) if observation.whole else None,
            observation.silent_seconds,
            observation.run.metadata.lost_after_seconds,
            goes_on_in.get(observation.run.name),
            observation.run.metadata.goes_on,
        )
        for observation in observations
    ]


def _endings_of_siblings(observations: Sequence[Observation]) -> dict[str, Ending]:
    """Return the ends that a record of another log of the same training states.

    They are by the id of a log that has no record of its end. Words may mean the end of a part; a record does
    not, so that it overrides them.
    """
    records = [
        (observation.trace, observation.run.ending, observation.run.name)
        for observation in observations
        if observation.run.ending and not observation.run.ending.inferred
    ]
    numbers_by_key: dict[str, list[int]] = {}  # of these records, by what their logs may share with others
    for number, (evidence, _, _) in enumerate(records):
        for key in evidence.join_keys:
            numbers_by_key.setdefault(key, []).append(number)
    endings: dict[str, Ending] = {}
    for observation in observations if records else ():
        if observation.run.ending is not None and not observation.run.ending.inferred:
            continue
        evidence = observation.trace
        for number in sorted(
            {training_number for key in evidence.join_keys for training_number in numbers_by_key.get(key, ())}
        ):
            other, ending, name = records[number]
            if is_same_training(evidence, other, surely=True):
                endings[_id(observation.run)] = replace(ending, evidence=f"{ending.evidence} of {name}")
    return endings


def _id(run: RunOverview) -> str:
    return f"{run.format}:{run.path}"


def kind_of(run: RunOverview) -> tuple[str | None, ...]:
    """Return what a run shares with those that may continue it: its directory, format and framework."""
    return run.path.rpartition("/")[0], run.format, run.understanding.framework


class Member(msgspec.Struct, frozen=True):
    """A run that others of its ``kind`` may continue. If it is ``asked``, the one that does is searched."""

    name: str
    kind: Hashable
    metadata: RunMetadata
    asked: bool


def successors(members: Iterable[Member]) -> dict[str, str]:
    """Return the name of the run that continues each run, by the name of that run."""
    members_by_kind: dict[Hashable, list[Member]] = {}
    for member in members:
        members_by_kind.setdefault(member.kind, []).append(member)
    successor_by_name: dict[str, str] = {}
    for same_kind in members_by_kind.values():
        candidates = _Candidates(same_kind)
        for member in same_kind if candidates.first_steps else ():
            successor = candidates.successor(member.metadata) if member.asked else None
            if successor is not None:
                successor_by_name[member.name] = successor.name
    return successor_by_name


class _Candidates:
    """The runs of one kind that may continue another one, in the order of their first steps."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = [member for member in members if (member.metadata.first_step or 0) > _MAX_START]
        self._members.sort(key=lambda member: member.metadata.first_step or 0)
        self.first_steps = [member.metadata.first_step or 0 for member in self._members]
        self._last_step = np.array([member.metadata.last_step or 0 for member in self._members])
        first_times = (member.metadata.first_time for member in self._members)
        self._first_time = np.array([np.nan if time is None else time for time in first_times])

    def successor(self, run: RunMetadata) -> Member | None:
        """Return the run that continues from about the step where this one stopped: the first one since.

        It may continue from a checkpoint, but not from one before the middle: there, a run that logs less
        often begins.
        """
        if run.last_time is None:
            return None
        first = run.first_step or 0
        last = run.last_step or 0
        interval = max(1, first)  # a log whose first record is of step n has one every n steps
        low = bisect_right(self.first_steps, max(first, _MAX_START, last // 2))
        within_interval = slice(low, bisect_right(self.first_steps, last + interval))
        first_time = np.where(
            self._last_step[within_interval] > last, self._first_time[within_interval], np.nan
        )
        fits = np.flatnonzero(first_time >= run.last_time)
        return self._members[low + fits[np.argmin(first_time[fits])]] if len(fits) else None
