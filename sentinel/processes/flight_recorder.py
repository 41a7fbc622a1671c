"""What PyTorch's flight recorder wrote about the last collectives of each rank: how far each rank got.

PyTorch writes a file for each rank when a collective takes too long, or when somebody asks for it: by
default to `~/.cache/torch/comm_lib_trace_rank_N`, older versions to `/tmp/nccl_trace_rank_N`. Files of these
names that lie beside the log are read, too. They are pickles, of which only plain data are read.
"""

import os
import pwd
import stat
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from sentinel.common.conversion import converter
from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.paths import is_directory
from sentinel.common.text import clean_text
from sentinel.processes.pickled import data_of
from sentinel.processes.ranks import Rank, rank_names
from sentinel.processes.stacks import DumpedFrame, Stack, frames_of
from sentinel.processes.table import started_at

_DUMP_NAME = lazy_pattern(r"(?:comm_lib|nccl)_trace_rank_(\d{1,6})")
_DUMP_DIRECTORY = Path("/tmp")  # noqa: S108  where older versions write
_MAX_DUMP_BYTES = 1 << 22  # of all files; a full recorder of 2,000 collectives takes about one MiB
_MAX_COLLECTIVES = 4  # different last ones in one text


class _Collective(msgspec.Struct):
    process_group: tuple[str, str]
    collective_seq_id: int
    profiling_name: str
    is_p2p: bool = False
    frames: list[DumpedFrame] = []


class _Recording(msgspec.Struct):
    entries: list[_Collective]


_recording = converter(_Recording)


def last_collectives(ranks: Sequence[Rank], log: Path) -> str:
    """Return how far the ranks got with the collectives of a group in which they differ, else of the first;
    empty where fewer than two of them have written anything since they were started.
    """
    groups: dict[str, dict[str, list[Rank]]] = {}
    for rank, collective in _last_by_group(ranks, log):
        name = clean_text(collective.process_group[1] or "a group", 40)
        groups.setdefault(name, defaultdict(list))[_words(collective)].append(rank)
    comparable = {name: by for name, by in groups.items() if sum(map(len, by.values())) > 1}
    if not comparable:
        return ""
    name = max(comparable, key=lambda name: len(comparable[name]) > 1)  # else the first
    rarest_first = sorted(comparable[name].items(), key=lambda item: len(item[1]))[:_MAX_COLLECTIVES]
    clauses = (f"{rank_names(ranks).lower()} began {words}" for words, ranks in rarest_first)
    return f"PyTorch's flight recorder, {name}: {'; '.join(clauses)}"


def _last_by_group(ranks: Sequence[Rank], log: Path) -> Iterator[tuple[Rank, _Collective]]:
    """Yield the last collective of each rank in each group."""
    free_bytes = _MAX_DUMP_BYTES
    for rank in ranks:
        contents = (
            file for directory in _directories(rank, log) for file in _recordings(rank, directory, free_bytes)
        )
        content = next(contents, b"")
        free_bytes -= len(content)
        with suppress(ValueError, msgspec.MsgspecError):
            last: dict[Any, _Collective] = {}
            for collective in _recording(data_of(content)).entries:
                if not collective.is_p2p:
                    last[collective.process_group] = collective
            yield from ((rank, collective) for collective in last.values())


def _directories(rank: Rank, log: Path) -> Iterator[Path]:
    """Yield the directories in which a recording of a rank may lie."""
    yield log if is_directory(log) else log.parent
    with suppress(KeyError):
        yield Path(pwd.getpwuid(rank.process.user).pw_dir) / ".cache" / "torch"
    yield _DUMP_DIRECTORY


def _recordings(rank: Rank, directory: Path, max_bytes: int) -> Iterator[bytes]:
    """Yield the files that a rank has written to a directory since it was started."""
    with suppress(OSError):
        for name in os.listdir(directory):
            match = _DUMP_NAME.fullmatch(name)
            if match is None or int(match[1]) != rank.number:
                continue
            descriptor = os.open(directory / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                may_read = stat.S_ISREG(status.st_mode) and status.st_uid == rank.process.user
                is_new = status.st_mtime >= started_at(rank.process)
                if may_read and is_new and status.st_size <= max_bytes:
                    yield file.read(max_bytes)


def _words(collective: _Collective) -> str:
    """Return a collective in words: "collective 18, gloo:all_reduce, in backward (train.py:34)"."""
    frame = Stack(frames_of(collective.frames)).location
    name = clean_text(collective.profiling_name, 60)
    return f"collective {collective.collective_seq_id:,}, {name}" + (f", in {frame}" if frame else "")
