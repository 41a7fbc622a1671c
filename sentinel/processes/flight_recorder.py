"""What PyTorch's flight recorder wrote about the last collectives of each rank: how far each rank got.

PyTorch writes a file for each rank when a collective takes too long, or when somebody asks for it: by
default to `~/.cache/torch/comm_lib_trace_rank_N`, older versions to `/tmp/nccl_trace_rank_N`. Files of these
names that lie beside the log are read, too. They are pickles, of which only plain data are read.
"""

import os
import pwd
import re
import stat
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from sentinel.common.conversion import converter
from sentinel.common.text import clean_text
from sentinel.processes.pickled import data_of
from sentinel.processes.ranks import Rank, names
from sentinel.processes.stacks import DumpedFrame, Stack, frames_of
from sentinel.processes.table import started_at

_NAME = re.compile(r"(?:comm_lib|nccl)_trace_rank_(\d{1,6})")
_TEMPORARY = Path("/tmp")  # noqa: S108  where older versions write
_MAX_BYTES = 1 << 22  # of all files; a full recorder of 2,000 collectives takes about one MiB
_MAX_WORDS = 4  # different last collectives


class _Collective(msgspec.Struct):
    process_group: tuple[str, str]
    collective_seq_id: int
    profiling_name: str
    is_p2p: bool = False
    frames: list[DumpedFrame] = []


class _Recording(msgspec.Struct):
    entries: list[_Collective]


_recording = converter(_Recording)


def recorded(ranks: Sequence[Rank], log: Path) -> str:
    """Return how far the ranks got with the collectives of a group in which they differ, else of the first;
    empty where nothing was written of at least two since they were started.
    """
    groups: dict[str, dict[str, list[Rank]]] = {}
    for rank, collective in _last(ranks, log):
        name = clean_text(collective.process_group[1] or "a group", 40)
        groups.setdefault(name, defaultdict(list))[_words(collective)].append(rank)
    comparable = {name: by for name, by in groups.items() if sum(map(len, by.values())) > 1}
    if not comparable:
        return ""
    name = max(comparable, key=lambda name: len(comparable[name]) > 1)  # else the first
    few_first = sorted(comparable[name].items(), key=lambda item: len(item[1]))[:_MAX_WORDS]
    said = (f"{names(some).lower()} began {words}" for words, some in few_first)
    return f"PyTorch's flight recorder, {name}: {'; '.join(said)}"


def _last(ranks: Sequence[Rank], log: Path) -> Iterator[tuple[Rank, _Collective]]:
    """Yield the last collective of each rank in each group."""
    left = _MAX_BYTES
    for rank in ranks:
        content = next((file for place in _places(rank, log) for file in _written(rank, place, left)), b"")
        left -= len(content)
        with suppress(ValueError, msgspec.MsgspecError):
            last: dict[Any, _Collective] = {}
            for collective in _recording(data_of(content)).entries:
                if not collective.is_p2p:
                    last[collective.process_group] = collective
            yield from ((rank, collective) for collective in last.values())


def _places(rank: Rank, log: Path) -> Iterator[Path]:
    """Yield the directories in which a recording of a rank may lie."""
    yield log if log.is_dir() else log.parent
    with suppress(KeyError):
        yield Path(pwd.getpwuid(rank.process.user).pw_dir) / ".cache" / "torch"
    yield _TEMPORARY


def _written(rank: Rank, place: Path, most: int) -> Iterator[bytes]:
    """Yield what a rank wrote to a directory since it was started, up to so many bytes."""
    with suppress(OSError):
        for name in os.listdir(place):
            if (numbered := _NAME.fullmatch(name)) is None or int(numbered[1]) != rank.number:
                continue
            descriptor = os.open(place / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                own = stat.S_ISREG(status.st_mode) and status.st_uid == rank.process.user
                if own and status.st_size <= most and status.st_mtime >= started_at(rank.process):
                    yield file.read(most)


def _words(collective: _Collective) -> str:
    """Return a collective for a person: "collective 18, gloo:all_reduce, in backward (train.py:34)"."""
    place = Stack(frames_of(collective.frames)).location
    name = clean_text(collective.profiling_name, 60)
    return f"collective {collective.collective_seq_id:,}, {name}" + (f", in {place}" if place else "")
