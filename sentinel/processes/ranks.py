"""The ranks of a training on this machine, found from the one that writes the log, and which of them died.

Ranks are processes of one user whose environment names one group (a launch of torchrun, a step of Slurm, one
address to meet at) and a number. What a rank starts inherits its environment, so of several processes with
one number the topmost counts. Processes that `torch.multiprocessing.spawn` started get their numbers later
and not through the environment, so they are "the 2nd of 2 spawned".
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from sentinel.common.text import duration_text
from sentinel.processes.description import title
from sentinel.processes.exits import Exit, Handle, open_handle
from sentinel.processes.finder import SHELLS
from sentinel.processes.table import Process, arguments, rank_keys, ticks_per_second
from sentinel.runs.preemption import ENDS_FROM_OUTSIDE

LOADER = "pt_data_worker"
"""The name of PyTorch's loader workers, which outlive a rank that is killed."""

_NUMBER_KEYS = (  # of a rank and of how many there are
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
_GROUP_KEYS = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID", "SLURM_STEP_ID")
"""Variables that all ranks of a training share."""
_SPAWN_CALL = "spawn_main("  # in the arguments of what Python's multiprocessing starts
_MAX_RANKS = 64  # of one training on this machine
_MAX_PRECISE_SECONDS = 60.0  # the age of a younger death is stated in tenths of a second


class Rank(NamedTuple):
    """One rank: its process, its number, and how many there are, on all machines."""

    process: Process
    number: int
    world: int
    spawned: bool = False  # the number only counts what a process spawned

    @property
    def title(self) -> str:
        """The rank for a person: "rank 2 of 4"."""
        if self.spawned:
            return f"the {_ordinal(self.number + 1)} of {self.world} spawned"
        return f"rank {self.number} of {self.world}"


class _RankKeys(NamedTuple):
    """The group and the number of a rank by its environment."""

    group: tuple[object, ...]
    number: int
    world: int


class _TeamMember(NamedTuple):
    """What a process says of itself. It is ``settled`` if it was not about to become another program."""

    process: Process
    keys: _RankKeys | None  # None if it names no group, or trains alone
    spawned: bool
    settled: bool


class Roster:
    """The ranks among some processes. What an earlier roster read of them is not read again."""

    def __init__(self, processes: Mapping[int, Process], earlier: "Roster | None" = None) -> None:
        before = earlier.members if earlier else {}
        self._processes = processes
        newest = max((process.started for process in processes.values()), default=0)
        settled = newest - ticks_per_second()
        self.members: Mapping[int, _TeamMember] = {
            pid: _member(process, before.get(pid), settled) for pid, process in processes.items()
        }
        self._keys = {pid: member.keys for pid, member in self.members.items() if member.keys is not None}
        self._by_group: dict[tuple[object, ...], list[Process]] = {}
        for pid, keys in self._keys.items():
            process = processes[pid]
            if self._keys.get(process.parent) != keys:  # else what a rank started
                self._by_group.setdefault((process.user, keys.group, keys.world), []).append(process)

    def ranks_of(self, trainer: Process) -> list[Rank]:
        """Return the ranks that train together with a process, itself among them; none if it is no rank, or
        if it is gone and another process has its number.
        """
        now = self._processes.get(trainer.pid)
        if now is None or now.started != trainer.started:
            return []
        keys = self._keys.get(trainer.pid)
        if keys is None:
            return self._spawned_with(trainer)
        by_number: dict[int, Rank] = {}
        members = self._by_group.get((trainer.user, keys.group, keys.world), [])
        siblings = [member for member in members if member.parent == trainer.parent]
        members = siblings if len(siblings) > 1 else members  # others may be of an earlier launch
        for member in sorted(members, key=lambda member: member.started):
            number = self._keys[member.pid].number
            by_number.setdefault(number, Rank(member, number, keys.world))
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
        member = self.members.get(target.pid)
        return member.spawned if member else is_spawned(target)


def _member(target: Process, before: _TeamMember | None, settled: int) -> _TeamMember:
    """Return what a process says of itself, or what was read of it ``before`` if it is the same program.

    ``settled`` is the time in clock ticks before which a process was started that has become its program.
    """
    if before is not None and before.settled and before.process[:5] == target[:5]:
        return before
    keys = None if target.name in SHELLS | {LOADER} else _rank_keys(target)
    return _TeamMember(target, keys, is_spawned(target), target.started < settled)


def _rank_keys(target: Process) -> _RankKeys | None:
    keys = rank_keys(target.pid)
    for number_key, world_key in _NUMBER_KEYS:
        with suppress(KeyError, ValueError):
            world = int(keys[world_key])
            if world > 1:
                group = tuple(keys.get(key) for key in _GROUP_KEYS)
                return _RankKeys(group if any(group) else (target.parent,), int(keys[number_key]), world)
    return None


def is_spawned(target: Process) -> bool:
    """Return whether Python's multiprocessing started a process as a new one, by its arguments."""
    return any(_SPAWN_CALL in word for word in arguments(target.pid))


class Death(msgspec.Struct, frozen=True):
    """The end of a rank, the time awake at which it was noticed, and how long before that the rank lived."""

    rank: Rank
    exit: Exit
    at: float
    within_seconds: float

    @property
    def words(self) -> str:
        """The end in words: "rank 2 of 4, process 7 (python), exited with status 1"."""
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
        self._refreshed_at = math.inf

    @property
    def living(self) -> list[Rank]:
        """The ranks that have not ended."""
        return [rank for number, rank in sorted(self.ranks.items()) if number not in self.dead]

    @property
    def descriptors(self) -> list[int]:
        """The pidfds of the ranks that are followed."""
        return [handle.descriptor for handle in self._handles.values()]

    def meet(self, ranks: Iterable[Rank]) -> None:
        """Follow the ranks that began since. What a dead one started has another parent and replaces none."""
        for handle in self._handles.values():
            handle.count_kills()
        for rank in ranks:
            before = self.ranks.get(rank.number)
            restarted = before is None or (
                rank.number in self.dead
                and rank.process.started > before.process.started
                and rank.process.parent == before.process.parent
            )
            new_handle = open_handle(rank.process) if restarted else None
            if new_handle is not None:
                self.ranks[rank.number] = rank
                self._handles[rank.number] = new_handle
                self.dead.pop(rank.number, None)

    def refresh(self, awake: float) -> bool:
        """Notice the ranks that have ended since the last call. Return whether there are any."""
        exits = {number: handle.exit() for number, handle in self._handles.items()}
        new_exits = {number: how for number, how in exits.items() if how is not None}
        within_seconds = max(0.0, awake - self._refreshed_at)
        self._refreshed_at = awake
        for number, how in new_exits.items():
            self.dead[number] = Death(self.ranks[number], how, awake, within_seconds)
            del self._handles[number]
        return bool(new_exits)

    def culprit(self) -> Death | None:
        """Return the first rank that failed; None if none did."""
        failed = [death for death in self.dead.values() if death.failed]
        return min(failed, key=lambda death: (death.at, death.rank.number), default=None)

    def news(self, awake: float) -> str:
        """Return that a rank died while others live, in words; empty if none did."""
        death = self.culprit()
        living = self.living
        if death is None or not living:
            return ""
        seconds = awake - death.at
        precise = f"{seconds + death.within_seconds:.1f} s"
        age = precise if seconds < _MAX_PRECISE_SECONDS else duration_text(seconds)
        wait = "runs and waits" if len(living) == 1 else "run and wait"
        reason = f"{death.rank.title} died: {death.exit.cause}, {age} ago"
        return f"{reason}. {rank_names(living)} still {wait} for it"


def rank_names(ranks: Sequence[Rank]) -> str:
    """Return some ranks as a sentence begins: "Rank 2", "Ranks 0, 1 and 3", "The 1st of 2 spawned"."""
    if ranks[0].spawned:
        words = [_ordinal(rank.number + 1) for rank in ranks]
        return f"The {enumeration(words)} of {ranks[0].world} spawned"
    numbers = [str(rank.number) for rank in ranks]
    return f"Rank{'s' if len(numbers) > 1 else ''} {enumeration(numbers)}"


def enumeration(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: "0, 1 and 3"."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
