"""Memory of the training on its host, and what is free of its shared memory.

A cache in the dataset, or a list that keeps tensors, grows until the kernel ends the training. Workers that
hand over batches fail once `/dev/shm` is full.

## Cost
Two system calls.

## When it misleads
Workers of the loader are processes of their own and not counted. Files that the training maps are not
counted either: the kernel gives their pages back. It knows Linux alone.

## Source
Probes `host/rss` and `host/shm_free` of the catalogue (DP9, DP15); `proc(5)`, `statvfs(3)`.
"""

import os
from pathlib import Path

from sentinel.probes.base import Cost, Moment, Numbers, ProbeSet, Subject, Unsuitable

_GIB = 2.0**30  # bytes
_OWN_MEMORY = Path("/proc/self/statm")
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  it is measured, not written to


class HostMemory(
    ProbeSet,
    shows={
        "host/rss": "resident memory of the training's process but for mapped files, GiB",
        "host/shm_free": "free shared memory, GiB",
    },
    entries=("DP9", "DP15"),
    cost=Cost.DEFAULT,
    needs_torch=False,
):
    """Asks the kernel."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        if not (_OWN_MEMORY.exists() and _SHARED_MEMORY.exists()):
            raise Unsuitable("this system has no /proc or no /dev/shm")

    def measure(self, moment: Moment) -> Numbers:
        """Return two numbers, or one where nothing limits the shared memory."""
        _, resident, mapped, *_ = map(int, _OWN_MEMORY.read_text().split())
        numbers = {"host/rss": (resident - mapped) * os.sysconf("SC_PAGESIZE") / _GIB}
        shared = os.statvfs(_SHARED_MEMORY)
        if shared.f_blocks:
            numbers["host/shm_free"] = shared.f_bavail * shared.f_frsize / _GIB
        return numbers
