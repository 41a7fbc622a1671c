"""Which process of this machine writes a log: one pass over all processes serves all logs.

A process counts only if it has the user who owns the log. In this order:

- A process that has the log open for writing. Loader workers inherit that, so the topmost of such processes
  counts. If that is W&B's own helper, the training that its arguments name, else its parent.
- If it only copies what it gets through a pipe, as `tee`, `slurmstepd` and `containerd-shim` do, the process
  at the other end of the pipe.
- The process that an event file of TensorBoard names, since its writer closes the file between two writes.

What opens its log, appends to it and closes it is found by `growth.py`. Where several processes may be meant,
none is. The inode of a file is compared at once and never kept, because it may be given to another file.
"""

import os
import re
import socket
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from sentinel.processes.table import (
    Descriptors,
    File,
    Process,
    arguments,
    descriptors,
    directory,
    places,
    processes,
    started_at,
    ticks_per_second,
)
from sentinel.sources.readers.files import real_path

HOLDS = "holds the log"
BEHIND_PIPE = "writes to the pipe that the log comes from"
NAMED = "is named by the event file"
HELPED = "is named by W&B's helper"

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "fish", "ksh"))
COPY_FILES = frozenset(("rsync", "scp", "sftp-server", "sshd", "cp", "rclone", "aws", "gsutil", "dd"))
"""They bring a log from elsewhere, so their ends say nothing about a run."""

_ROOT = Path("/")
_Key = TypeVar("_Key")
_MAX_FILES = 100  # of a directory with a log
_PRINTED = frozenset(("tee", "cat", "ts", "awk", "rotatelogs", "multilog"))  # copy their standard input
_SERVICES = frozenset(("slurmstepd", "containerd-shim", "conmon", "dockerd"))  # copy what jobs print
_HELPERS = frozenset(("wandb-core",))  # writes W&B's file for the training, which is another process
_EVENTS = re.compile(r"events\.out\.tfevents\.(\d+)\.(.+)\.(\d+)\.\d+(?:\.v2)?")
_YOUNG_SECONDS = 600.0  # before the newest process; a training takes minutes to its first step
_SLACK_SECONDS = 60.0  # the clock may have been set since


class Found(NamedTuple):
    """A process that writes a log, and by what it was found: "which holds the log"."""

    process: Process
    by: str


class Host:
    """The processes of this machine at one moment, for the logs of many runs.

    What they have open is asked for when it is needed, which takes most of the time.
    """

    def __init__(self, whole: "Host | None" = None) -> None:
        self.processes: Mapping[int, Process] = processes() if whole is None else whole.processes
        self._open: dict[int, Descriptors] = {}
        self._asked = {*self.processes} if whole is None else self._young()

    @cached_property
    def young(self) -> "Host":
        """The same moment, asking only processes that started lately and those above them.

        That takes little time on a machine with many processes, and is enough for a log that just began.
        """
        return Host(self)

    def writer(self, log: Path) -> Found | None:
        """Return the process that writes a log, a file or a directory with files; None if none is certain."""
        owners = files_of(log)
        holders = {pid for file in owners for pid in self.writers(file)}
        mine = [pid for pid in holders if self._may_write(pid, owners)]
        top = self._topmost(mine)
        if top is None:
            return self._of_event_files(log)
        name = self.processes[top].name
        if name in COPY_FILES:
            return None
        if name in _HELPERS:
            return self._found(self._helped(top), HELPED, owners)
        if name in _PRINTED and (pipe := self.open(top).stdin) is not None:
            return self._found(self._behind({pipe}, top), BEHIND_PIPE, owners)
        if name in _SERVICES:
            return self._found(self._behind(self.open(top).pipes, top), BEHIND_PIPE, owners)
        return self._found(top, HOLDS, owners)

    def open(self, pid: int) -> Descriptors:
        """Return what a process had open when it was first asked for."""
        if pid not in self._open:
            self._open[pid] = descriptors(pid)
        return self._open[pid]

    def writers(self, file: File) -> Sequence[int]:
        """Return the processes that have a file or a pipe open for writing."""
        return self._holders.get(file, ())

    def above(self, pid: int) -> Iterator[Process]:
        """Yield the parents of a process, the nearest first."""
        seen: set[int] = set()
        while (process := self.processes.get(pid)) is not None and process.parent not in seen:
            seen.add(pid := process.parent)
            if (parent := self.processes.get(pid)) is not None:
                yield parent

    def about(self, log: Path) -> list[Process]:
        """Return the processes that work in a log's directory or above, or name it in arguments or
        environment.
        """
        place = Path(real_path(log))
        near = {str(path) for path in (place, place.parent, place.parent.parent)}
        pids = {pid for path in near for pid in self._naming.get(path, ())}
        pids |= {pid for path in (place, *place.parents) for pid in self._working.get(path, ())}
        return [self.processes[pid] for pid in sorted(pids)]

    def _young(self) -> set[int]:
        newest = max((process.started for process in self.processes.values()), default=0)
        since = newest - _YOUNG_SECONDS * ticks_per_second()
        young = {process.pid for process in self.processes.values() if process.started >= since}
        return young | {parent.pid for pid in young for parent in self.above(pid)}

    @cached_property
    def _naming(self) -> Mapping[str, list[int]]:
        """By path, the processes that name it or something in it."""
        named = ((path, pid) for pid in self._asked for path in places(pid))
        pairs = ((each, pid) for path, pid in named for each in (path, path.rpartition("/")[0]))
        return _by((each, pid) for each, pid in pairs if each not in ("", "/"))

    @cached_property
    def _working(self) -> Mapping[Path, list[int]]:
        """By directory, the processes that work in it."""
        return _by((path, pid) for pid in self._asked if (path := directory(pid)) not in (None, _ROOT))

    @cached_property
    def _holders(self) -> Mapping[File, list[int]]:
        """By file or pipe, the processes that have it open for writing."""
        return _by((file, pid) for pid in self._asked for file in self.open(pid).writes)

    def _may_write(self, pid: int, owners: Mapping[File, int]) -> bool:
        """Return whether a process has a log open for its owner now; it had some file of this number open."""
        process = self.processes[pid]
        now = descriptors(pid).writes
        serves = process.name in _SERVICES
        return any(file in now for file, owner in owners.items() if process.user == owner or serves)

    def _found(self, pid: int | None, by: str, owners: Mapping[File, int]) -> Found | None:
        process = self.processes.get(pid or 0)
        return Found(process, by) if process is not None and process.user in owners.values() else None

    def _topmost(self, pids: list[int]) -> int | None:
        """Of some processes, the one that none of the others started; None if there are none or several.

        A shell that started the others counts only if there are none, and so does W&B's helper.
        """
        for passed_over in (SHELLS | _HELPERS, _HELPERS):
            pids = [pid for pid in pids if self.processes[pid].name not in passed_over] or pids
        top = [pid for pid in pids if not any(parent.pid in pids for parent in self.above(pid))]
        return top[0] if len(top) == 1 else None

    def _behind(self, pipes: set[File], copier: int) -> int | None:
        """Return the process whose output another one copies."""
        behind = {pid for pipe in pipes for pid in self._holders.get(pipe, ())} - {copier}
        return self._topmost([pid for pid in behind if self.open(pid).prints & pipes])

    def _helped(self, pid: int) -> int | None:
        """Return the process that W&B's helper works for."""
        words = arguments(pid)
        with suppress(ValueError, IndexError):
            return int(words[words.index("--pid") + 1])
        return self.processes[pid].parent

    def _of_event_files(self, log: Path) -> Found | None:
        """Return the process that the newest event file of this machine names, if it is as old as that file
        says.
        """
        with suppress(OSError):
            named = [
                (int(told[1]), int(told[3]), file)
                for file in _listed(log)
                if (told := _EVENTS.fullmatch(file.name)) and told[2] == socket.gethostname()
            ]
            for began, pid, file in sorted(named, reverse=True)[:1]:
                process = self.processes.get(pid)
                owner = file.stat().st_uid
                if process and process.user == owner and started_at(process) <= began + _SLACK_SECONDS:
                    return Found(process, NAMED)
        return None


def _by(pairs: Iterable[tuple[_Key, int]]) -> Mapping[_Key, list[int]]:
    lists: dict[_Key, list[int]] = {}
    for key, pid in pairs:
        lists.setdefault(key, []).append(pid)
    return lists


def files_of(log: Path) -> Mapping[File, int]:
    """Return the files of a log, with their owners."""
    owners = {}
    with suppress(OSError):
        for file in _listed(log):
            status = file.stat()
            if stat.S_ISREG(status.st_mode):
                owners[status.st_dev, status.st_ino] = status.st_uid
    return owners


def size_of(log: Path) -> int:
    """Return the bytes of all files of a log."""
    with suppress(OSError):
        return sum(os.stat(file).st_size for file in _listed(log))
    return 0


def _listed(log: Path) -> list[Path]:
    return [*islice(log.iterdir(), _MAX_FILES)] if log.is_dir() else [log]
