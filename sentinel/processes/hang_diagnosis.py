"""Says where the ranks of an inactive training are, and which of them the others wait for.

Two samples at least a second apart show the state of each rank and of its loader workers, the processor time
that it used between them, and its stack. The causes have a fixed order, because each explains those below
it: a rank that is gone, one that is stopped, one that waits for a device, a loader whose workers are in code
of the training, ranks that are not where most of them are, and none of these.

A stack explains a hang and never shows one: healthy trainings look the same in two samples.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sentinel.common.text import counted
from sentinel.detectors.run_checks import HangDiagnosis
from sentinel.processes.ranks import Rank, enumeration, rank_names
from sentinel.processes.stacks import Frame, Stack

_MIN_BUSY_FRACTION = 0.05  # of a core; a process that uses less does not compute
_MIN_RANKS = 3  # among which one can be the odd one
_MAX_FRAMES = 8  # of a rank, as evidence
_MAX_FRAME_CHARACTERS = 4000  # of the frames of all ranks
_LOADER_FILES = ("dataloader.py", "queues.py", "queue.py")  # where a training waits for its loader workers


class ProcessSample(NamedTuple):
    """What one process does."""

    state: str  # a letter of proc(5)
    waits_in: str  # function of the kernel; may be empty
    busy: float  # fraction of a core that it used
    stack: Stack

    @property
    def location(self) -> Frame | None:
        """The call in which it is."""
        return self.stack.location

    @property
    def is_in_training_code(self) -> bool:
        """Whether it is in code of the training itself."""
        return self.location is not None and self.location.ours

    def calls(self, *, lines: bool) -> object:
        """Return the calls that ranks which wait for the same thing share, from the training's own on."""
        frames = self.stack.frames
        first = next((number for number, frame in enumerate(frames) if frame.ours), 0)
        return tuple(frame if lines else frame[:2] for frame in frames[first:])

    @property
    def activity(self) -> str:
        """What it does, in one word."""
        if self.state in "Tt":
            return "stopped"
        return "busy" if self.busy >= _MIN_BUSY_FRACTION else "asleep"


class RankSample(NamedTuple):
    """What a rank and its loader workers do."""

    rank: Rank
    sample: ProcessSample
    workers: Sequence[ProcessSample] = ()

    @property
    def is_starved(self) -> bool:
        """Whether it waits for loader workers that are in code of the training."""
        waits = any(frame.file in _LOADER_FILES for frame in self.sample.stack.frames)
        return waits and any(worker.is_in_training_code for worker in self.workers)


class _HangCause(NamedTuple):
    """The kind of a diagnosis, the ranks that the others wait for, and what these do."""

    kind: str
    culprits: Sequence[RankSample] = ()
    words: str = ""


def diagnose(ranks: Sequence[RankSample], death: str = "") -> HangDiagnosis:
    """Return why some ranks hang. ``death`` says that one of them died: "Rank 2 of 4 died: SIGKILL"."""
    if not ranks:
        return HangDiagnosis()
    cause = _cause(ranks) if not death else _HangCause("gone")
    if death or cause.culprits:
        waiting_ranks = [member for member in ranks if member not in cause.culprits]
        sentences = [death or f"{_who(cause.culprits)} {cause.words}", *_waiting(waiting_ranks)]
    else:
        sentences = [_same_location(ranks) if cause.kind == "alike" else "; ".join(map(_alone, ranks))]
    return HangDiagnosis(". ".join(sentences), cause.kind, _all_frames(ranks), ranks[0].rank.world)


def _cause(ranks: Sequence[RankSample]) -> _HangCause:
    stopped = [member for member in ranks if member.sample.state in "Tt"]
    if stopped:
        pids = " ".join(str(member.rank.process.pid) for member in stopped)
        remedy = f"`kill -CONT {pids}` lets {'it' if len(stopped) == 1 else 'them'} go on"
        words = f"{_is(stopped)} stopped by a signal{_at_frames(stopped)}, and {remedy}"
        return _HangCause("stopped", stopped, words)
    waiting = [member for member in ranks if member.sample.state == "D"]
    if waiting:
        words = f"{_is(waiting)} waiting for a device{_in_kernel(waiting)}{_at_frames(waiting)}"
        return _HangCause("device", waiting, words)
    starved = [member for member in ranks if member.is_starved]
    if starved and len(starved) < max(len(ranks), 2):
        return _HangCause("loader", starved, _loading(starved))
    apart = _apart(ranks, lines=False)
    apart = _apart(ranks, lines=True) if apart == [] else apart
    if not apart:
        return _HangCause("unlike" if apart is None else "alike")
    if any(member.sample.location is None for member in apart):
        return _HangCause("apart", apart, _without_line(apart))
    activities = enumeration(sorted({member.sample.activity for member in apart}))
    return _HangCause("apart", apart, f"{_is(apart)}{_at_frames(apart)}, {activities}")


def _apart(ranks: Sequence[RankSample], *, lines: bool) -> list[RankSample] | None:
    """Return the ranks that are not where most of them are; None if there is no such place."""
    calls = [member.sample.calls(lines=lines) for member in ranks]
    usual_calls, count = Counter(calls).most_common(1)[0]
    if 2 * count <= len(ranks):
        return None
    return [member for member, rank_calls in zip(ranks, calls, strict=True) if rank_calls != usual_calls]


def _loading(starved: Sequence[RankSample]) -> str:
    workers = [worker for member in starved for worker in member.workers if worker.is_in_training_code]
    frame, count = Counter(worker.location for worker in workers).most_common(1)[0]
    total = sum(len(member.workers) for member in starved)
    which = {1: "its worker is", 2: "both workers are"}.get(total, f"all {total} workers are")
    if count < total:
        which = f"{counted(count, 'worker')} of {total} {'is' if count == 1 else 'are'}"
    activities = enumeration(sorted({worker.activity for worker in workers if worker.location == frame}))
    wait = "waits for its data loader" if len(starved) == 1 else "wait for their data loaders"
    return f"{wait}: {which} at {frame}, {activities}"


def _waiting(ranks: Sequence[RankSample]) -> list[str]:
    """Return where the other ranks wait: "Ranks 0, 1 and 3 wait in backward (train.py:34)"."""
    groups: dict[object, list[RankSample]] = {}
    for member in ranks:
        groups.setdefault(member.sample.location and member.sample.location[:2], []).append(member)
    sentences = []
    for ranks_there in groups.values():
        frame = ranks_there[0].sample.location
        verb = "waits" if len(ranks_there) == 1 else "wait"
        call = f"{verb} in {frame}" if frame else _without_line(ranks_there)
        sentences.append(f"{_who(ranks_there)} {call}")
    return sentences


def _same_location(ranks: Sequence[RankSample]) -> str:
    """Return that all ranks are in one call, and what they wait for."""
    frame = ranks[0].sample.location
    busy = any(member.sample.busy >= _MIN_BUSY_FRACTION for member in ranks)
    if frame is None:
        return _without_lines(ranks)
    if len(ranks) == 1:
        loading = f", and {_loading(ranks)}" if ranks[0].is_starved else ""
        return f"{_who(ranks)} is at {frame} and {'computes' if busy else 'uses no CPU'}{loading}"
    all_ = "Both" if len(ranks) == 2 else f"All {len(ranks)}"
    subject = f"{all_} ranks on this host are at {frame} and"
    if all(member.is_starved for member in ranks):
        return f"{subject} {_loading(ranks)}; no single rank is at fault"
    if busy:
        return f"{subject} compute or poll; no single rank is at fault"
    elsewhere = ranks[0].rank.world > len(ranks) and not ranks[0].rank.spawned
    cause = "a rank on another host or storage" if elsewhere else "storage"
    return f"{subject} use no CPU: {cause}, probably; no single rank is at fault"


def _without_lines(ranks: Sequence[RankSample]) -> str:
    """Return what is known of ranks of which no line is known, and once why that is so."""
    reasons = {member.sample.stack.unknown for member in ranks if member.sample.location is None}
    if len(ranks) == 1 or len(reasons) > 1 or any(member.sample.location for member in ranks):
        return "; ".join(map(_alone, ranks))
    same_call: dict[str, list[RankSample]] = {}
    for member in ranks:
        same_call.setdefault(f"{member.sample.activity}{_in_kernel([member])}", []).append(member)
    odd = len(same_call) == 2 and len(ranks) >= _MIN_RANKS
    groups = sorted(same_call.items(), key=lambda group: len(group[1])) if odd else same_call.items()
    parts = [
        f"{_who(members)} {_is(members)} {'the odd one, ' if odd and len(members) == 1 else ''}{does}"
        for does, members in groups
    ]
    return f"{'; '.join(parts)}. Their lines are unknown because {reasons.pop()}"


def _alone(member: RankSample) -> str:
    frame = member.sample.location
    if frame is None:
        return f"{_who([member])} {_without_line([member])}"
    return f"{_who([member])} is at {frame}, {member.sample.activity}"


def _without_line(ranks: Sequence[RankSample]) -> str:
    """Return what is known of ranks whose line is not."""
    sample = ranks[0].sample
    its = "its line is" if len(ranks) == 1 else "their lines are"
    return f"{_is(ranks)} {sample.activity}{_in_kernel(ranks)}; {its} unknown because {sample.stack.unknown}"


def _at_frames(ranks: Iterable[RankSample]) -> str:
    frames = {str(member.sample.location) for member in ranks if member.sample.location}
    return f" at {enumeration(sorted(frames))}" if frames else ""


def _in_kernel(ranks: Iterable[RankSample]) -> str:
    functions = {member.sample.waits_in for member in ranks if member.sample.waits_in}
    return f" in {enumeration(sorted(functions))}" if functions else ""


def _is(ranks: Sequence[RankSample]) -> str:
    return "is" if len(ranks) == 1 else "are"


def _who(members: Iterable[RankSample]) -> str:
    ranks = [member.rank for member in members]
    return rank_names(ranks) if ranks[0].world > 1 else "Its process"


def _all_frames(ranks: Iterable[RankSample]) -> str:
    """Return the frames of each rank and of its workers, the innermost first."""
    lines = []
    for member in ranks:
        name = _who([member])
        samples = [(name, member.sample), *((f"{name}, worker", worker) for worker in member.workers)]
        for title, sample in samples:
            calls = " < ".join(map(str, sample.stack.frames[:_MAX_FRAMES]))
            lines.append(f"{title}: {calls or sample.stack.unknown}")
    return "; ".join(lines)[:_MAX_FRAME_CHARACTERS]
