"""The states of runs that lie beside one another: one may continue where another one stopped."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sentinel.runs.copies import silence_of
from sentinel.runs.facts import Facts
from sentinel.runs.log import RunLog, RunOverview
from sentinel.runs.same_training import Trace, same_training, trace_of
from sentinel.runs.settling import settle
from sentinel.runs.state import Standing, standing
from sentinel.sources.base import Ending


@dataclass(frozen=True)
class Observation:
    """A run, whether its log was read ``whole``, and for how long it was silent (None: the log is gone).

    ``told`` is what the log tells of its training, where that is known without looking at its files.
    """

    run: RunOverview
    whole: bool
    silent_seconds: float | None
    told: Trace | None = None

    @property
    def trace(self) -> Trace:
        """What the log tells of its training."""
        return self.told or trace_of(_id(self.run), self.run.facts)


def observe(log: RunLog, whole: bool, now: float) -> Observation:
    """A run as far as it was read, at the time of day ``now``."""
    silent = silence_of(log.run.path, log.facts, now, whole=whole)
    if whole:
        settle(log, silent)
    return Observation(log.overview(), whole, silent)


def standings(seen: Sequence[Observation]) -> list[Standing]:
    """The state of each run, in their order."""
    goes_on_in, stated = _successors(seen), _stated(seen)
    return [
        standing(
            stated.get(_id(look.run), look.run.ending) if look.whole else None,
            look.silent_seconds,
            look.run.facts.lost_after_seconds,
            goes_on_in.get(look.run.name),
            look.run.facts.goes_on,
        )
        for look in seen
    ]


def _stated(seen: Sequence[Observation]) -> dict[str, Ending]:
    """The ends that a record of another log of the same training states, by the id of a log that states none.

    Words may mean the end of a part; a record does not, so that it overrides them.
    """
    ends = [(o.trace, o.run.ending, o.run.name) for o in seen if o.run.ending and not o.run.ending.inferred]
    sharing: dict[str, list[int]] = {}  # the numbers of these logs by what they may share with another one
    for number, (trace, _, _) in enumerate(ends):
        for joint in trace.joints:
            sharing.setdefault(joint, []).append(number)
    endings: dict[str, Ending] = {}
    for look in seen if ends else ():
        if look.run.ending is None or look.run.ending.inferred:
            mine = look.trace
            for number in sorted({number for joint in mine.joints for number in sharing.get(joint, ())}):
                theirs, ending, name = ends[number]
                if same_training(mine, theirs, surely=True):
                    endings[_id(look.run)] = replace(ending, evidence=f"{ending.evidence} of {name}")
    return endings


def _id(run: RunOverview) -> str:
    return f"{run.format}:{run.path}"


def _successors(seen: Iterable[Observation]) -> dict[str, str]:
    return successors(
        Member(
            look.run.name,
            (look.run.path.rpartition("/")[0], look.run.format, look.run.understanding.framework),
            look.run.facts,
            look.whole,
        )
        for look in seen
    )


@dataclass(frozen=True)
class Member:
    """A run among others of its ``kind``, which may continue it. It is ``asked`` whether one does."""

    name: str
    kind: tuple[str | None, ...]
    facts: Facts
    asked: bool


def successors(members: Iterable[Member]) -> dict[str, str]:
    """Runs that another run of their kind continues: that run's name, by name."""
    families: dict[tuple[str | None, ...], list[Member]] = {}
    for member in members:
        families.setdefault(member.kind, []).append(member)
    next_of: dict[str, str] = {}
    for family in families.values():
        facts = [member.facts for member in family]
        begin, end = (np.array([getattr(f, n) or 0 for f in facts]) for n in ("first_step", "last_step"))
        since = np.array([np.nan if f.first_time is None else f.first_time for f in facts])
        for member, mine in zip(family, facts, strict=True):
            if member.asked and mine.last_time is not None:
                later = _goes_on(mine, begin, end) & (since >= mine.last_time)
                if later.any():
                    next_of[member.name] = family[int(np.argmin(np.where(later, since, np.inf)))].name
    return next_of


def _goes_on(run: Facts, begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which runs with these first and last steps continue from about the step where this one stopped.

    They may continue from a checkpoint, but not from one before its middle: there, a run that logs less often
    begins.
    """
    first, last = run.first_step or 0, run.last_step or 0
    pace = max(1, first)  # between two records: a log whose first record is of step n has one every n steps
    return (begin > max(first, 1, last / 2)) & (begin <= last + pace) & (end > last)
