"""What the machine is short of, as evidence for a run that is silent; none of it is an alarm."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sentinel.processes.memory import memory_of
from sentinel.processes.table import PROC, Process

_FULL = 0.01  # share of a file system that is left
_NEAR = 0.95  # share of a limit that is used
_PRESSURE = 20.0  # percent of the last minute in which somebody waited
_SHARED = Path("/dev/shm")  # noqa: S108  loader workers hand over their batches there
_MIB = 1 << 20


def shortages(log: Path, writer: Process | None) -> str:
    """Return what is used up or waited for, in words: "/dev/shm is full (0 MiB left)"; empty if nothing
    is.
    """
    lacks = [full(log)] if full(log) else []
    if writer is not None:
        lacks += [*_memory(writer), *_descriptors(writer)]
    return "; ".join([*lacks, *(line for name in ("memory", "io") for line in _pressure(name))])


def full(log: Path) -> str:
    """Return the file systems without room that a training writes to, in words; empty if there are none."""
    return "; ".join([*_full("the file system of the log", log), *_full(str(_SHARED), _SHARED)])


def _full(name: str, place: Path) -> Iterator[str]:
    with suppress(OSError):
        system = os.statvfs(place)
        if system.f_blocks and system.f_bavail < _FULL * system.f_blocks:
            yield f"{name} is full ({system.f_bavail * system.f_frsize // _MIB:,} MiB left)"


def _memory(writer: Process) -> Iterator[str]:
    memory = memory_of(writer)
    used = memory.used()
    limit = memory.limit()
    if used and limit and used > _NEAR * limit:
        yield f"its control group uses {100 * used / limit:.0f}% of {limit / (1 << 30):.3g} GiB"


def _descriptors(writer: Process) -> Iterator[str]:
    with suppress(OSError, ValueError, StopIteration):
        lines = (PROC / str(writer.pid) / "limits").read_text().splitlines()
        most = int(next(line for line in lines if line.startswith("Max open files")).split()[3])
        if (count := len(os.listdir(PROC / str(writer.pid) / "fd"))) > _NEAR * most:
            yield f"it has {count:,} of {most:,} descriptors open"


def _pressure(name: str) -> Iterator[str]:
    with suppress(OSError, ValueError, IndexError):
        some = (PROC / "pressure" / name).read_text().split("avg60=")[1].split()[0]
        if float(some) >= _PRESSURE:
            yield f"{float(some):.0f}% of the last minute something waited for {name}"
