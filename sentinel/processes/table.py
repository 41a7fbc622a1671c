"""What `/proc` says of the processes of this machine, by `stat`, `readlink` and small reads alone."""

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

PROC = Path("/proc")

RANK_KEYS = frozenset(
    (
        *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK"),
        *("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"),
        *("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_JOB_ID", "SLURM_STEP_ID"),
        *("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
        *("PMI_RANK", "PMI_SIZE"),
    )
)
"""The only variables of another process's environment that anybody learns."""

_MAX_DESCRIPTORS = 1000  # of a process
_MAX_PATH_LENGTH = 4096  # characters
_MAX_STAT_BYTES = 4096  # of `/proc/PID/stat`
_MAX_PROC_BYTES = 1 << 17  # of the arguments or the environment of a process

File = tuple[int, int]  # device and inode


class Process(NamedTuple):
    """One process. Its number alone may be given again; its number and its start identify it."""

    pid: int
    started: int  # clock ticks since the machine started
    parent: int
    user: int
    name: str  # untrusted
    state: str  # a letter of proc(5)


class Descriptors(msgspec.Struct):
    """The files and pipes that a process has open."""

    writes: set[File] = msgspec.field(default_factory=set)
    reads: set[File] = msgspec.field(default_factory=set)
    pipes: set[File] = msgspec.field(default_factory=set)  # those that it reads
    stdin: File | None = None
    prints: set[File] = msgspec.field(default_factory=set)  # its standard output and error


def process(pid: int) -> Process | None:
    """Return a process by its number; None if there is none."""
    with suppress(OSError, ValueError, IndexError):
        fields = stat_fields(pid)
        user = os.stat(f"{PROC}/{pid}").st_uid
        return Process(pid, int(fields[20]), int(fields[2]), user, fields[0], fields[1])
    return None


def lives(target: Process) -> bool:
    """Return whether a process is still there, and not another one that got its number."""
    now = process(target.pid)
    return now is not None and now.started == target.started and now.state not in "ZX"


def is_in_container(pid: int) -> bool:
    """Return whether a process runs in a pid namespace below this one's, where it has another number."""
    with suppress(OSError):
        for line in (PROC / str(pid) / "status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return len(line.split()) > 2  # the label, the number here, and that in each namespace below
    return False


def stat_fields(pid: int) -> list[str]:
    """Return the fields of `/proc/PID/stat` from the second on. Raises OSError for no such process."""
    file = os.open(f"{PROC}/{pid}/stat", os.O_RDONLY)  # of all processes, so not by slower means
    try:
        text = os.read(file, _MAX_STAT_BYTES).decode(errors="replace")
    finally:
        os.close(file)
    name, _, rest = text.partition("(")[2].rpartition(")")
    return [name, *rest.split()]


def processes() -> dict[int, Process]:
    """Return all processes but this one, by number."""
    with suppress(OSError):
        numbers = (int(name) for name in os.listdir(PROC) if name.isdigit())
        every = ((pid, process(pid)) for pid in numbers if pid != os.getpid())
        return {pid: target for pid, target in every if target is not None}
    return {}


def descriptors(pid: int) -> Descriptors:
    """Return what a process has open; nothing where that may not be seen."""
    opened = Descriptors()
    with suppress(OSError), os.scandir(PROC / str(pid) / "fd") as links:
        for link in islice(links, _MAX_DESCRIPTORS):
            with suppress(OSError):
                status = os.stat(link.path)
                if not (stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode)):
                    continue
                file = (status.st_dev, status.st_ino)
                mode = os.lstat(link.path).st_mode
                if link.name == "0":
                    opened.stdin = file
                if mode & stat.S_IWUSR:
                    opened.writes.add(file)
                    if link.name in "12":
                        opened.prints.add(file)
                if mode & stat.S_IRUSR:
                    opened.reads.add(file)
                    if stat.S_ISFIFO(status.st_mode):
                        opened.pipes.add(file)
    return opened


def arguments(pid: int) -> list[str]:
    """Return the arguments of a process, which are untrusted; empty where they may not be seen."""
    return [os.fsdecode(part) for part in _proc_parts(pid, "cmdline")]


def rank_keys(pid: int) -> Mapping[str, str]:
    """Return what the environment of a process says of its rank, and nothing else of it."""
    pairs = (os.fsdecode(part).partition("=") for part in _proc_parts(pid, "environ"))
    return {name: value for name, _, value in pairs if name in RANK_KEYS}


def named_paths(pid: int) -> set[str]:
    """Return the paths that a process names in arguments and environment; for comparing, not for showing."""
    base = str(directory(pid) or "/")
    words = arguments(pid) + [os.fsdecode(part) for part in _proc_parts(pid, "environ") if b"=/" in part]
    ends = (end for word in words for end in (word, word.partition("=")[2]))
    paths = {end for end in ends if 0 < len(end) < _MAX_PATH_LENGTH}
    return {os.path.normpath(os.path.join(base, end)) for end in paths}  # noqa: PTH118  ten times as fast


def directory(pid: int) -> Path | None:
    """Return the working directory of a process; None where it may not be seen."""
    with suppress(OSError):
        return (PROC / str(pid) / "cwd").readlink()
    return None


def bytes_written(pid: int) -> int | None:
    """Return how many bytes a process has written, to whatever; None where it may not be seen."""
    return _proc_number(PROC / str(pid) / "io", "wchar:")


def bytes_moved(pid: int) -> int | None:
    """Return how many bytes a process has read and written in all; None where that may not be seen."""
    bytes_read = _proc_number(PROC / str(pid) / "io", "rchar:")
    wrote = bytes_written(pid)
    return None if bytes_read is None or wrote is None else bytes_read + wrote


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used; 0 if there is no such process."""
    with suppress(OSError, ValueError, IndexError):
        return sum(map(int, stat_fields(pid)[12:14])) / ticks_per_second()
    return 0.0


def started_at(target: Process) -> float:
    """Return when a process was started, in seconds since the epoch."""
    return float(_proc_number(PROC / "stat", "btime ") or 0) + target.started / ticks_per_second()


def seconds_awake(target: Process) -> float:
    """Return when a process was started, in seconds since the machine was."""
    return target.started / ticks_per_second()


@cache
def ticks_per_second() -> int:
    """Return the unit of the times in `/proc/PID/stat`."""
    return os.sysconf("SC_CLK_TCK")


def _proc_parts(pid: int, name: str) -> list[bytes]:
    with suppress(OSError), (PROC / str(pid) / name).open("rb") as file:
        return [part for part in file.read(_MAX_PROC_BYTES).split(b"\0") if part]
    return []


def _proc_number(file: Path, label: str) -> int | None:
    """Return the number after a label in a file of `/proc`."""
    with suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            if line.startswith(label):
                return int(line.removeprefix(label))
    return None
