"""What the kernel's log says of a process: that the OOM killer ended it, in which library it failed, or that
its GPU did.

The log is readable for few, and numbers processes as the machine does, so not within a container. Names in
it are the process's own, so they are untrusted.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.text import clean_text
from sentinel.processes.table import PROC, Process, seconds_awake

_KERNEL_LOG = Path("/dev/kmsg")
_INITIAL_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO: process numbers are those of the machine
_KERNEL_RECORD = lazy_pattern(rb"\d+,\d+,(\d+),[^;]*;(.*)")
_KILLED_PROCESS = rb"Killed process %d \("
_SEGMENTATION_FAULT = rb"\[%d\]: segfault at .* in ([^\[\]]+)\["
_XID = (  # of NVIDIA's driver; an error of the whole GPU names no process
    rb"NVRM: Xid \(PCI:([\da-fA-F:.]+)\): (\d+)(?:, pid='?(?:%d|<unknown>)'?, name=[^,]*)?, (?!pid=)(.+)"
)
_MAX_XIDS = 4  # in one text
_MAX_RECORD_BYTES = 8192  # of one read; the kernel gives one record at a time


def killed_by_oom(target: Process) -> bool | None:
    """Return whether the OOM killer ended a process; None if the log cannot be asked."""
    records = _search(target, _KILLED_PROCESS)
    return None if records is None else bool(records)


def faulted_in(target: Process) -> str:
    """Return the library in which a process's main thread had a segmentation fault; empty if unknown."""
    records = _search(target, _SEGMENTATION_FAULT)
    return clean_text(os.fsdecode(records[-1][1]), 60) if records else ""


def xids(target: Process) -> str:
    """Return the last errors of GPUs that NVIDIA's driver reported of a process, or of no process, in words;
    empty if it reported none.
    """
    errors = (
        f"Xid {int(line[2])} of the GPU at {os.fsdecode(line[1])} ({clean_text(os.fsdecode(line[3]), 80)})"
        for line in _search(target, _XID) or ()
    )
    return "; ".join([*dict.fromkeys(errors)][-_MAX_XIDS:])


def _search(target: Process, words: bytes) -> list[re.Match[bytes]] | None:
    """Return the lines about a process since it started; None if the log cannot be read."""
    try:
        if str((PROC / "self" / "ns" / "pid").readlink()) != _INITIAL_NAMESPACE:
            return None
        records = [*_records()]
    except OSError:
        return None
    since = seconds_awake(target) - 1
    about = re.compile(words % target.pid)
    matches = (about.search(text) for logged_at, text in records if logged_at >= since)
    return [match for match in matches if match]


def _records() -> Iterator[tuple[float, bytes]]:
    """Yield the records of the kernel's log, with the seconds since the machine started."""
    log = os.open(_KERNEL_LOG, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while True:
            try:
                record = os.read(log, _MAX_RECORD_BYTES)
            except BlockingIOError:
                return
            except BrokenPipeError:  # it was overwritten meanwhile
                continue
            if parts := _KERNEL_RECORD.match(record):
                yield int(parts[1]) / 1e6, parts[2]
    finally:
        os.close(log)
