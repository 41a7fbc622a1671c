"""Whether the OOM killer ended a process: the kernel's log and the counts of its control group say so.

The kernel's log names the process. Where it cannot be read, only the counts are known. A count is of all
processes of a group.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec
from msgspec.structs import replace

from sentinel.common.paths import exists
from sentinel.processes.kernel_log import killed_by_oom
from sentinel.processes.table import PROC, Process

_UNLIMITED_BYTES = 1 << 60  # bytes; version 1 says nearly 2**63 where there is no limit
_GIB = 1 << 30  # bytes

# files of a control group, of version 2 and of version 1
_LIMIT_FILES = "memory.max", "memory.limit_in_bytes"
_USE_FILES = "memory.current", "memory.usage_in_bytes"
_KILL_COUNT_FILES = "memory.events", "memory.oom_control"


class GroupMemory(msgspec.Struct, frozen=True):
    """The memory of a process's control group: its directory, and how many kills it had counted at first."""

    process: Process
    group: Path | None
    kills: int

    def count_kills(self) -> Self:
        """Return the same with the kills that the group has counted by now."""
        return replace(self, kills=_kills(self.group))

    def killer(self) -> str:
        """Return who killed the process with SIGKILL: the OOM killer, with its limit; empty if unknown."""
        log = killed_by_oom(self.process)
        if not (_kills(self.group) > self.kills if log is None else log):
            return ""
        limit = self.limit()
        return f"the OOM killer ({f'cgroup limit {limit / _GIB:.3g} GiB' if limit else 'the host is full'})"

    def limit(self) -> int | None:
        """Return the bytes that the group may use; None if only the machine bounds them."""
        limits = [_cgroup_number(cgroup, *_LIMIT_FILES) for cgroup in _upwards(self.group)]
        return min((limit for limit in limits if limit and limit < _UNLIMITED_BYTES), default=None)

    def used(self) -> int | None:
        """Return the bytes that the group uses."""
        return _cgroup_number(self.group, *_USE_FILES) if self.group else None


def memory_of(target: Process) -> GroupMemory:
    """Return what is known of the memory of a process's control group."""
    cgroup = _group(target.pid)
    return GroupMemory(target, cgroup, _kills(cgroup))


def _group(pid: int) -> Path | None:
    """Return the directory of a process's memory control group, of version 1 or 2."""
    with suppress(OSError, ValueError):
        paths = {}
        for line in (PROC / str(pid) / "cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            paths[controllers] = path
        for kind, root, point, options in _mounts():
            key = "memory" if kind == "cgroup" else ""
            if key in paths and (kind == "cgroup2" or "memory" in options):
                cgroup = Path(point) / os.path.relpath(paths[key], root)
                if any(exists(cgroup / name) for name in _KILL_COUNT_FILES):
                    return cgroup
    return None


def _mounts() -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield the kind, the root, the mount point and the options of each mount of control groups."""
    for line in (PROC / "self" / "mountinfo").read_text().splitlines():
        about, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            root, point = about.split()[3:5]
            yield kind, root, point, options.split(",")


def _upwards(cgroup: Path | None) -> Iterator[Path]:
    """Yield the group and those above it."""
    while cgroup is not None and any(exists(cgroup / name) for name in _LIMIT_FILES):
        yield cgroup
        cgroup = cgroup.parent


def _kills(cgroup: Path | None) -> int:
    """Return how many processes of a group the OOM killer has ended."""
    return (_cgroup_number(cgroup, *_KILL_COUNT_FILES, label="oom_kill ") or 0) if cgroup else 0


def _cgroup_number(cgroup: Path, *names: str, label: str = "") -> int | None:
    """Return the number in the first of some files of a group that holds one, behind a label."""
    for name in names:
        with suppress(OSError, ValueError):
            for line in (cgroup / name).read_text().splitlines():
                if line.startswith(label):
                    return int(line.removeprefix(label))
    return None
