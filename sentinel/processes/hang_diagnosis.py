"""Says where the ranks of a silent training stand, and which of them the others wait for.

Two looks at least a second apart show the state of each rank and of its loader workers, the processor time
that it used between them, and its stack. The verdict comes in a fixed order, because what stands above
explains what stands below: a rank that is gone, one that is stopped, one that waits for a device, a loader
whose workers are in code of the training, ranks that are not where most of them are, and none of these.

A stack explains a silence and never shows one: healthy trainings look the same in two looks.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sentinel.common.text import counted
from sentinel.detectors.run_checks import HangDiagnosis
from sentinel.processes.ranks import Rank, joined, names
from sentinel.processes.stacks import Frame, Stack

_IDLE = 0.05  # of a core; a process that uses less does not compute
_FRAMES_SHOWN = 8  # of a rank
_LONGEST = 4000  # characters of all frames
_LOADING = ("dataloader.py", "queues.py", "queue.py")  # where a training waits for its loader workers


class StackSample(NamedTuple):
    """What was seen of one process: the letter of its state, what it waits for in the kernel, the share of a
    core that it used, and its stack.
    """

    state: str
    waits_in: str
    busy: float
    stack: Stack

    @property
    def location(self) -> Frame | None:
        """Where it stands."""
        return self.stack.location

    def calls(self, *, lines: bool) -> object:
        """Return what ranks that wait for the same thing have in common: their calls, from the training's own
        on.
        """
        frames = self.stack.frames
        own = next((number for number, frame in enumerate(frames) if frame.ours), 0)
        return tuple(frame if lines else frame[:2] for frame in frames[own:])

    @property
    def doing(self) -> str:
        """What it does in one word."""
        if self.state in "Tt":
            return "stopped"
        return "busy" if self.busy >= _IDLE else "asleep"


class Seen(NamedTuple):
    """A rank, what was seen of it and of its loader workers."""

    rank: Rank
    sample: StackSample
    workers: Sequence[StackSample] = ()


def verdict(seen: Sequence[Seen], gone: str = "") -> HangDiagnosis:
    """Return why some ranks stand still. ``gone`` says that one of them died: "Rank 2 of 4 died: SIGKILL"."""
    if not seen:
        return HangDiagnosis()
    kind, guilty, what = _guilty(seen) if not gone else ("gone", [], "")
    others = [member for member in seen if member not in guilty]
    said = [gone] if gone else [f"{_who(guilty)} {what}"] if guilty else []
    if guilty or gone:
        said += _waiting(others)
    else:
        said.append(_alike(seen) if kind == "alike" else "; ".join(map(_alone, seen)))
    return HangDiagnosis(". ".join(said), kind, _all_frames(seen), seen[0].rank.world)


def _guilty(seen: Sequence[Seen]) -> tuple[str, list[Seen], str]:
    """Return the kind of the verdict, the ranks that the others wait for, and what these do."""
    for kind, states, what in (
        ("stopped", "Tt", "stopped by a signal"),
        ("device", "D", "waiting for a device"),
    ):
        if stuck := [member for member in seen if member.sample.state in states]:
            where = _in_kernel(stuck) if kind == "device" else ""
            mend = f", and {_wake(stuck)}" if kind == "stopped" else ""
            return kind, stuck, f"{_is(stuck)} {what}{where}{_at(stuck)}{mend}"
    if (stuck := [member for member in seen if _starved(member)]) and len(stuck) < max(len(seen), 2):
        return "loader", stuck, _loading(stuck)
    apart = _apart(seen, lines=False)
    apart = _apart(seen, lines=True) if apart == [] else apart
    if not apart:
        return "unlike" if apart is None else "alike", [], ""
    return "apart", apart, f"{_is(apart)}{_at(apart)}, {_doing(apart)}" if _known(apart) else _asleep(apart)


def _wake(stopped: Sequence[Seen]) -> str:
    pids = " ".join(str(member.rank.process.pid) for member in stopped)
    return f"`kill -CONT {pids}` lets {'it' if len(stopped) == 1 else 'them'} go on"


def _apart(seen: Sequence[Seen], *, lines: bool) -> list[Seen] | None:
    """Return the ranks that are not where most of them are; None if there is no such place."""
    most, count = Counter(member.sample.calls(lines=lines) for member in seen).most_common(1)[0]
    return (
        [member for member in seen if member.sample.calls(lines=lines) != most]
        if 2 * count > len(seen)
        else None
    )


def _starved(member: Seen) -> bool:
    """Return whether a rank waits for loader workers that are in code of the training."""
    waits = any(frame.file in _LOADING for frame in member.sample.stack.frames)
    return waits and any(_in_own_code(worker) for worker in member.workers)


def _in_own_code(worker: StackSample) -> bool:
    return worker.location is not None and worker.location.ours


def _loading(starved: Sequence[Seen]) -> str:
    workers = [worker for member in starved for worker in member.workers if _in_own_code(worker)]
    place, count = Counter(worker.location for worker in workers).most_common(1)[0]
    whole = sum(len(member.workers) for member in starved)
    which = {1: "its worker is", 2: "both workers are"}.get(whole, f"all {whole} workers are")
    if count < whole:
        which = f"{counted(count, 'worker')} of {whole} {'is' if count == 1 else 'are'}"
    doing = {worker.doing for worker in workers if worker.location == place}
    wait, loader = ("waits", "its data loader") if len(starved) == 1 else ("wait", "their data loaders")
    return f"{wait} for {loader}: {which} at {place}, {joined(sorted(doing))}"


def _waiting(others: Sequence[Seen]) -> list[str]:
    """Return where the other ranks wait: "Ranks 0, 1 and 3 wait in backward (train.py:34)"."""
    places: dict[object, list[Seen]] = {}
    for member in others:
        places.setdefault(member.sample.location and member.sample.location[:2], []).append(member)
    return [f"{_who(some)} {_waits(some)}" for some in places.values()]


def _waits(some: Sequence[Seen]) -> str:
    place = some[0].sample.location
    return f"{'waits' if len(some) == 1 else 'wait'} in {place}" if place else _asleep(some)


def _alike(seen: Sequence[Seen]) -> str:
    """Return that all ranks are at one place, and what they wait for."""
    place = seen[0].sample.location
    busy = any(member.sample.busy >= _IDLE for member in seen)
    if place is None:
        return "; ".join(map(_alone, seen))
    if len(seen) == 1:
        loading = f", and {_loading(seen)}" if _starved(seen[0]) else ""
        return f"{_who(seen)} is at {place} and {'computes' if busy else 'uses no CPU'}{loading}"
    all_ = "Both" if len(seen) == 2 else f"All {len(seen)}"
    here = f"{all_} ranks on this host are at {place} and"
    if all(map(_starved, seen)):
        return f"{here} {_loading(seen)}; no single rank is at fault"
    if busy:
        return f"{here} compute or poll; no single rank is at fault"
    elsewhere = seen[0].rank.world > len(seen) and not seen[0].rank.spawned
    cause = "a rank on another host or storage" if elsewhere else "storage"
    return f"{here} use no CPU: {cause}, probably; no single rank is at fault"


def _alone(member: Seen) -> str:
    place = member.sample.location
    return (
        f"{_who([member])} is at {place}, {member.sample.doing}"
        if place
        else f"{_who([member])} {_asleep([member])}"
    )


def _asleep(some: Sequence[Seen]) -> str:
    """Return what is known of ranks whose line is not."""
    look = some[0].sample
    its = "its line is" if len(some) == 1 else "their lines are"
    return f"{_is(some)} {look.doing}{_in_kernel(some)}; {its} unknown because {look.stack.unknown}"


def _known(some: Iterable[Seen]) -> bool:
    return all(member.sample.location is not None for member in some)


def _at(some: Sequence[Seen]) -> str:
    places = {str(member.sample.location) for member in some if member.sample.location}
    return f" at {joined(sorted(places))}" if places else ""


def _in_kernel(some: Sequence[Seen]) -> str:
    waits = {member.sample.waits_in for member in some if member.sample.waits_in}
    return f" in {joined(sorted(waits))}" if waits else ""


def _doing(some: Iterable[Seen]) -> str:
    return joined(sorted({member.sample.doing for member in some}))


def _is(some: Sequence[Seen]) -> str:
    return "is" if len(some) == 1 else "are"


def _who(some: Sequence[Seen]) -> str:
    ranks = [member.rank for member in some]
    return names(ranks) if ranks[0].world > 1 else "Its process"


def _all_frames(seen: Sequence[Seen]) -> str:
    """Return the frames of each rank and of its workers, the innermost first."""
    lines = []
    for member in seen:
        for name, look in [
            (_who([member]), member.sample),
            *((f"{_who([member])}, worker", each) for each in member.workers),
        ]:
            calls = " < ".join(map(str, look.stack.frames[:_FRAMES_SHOWN]))
            lines.append(f"{name}: {calls or look.stack.unknown}")
    return "; ".join(lines)[:_LONGEST]
