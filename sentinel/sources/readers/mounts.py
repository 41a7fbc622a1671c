"""Tells the file systems of a machine apart by their type.

No log lies on one of the kernel, and some of its files keep a reader waiting or have no end. One that other
machines may use, too, sends no events and holds no memory that they share.
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


LOCAL_SYSTEMS = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "ramfs", "tmpfs", "xfs", "zfs"}
)
"""File systems that this machine alone uses."""


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


def file_system(path: Path, text: str | None = None) -> str:
    """Return the type of the file system on which a real path lies; empty where no system tells.

    ``text`` is that of proc's mountinfo.
    """
    if text is None:
        if not exists(MOUNTS):
            return ""  # not on Linux
        text = MOUNTS.read_text()
    deepest = -1
    kind = ""
    for mount in mounts(text):
        if path.is_relative_to(mount.point) and len(mount.point) >= deepest:
            deepest = len(mount.point)
            kind = mount.type
    return kind


@lru_cache(_MAX_DEVICES)
def is_of_kernel(major: int, minor: int) -> bool:
    """Return whether the device of a file, as `os.stat` gives it, is a file system of the kernel."""
    if not exists(MOUNTS):
        return False  # not on Linux
    device_mounts = [mount for mount in mounts(MOUNTS.read_text()) if mount.device == f"{major}:{minor}"]
    return any(mount.type in _KERNEL_TYPES for mount in device_mounts)
