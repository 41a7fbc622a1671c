"""The ranks of a training on this machine, found from the one that writes the log, and which of them died.

Ranks are processes of one user whose environment names one group (a launch of torchrun, a step of Slurm, one
address to meet at) and a number. What a rank starts inherits its environment, so of several processes with
one number the topmost counts. Processes that `torch.multiprocessing.spawn` started get their numbers later
and not through the environment, so they are "the 2nd of 2 spawned".
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from sentinel.common.text import duration_text
from sentinel.processes.description import title
from sentinel.processes.exits import Exit, Handle, opened
from sentinel.processes.finder import SHELLS
from sentinel.processes.table import Process, arguments, rank_keys, ticks_per_second
from sentinel.runs.preemption import ENDS_FROM_OUTSIDE

LOADER = "pt_data_worker"
"""The name of PyTorch's loader workers, which outlive a rank that is killed."""

_NUMBERS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
_GROUP = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID", "SLURM_STEP_ID")
_SPAWNED = "spawn_main("
_MAX_RANKS = 64


class Rank(NamedTuple):
    """One rank: its process, its number, and how many there are, on all machines."""

    process: Process
    number: int
    world: int
    spawned: bool = False  # the number only counts what a process spawned

    @property
    def title(self) -> str:
        """It for a person: "rank 2 of 4"."""
        if self.spawned:
            return f"the {_ordinal(self.number + 1)} of {self.world} spawned"
        return f"rank {self.number} of {self.world}"


class _Location(NamedTuple):
    """Where a process says that it stands."""

    group: tuple[object, ...]
    number: int
    world: int


class _Introduced(NamedTuple):
    """What a process told of itself. It is ``settled`` if it was not about to become another program."""

    by: Process
    place: _Location | None
    spawned: bool
    settled: bool


class Roster:
    """The ranks among some processes. What an earlier roster was told by them, they are not asked again."""

    def __init__(self, processes: Mapping[int, Process], before: "Roster | None" = None) -> None:
        known = before.told if before else {}
        self._processes = processes
        settled = max((process.started for process in processes.values()), default=0) - ticks_per_second()
        self.told: Mapping[int, _Introduced] = {
            pid: _told(process, known.get(pid), settled) for pid, process in processes.items()
        }
        self._places = {pid: told.place for pid, told in self.told.items() if told.place is not None}
        self._by_group: dict[tuple[object, ...], list[Process]] = {}
        for pid, place in self._places.items():
            process = processes[pid]
            if self._places.get(process.parent) != place:  # else what a rank started
                self._by_group.setdefault((process.user, place.group, place.world), []).append(process)

    def ranks_of(self, trainer: Process) -> list[Rank]:
        """Return the ranks that train together with a process, itself among them; none if it is no rank."""
        mine = self._places.get(trainer.pid)
        if mine is None:
            return self._spawned_with(trainer)
        by_number: dict[int, Rank] = {}
        members = self._by_group.get((trainer.user, mine.group, mine.world), [])
        siblings = [member for member in members if member.parent == trainer.parent]
        members = siblings if len(siblings) > 1 else members  # others may be left of an earlier launch
        for member in sorted(members, key=lambda member: member.started):
            number = self._places[member.pid].number
            by_number.setdefault(number, Rank(member, number, mine.world))
        return sorted(by_number.values(), key=lambda rank: rank.number)[:_MAX_RANKS]

    def _spawned_with(self, trainer: Process) -> list[Rank]:
        """Return the processes that the parent of a spawned one spawned, in the order of their start."""
        if not self._is_spawned(trainer):
            return []
        children = [process for process in self._processes.values() if process.parent == trainer.parent]
        spawned = [child for child in children if self._is_spawned(child)]
        spawned.sort(key=lambda child: (child.started, child.pid))
        return [
            Rank(child, number, len(spawned), spawned=True)
            for number, child in enumerate(spawned[:_MAX_RANKS])
        ]

    def _is_spawned(self, target: Process) -> bool:
        told = self.told.get(target.pid)
        return told.spawned if told else is_spawned(target)


def _told(target: Process, before: _Introduced | None, settled: int) -> _Introduced:
    """Return what a process tells of itself, or told before, if it was started before some time and is the
    same.
    """
    if before is not None and before.settled and before.by[:5] == target[:5]:
        return before
    place = None if target.name in SHELLS | {LOADER} else _location(target)
    return _Introduced(target, place, is_spawned(target), target.started < settled)


def _location(target: Process) -> _Location | None:
    """Return where a process says that it stands; None if it says nothing, or trains alone."""
    keys = rank_keys(target.pid)
    for number, world in _NUMBERS:
        with suppress(KeyError, ValueError):
            if (of := int(keys[world])) > 1:
                group = tuple(keys.get(key) for key in _GROUP)
                return _Location(group if any(group) else (target.parent,), int(keys[number]), of)
    return None


def is_spawned(target: Process) -> bool:
    """Return whether Python's multiprocessing started a process as a new one, by its arguments."""
    return any(_SPAWNED in word for word in arguments(target.pid))


@dataclass(frozen=True)
class Death:
    """That a rank ended, seen at a time awake, and how long before that it was last seen alive."""

    rank: Rank
    exit: Exit
    at: float
    within_seconds: float

    @property
    def words(self) -> str:
        """It in words: "rank 2 of 4, process 7 (python), exited with status 1"."""
        return f"{self.rank.title}, {title(self.rank.process)}, {self.exit.words}"

    @property
    def failed(self) -> bool:
        """Whether it ended by an error of its own, and not as its training did or as somebody ended it."""
        return bool(self.exit.status) or self.exit.signal not in (None, *ENDS_FROM_OUTSIDE)


class Team:
    """The ranks of one training on this machine, followed from when they were found to their ends."""

    def __init__(self) -> None:
        self.ranks: dict[int, Rank] = {}
        self.dead: dict[int, Death] = {}
        self._handles: dict[int, Handle] = {}
        self._looked_at = math.inf

    @property
    def living(self) -> list[Rank]:
        """The ranks that have not ended."""
        return [rank for number, rank in sorted(self.ranks.items()) if number not in self.dead]

    @property
    def descriptors(self) -> list[int]:
        """The pidfds of the ranks that are followed."""
        return [handle.descriptor for handle in self._handles.values()]

    def meet(self, ranks: Iterable[Rank]) -> None:
        """Follow ranks that began since. What a dead one left behind has another parent and replaces none."""
        for followed in self._handles.values():
            followed.count_kills()
        for rank in ranks:
            before = self.ranks.get(rank.number)
            restarted = before is None or (
                rank.number in self.dead
                and rank.process.started > before.process.started
                and rank.process.parent == before.process.parent
            )
            if restarted and (handle := opened(rank.process)) is not None:
                self.ranks[rank.number] = rank
                self._handles[rank.number] = handle
                self.dead.pop(rank.number, None)

    def refresh(self, awake: float) -> bool:
        """Return whether ranks have ended since the last look."""
        ended = {
            number: how for number, handle in self._handles.items() if (how := handle.exit()) is not None
        }
        within = max(0.0, awake - self._looked_at)
        self._looked_at = awake
        for number, how in ended.items():
            self.dead[number] = Death(self.ranks[number], how, awake, within)
            del self._handles[number]
        return bool(ended)

    def culprit(self) -> Death | None:
        """Return the first rank that failed; None if none did."""
        failed = [death for death in self.dead.values() if death.failed]
        return min(failed, key=lambda death: (death.at, death.rank.number), default=None)

    def news(self, awake: float) -> str:
        """Return that a rank died while others live; empty if none did."""
        death = self.culprit()
        living = self.living
        if death is None or not living:
            return ""
        ago = f"{awake - death.at + death.within_seconds:.1f} s ago" if awake - death.at < 60 else ""
        ago = ago or f"{duration_text(awake - death.at)} ago"
        return f"{death.rank.title} died: {death.exit.cause}, {ago}. {still(living)}"


def still(living: Sequence[Rank]) -> str:
    """Return that some ranks are left: "Ranks 0, 1 and 3 still run and wait for it"."""
    alone = len(living) == 1
    return f"{names(living)} still {'runs and waits' if alone else 'run and wait'} for it"


def names(ranks: Sequence[Rank]) -> str:
    """Return some ranks for the beginning of a sentence: "Rank 2", "Ranks 0, 1 and 3", "The 1st of 2
    spawned".
    """
    if ranks[0].spawned:
        words = [_ordinal(rank.number + 1) for rank in ranks]
        return f"The {joined(words)} of {ranks[0].world} spawned"
    numbers = [str(rank.number) for rank in ranks]
    return f"Rank{'s' if len(numbers) > 1 else ''} {joined(numbers)}"


def joined(words: Sequence[str]) -> str:
    """Words as a list: "0, 1 and 3"."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
