"""Tells the file systems of the kernel, by their type, from those on which logs lie.

No log lies on one of the kernel, and some of its files keep a reader waiting or have no end.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from sentinel.common.paths import exists

MOUNTS = Path("/proc/self/mountinfo")
_MAX_DEVICES = 1 << 12  # that are remembered
_KERNEL_TYPES = frozenset(
    {
        *("binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs"),
        *("fusectl", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "smackfs"),
        *("sysfs", "tracefs"),
    }
)


class Mount(NamedTuple):
    """A file system, the number of its device (such as "0:21") and where it is mounted."""

    device: str
    point: str
    type: str


def mounts(text: str) -> Iterator[Mount]:
    """Yield the mounts in the text of proc's mountinfo; a later one hides an earlier one."""
    for line in text.splitlines():
        about, _, file_system = line.partition(" - ")
        _, _, device, _, point, *_ = about.split()
        point = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), point)
        yield Mount(device, point, file_system.split()[0])


@lru_cache(_MAX_DEVICES)
def is_of_kernel(major: int, minor: int) -> bool:
    """Return whether the device of a file, as `os.stat` gives it, is a file system of the kernel."""
    if not exists(MOUNTS):
        return False  # not on Linux
    own = [mount for mount in mounts(MOUNTS.read_text()) if mount.device == f"{major}:{minor}"]
    return any(mount.type in _KERNEL_TYPES for mount in own)
