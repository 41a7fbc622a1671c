"""What the machine is short of, as evidence for a run that is silent; none of it is an alarm."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sentinel.processes.memory import memory_of
from sentinel.processes.table import PROC, Process

_MIN_FREE_FRACTION = 0.01  # of a file system; below that it is full
_MAX_USED_FRACTION = 0.95  # of a limit; above that it is nearly reached
_MIN_PRESSURE = 20.0  # percent of the last minute in which something waited
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  loader workers hand over their batches there
_MIB = 1 << 20  # bytes
_GIB = 1 << 30  # bytes


def shortages(log: Path, writer: Process | None) -> str:
    """Return what is used up or waited for, in words: "/dev/shm is full (0 MiB left)"; empty if nothing."""
    lines = [full(log)]
    if writer is not None:
        lines += [*_memory(writer), *_descriptors(writer)]
    return "; ".join(filter(None, [*lines, *_pressure("memory"), *_pressure("io")]))


def full(log: Path) -> str:
    """Return the file systems without room that a training writes to, in words; empty if there are none."""
    systems = {"the file system of the log": log, str(_SHARED_MEMORY): _SHARED_MEMORY}
    return "; ".join(line for name, path in systems.items() for line in _full(name, path))


def _full(name: str, path: Path) -> Iterator[str]:
    with suppress(OSError):
        system = os.statvfs(path)
        if system.f_blocks and system.f_bavail < _MIN_FREE_FRACTION * system.f_blocks:
            yield f"{name} is full ({system.f_bavail * system.f_frsize // _MIB:,} MiB left)"


def _memory(writer: Process) -> Iterator[str]:
    memory = memory_of(writer)
    used = memory.used()
    limit = memory.limit()
    if used and limit and used > _MAX_USED_FRACTION * limit:
        yield f"its control group uses {100 * used / limit:.0f}% of {limit / _GIB:.3g} GiB"


def _descriptors(writer: Process) -> Iterator[str]:
    with suppress(OSError, ValueError, StopIteration):
        lines = (PROC / str(writer.pid) / "limits").read_text().splitlines()
        limit = int(next(line for line in lines if line.startswith("Max open files")).split()[3])
        count = len(os.listdir(PROC / str(writer.pid) / "fd"))
        if count > _MAX_USED_FRACTION * limit:
            yield f"it has {count:,} of {limit:,} descriptors open"


def _pressure(name: str) -> Iterator[str]:
    with suppress(OSError, ValueError, IndexError):
        percent = float((PROC / "pressure" / name).read_text().split("avg60=")[1].split()[0])
        if percent >= _MIN_PRESSURE:
            yield f"{percent:.0f}% of the last minute something waited for {name}"
