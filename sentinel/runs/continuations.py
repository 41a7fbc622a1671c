"""The states of runs that lie beside one another: one may continue where another one stopped."""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sentinel.runs.copied_logs import silence_of
from sentinel.runs.end_inference import infer_end
from sentinel.runs.log import RunLog, RunOverview
from sentinel.runs.metadata import RunMetadata
from sentinel.runs.state import RunStatus, standing
from sentinel.runs.training_groups import TrainingEvidence, is_same_training, trace_of
from sentinel.sources.base import Ending

_START = 1  # the first step of a run that continues none, or 0


@dataclass(frozen=True)
class Observation:
    """A run, whether its log was read ``whole``, and for how long it was silent (None: the log is gone).

    ``told`` is what the log tells of its training, where that is known without looking at its files.
    """

    run: RunOverview
    whole: bool
    silent_seconds: float | None
    told: TrainingEvidence | None = None

    @property
    def trace(self) -> TrainingEvidence:
        """What the log tells of its training."""
        return self.told or trace_of(_id(self.run), self.run.metadata)


def observe(log: RunLog, whole: bool, now: float) -> Observation:
    """Return a run as far as it was read, at the time of day ``now``."""
    silent = silence_of(log.run.path, log.metadata, now, whole=whole)
    if whole:
        infer_end(log, silent)
    return Observation(log.overview(), whole, silent)


def statuses(seen: Sequence[Observation], goes_on_in: Mapping[str, str] | None = None) -> list[RunStatus]:
    """Return the state of each run, in their order.

    ``goes_on_in`` is what `successors` gives of more runs than these, which hold all logs of their trainings.
    """
    if goes_on_in is None:
        goes_on_in = _successors(seen)
    stated = _stated(seen)
    return [
        standing(
            stated.get(_id(look.run), look.run.ending) if look.whole else None,
            look.silent_seconds,
            look.run.metadata.lost_after_seconds,
            goes_on_in.get(look.run.name),
            look.run.metadata.goes_on,
        )
        for look in seen
    ]


def _stated(seen: Sequence[Observation]) -> dict[str, Ending]:
    """Return the ends that a record of another log of the same training states, by the id of a log that
    states none.

    Words may mean the end of a part; a record does not, so that it overrides them.
    """
    ends = [(o.trace, o.run.ending, o.run.name) for o in seen if o.run.ending and not o.run.ending.inferred]
    sharing: dict[str, list[int]] = {}  # the numbers of these logs by what they may share with another one
    for number, (trace, _, _) in enumerate(ends):
        for joint in trace.join_keys:
            sharing.setdefault(joint, []).append(number)
    endings: dict[str, Ending] = {}
    for look in seen if ends else ():
        if look.run.ending is None or look.run.ending.inferred:
            mine = look.trace
            for number in sorted({number for joint in mine.join_keys for number in sharing.get(joint, ())}):
                theirs, ending, name = ends[number]
                if is_same_training(mine, theirs, surely=True):
                    endings[_id(look.run)] = replace(ending, evidence=f"{ending.evidence} of {name}")
    return endings


def _id(run: RunOverview) -> str:
    return f"{run.format}:{run.path}"


def _successors(seen: Iterable[Observation]) -> dict[str, str]:
    return successors(
        Member(look.run.name, kind_of(look.run), look.run.metadata, look.whole) for look in seen
    )


def kind_of(run: RunOverview) -> tuple[str | None, ...]:
    """Return what a run has in common with those that may continue it: its directory, format and
    framework.
    """
    return run.path.rpartition("/")[0], run.format, run.understanding.framework


@dataclass(frozen=True)
class Member:
    """A run among others of its ``kind``, which may continue it. It is ``asked`` whether one does."""

    name: str
    kind: Hashable
    metadata: RunMetadata
    asked: bool


def successors(members: Iterable[Member]) -> dict[str, str]:
    """Return the runs that another run of their kind continues: that run's name, by name."""
    families: dict[Hashable, list[Member]] = {}
    for member in members:
        families.setdefault(member.kind, []).append(member)
    next_of: dict[str, str] = {}
    for family in families.values():
        later = _Later(family)
        for member in family if later.begin else ():
            if member.asked and (following := later.goes_on_from(member.metadata)) is not None:
                next_of[member.name] = following.name
    return next_of


class _Later:
    """The runs of a family that may continue another one, by their first steps."""

    def __init__(self, family: Sequence[Member]) -> None:
        self._family = [one for one in family if (one.metadata.first_step or 0) > _START]
        self._family.sort(key=lambda one: one.metadata.first_step or 0)
        facts = [one.metadata for one in self._family]
        self.begin = [one.first_step or 0 for one in facts]
        self._end = np.array([one.last_step or 0 for one in facts])
        self._since = np.array([np.nan if one.first_time is None else one.first_time for one in facts])

    def goes_on_from(self, run: RunMetadata) -> Member | None:
        """Return the run that continues from about the step where this one stopped: the first one since.

        It may continue from a checkpoint, but not from one before the middle: there, a run that logs less
        often begins.
        """
        if run.last_time is None:
            return None
        first = run.first_step or 0
        last = run.last_step or 0
        pace = max(
            1, first
        )  # between two records: a log whose first record is of step n has one every n steps
        low = bisect_right(self.begin, max(first, _START, last // 2))
        near = slice(low, bisect_right(self.begin, last + pace))
        since = np.where(self._end[near] > last, self._since[near], np.nan)
        fits = np.flatnonzero(since >= run.last_time)
        return self._family[low + fits[np.argmin(since[fits])]] if len(fits) else None
