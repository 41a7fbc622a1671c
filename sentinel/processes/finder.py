"""Which process of this machine writes a log: one pass over all processes serves all logs.

A process counts only if it has the user who owns the log. In this order:

- A process that has the log open for writing. Loader workers inherit that, so the topmost of such processes
  counts. If that is W&B's own helper, the training that its arguments name, else its parent.
- If it only copies what it gets through a pipe, as `tee`, `slurmstepd` and `containerd-shim` do, the process
  at the other end of the pipe.
- The process that an event file of TensorBoard names, since its writer closes the file between two writes.
  Hugging Face's Trainer writes its state above `runs/`, where those files are.

What opens its log, appends to it and closes it is found by `write_rate.py`. Where several processes may be
meant, none is. The inode of a file is compared at once and never kept, because it may be given to another
file.
"""

import os
import socket
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.paths import is_directory
from sentinel.processes.table import (
    Descriptors,
    File,
    Process,
    arguments,
    descriptors,
    directory,
    is_in_container,
    named_paths,
    processes,
    started_at,
    ticks_per_second,
)
from sentinel.sources.readers.files import real_path

# how a writer was found, in words that follow "which"
HOLDS_LOG = "holds the log"
WRITES_TO_PIPE = "writes to the pipe that the log comes from"
NAMED_BY_EVENT_FILE = "is named by the event file"
NAMED_BY_HELPER = "is named by W&B's helper"

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "fish", "ksh"))
COPY_FILES = frozenset(("rsync", "scp", "sftp-server", "sshd", "cp", "rclone", "aws", "gsutil", "dd"))
"""They bring a log from elsewhere, so their ends say nothing about a run."""

_ROOT_DIRECTORY = Path("/")
_Key = TypeVar("_Key")
_MAX_LOG_FILES = 100  # of a directory with a log
_COPY_STDIN = frozenset(("tee", "cat", "ts", "awk", "rotatelogs", "multilog"))
_SERVICES = frozenset(("slurmstepd", "containerd-shim", "conmon", "dockerd"))  # copy what jobs print
_HELPERS = frozenset(("wandb-core",))  # writes W&B's file for the training, which is another process
_EVENT_FILE = lazy_pattern(r"events\.out\.tfevents\.(\d+)\.(.+)\.(\d+)\.\d+(?:\.v2)?")  # start, host, process
_EVENTS_BELOW = "runs/*/events.out.tfevents.*"
_YOUNG_SECONDS = 600.0  # before the newest process; a training takes minutes to its first step
_CLOCK_SLACK_SECONDS = 60.0  # by which the clock may have been set since


class LogWriter(NamedTuple):
    """A process that writes a log, and how it was found: "holds the log"."""

    process: Process
    by: str


class Host:
    """The processes of this machine at one moment, for the logs of many runs.

    What they have open is looked up when it is needed, which takes most of the time.
    """

    def __init__(self, whole: "Host | None" = None) -> None:
        self.processes: Mapping[int, Process] = processes() if whole is None else whole.processes
        self._open: dict[int, Descriptors] = {}
        self._pids = {*self.processes} if whole is None else self._young()  # those that are looked into

    @cached_property
    def young(self) -> "Host":
        """The same moment, with only the processes that started lately and those above them looked into.

        That takes little time on a machine with many processes, and is enough for a log that just began.
        """
        return Host(self)

    def writer(self, log: Path) -> LogWriter | None:
        """Return the process that writes a log, a file or a directory with files; None if none is certain."""
        owners = files_of(log)
        holders = {pid for file in owners for pid in self.writers(file)}
        top = self._topmost([pid for pid in holders if self._may_write(pid, owners)])
        if top is None:
            return self._of_event_files(log)
        name = self.processes[top].name
        if name in COPY_FILES:
            return None
        if name in _HELPERS:
            return self._log_writer(self._client_of(top), NAMED_BY_HELPER, owners)
        if name in _COPY_STDIN and (pipe := self.open(top).stdin) is not None:
            return self._log_writer(self._printing_into({pipe}, top), WRITES_TO_PIPE, owners)
        if name in _SERVICES:
            return self._log_writer(self._printing_into(self.open(top).pipes, top), WRITES_TO_PIPE, owners)
        return self._log_writer(top, HOLDS_LOG, owners)

    def open(self, pid: int) -> Descriptors:
        """Return what a process had open when this was first called for it."""
        if pid not in self._open:
            self._open[pid] = descriptors(pid)
        return self._open[pid]

    def writers(self, file: File) -> Sequence[int]:
        """Return the processes that have a file or a pipe open for writing."""
        return self._holders.get(file, ())

    def above(self, pid: int) -> Iterator[Process]:
        """Yield the parents of a process, the nearest first."""
        visited: set[int] = set()
        process = self.processes.get(pid)
        while process is not None and process.parent not in visited:
            visited.add(process.parent)
            process = self.processes.get(process.parent)
            if process is not None:
                yield process

    def about(self, log: Path) -> list[Process]:
        """Return the processes that work at or above a log's directory, or name it in their arguments."""
        location = Path(real_path(log))
        directories = {str(path) for path in (location, location.parent, location.parent.parent)}
        pids = {pid for path in directories for pid in self._by_named_path.get(path, ())}
        above = (location, *location.parents)
        pids |= {pid for path in above for pid in self._by_working_directory.get(path, ())}
        return [self.processes[pid] for pid in sorted(pids)]

    def _young(self) -> set[int]:
        newest = max((process.started for process in self.processes.values()), default=0)
        since = newest - _YOUNG_SECONDS * ticks_per_second()
        young = {process.pid for process in self.processes.values() if process.started >= since}
        return young | {parent.pid for pid in young for parent in self.above(pid)}

    @cached_property
    def _by_named_path(self) -> Mapping[str, list[int]]:
        """The processes that name a path or something in it, by that path."""
        pairs = ((path, pid) for pid in self._pids for path in named_paths(pid))
        pairs = ((named_path, pid) for path, pid in pairs for named_path in (path, path.rpartition("/")[0]))
        return _group((named_path, pid) for named_path, pid in pairs if named_path not in ("", "/"))

    @cached_property
    def _by_working_directory(self) -> Mapping[Path, list[int]]:
        pairs = ((directory(pid), pid) for pid in self._pids)
        return _group((path, pid) for path, pid in pairs if path is not None and path != _ROOT_DIRECTORY)

    @cached_property
    def _holders(self) -> Mapping[File, list[int]]:
        """The processes that have a file or a pipe open for writing, by that file."""
        return _group((file, pid) for pid in self._pids for file in self.open(pid).writes)

    def _may_write(self, pid: int, owners: Mapping[File, int]) -> bool:
        """Return whether a process has a log open for its owner now; it had some file of this number open."""
        process = self.processes[pid]
        files = descriptors(pid).writes
        serves = process.name in _SERVICES
        return any(file in files for file, owner in owners.items() if process.user == owner or serves)

    def _log_writer(self, pid: int | None, by: str, owners: Mapping[File, int]) -> LogWriter | None:
        process = self.processes.get(pid or 0)
        return LogWriter(process, by) if process is not None and process.user in owners.values() else None

    def _topmost(self, pids: list[int]) -> int | None:
        """Return the process that none of the others started; None if there are none or several.

        A shell that started the others counts only if there are none, and so does W&B's helper.
        """
        for less_likely in (SHELLS | _HELPERS, _HELPERS):
            pids = [pid for pid in pids if self.processes[pid].name not in less_likely] or pids
        top = [pid for pid in pids if not any(parent.pid in pids for parent in self.above(pid))]
        return top[0] if len(top) == 1 else None

    def _printing_into(self, pipes: set[File], copier: int) -> int | None:
        """Return the process whose output another one copies."""
        holders = {pid for pipe in pipes for pid in self._holders.get(pipe, ())} - {copier}
        return self._topmost([pid for pid in holders if self.open(pid).prints & pipes])

    def _client_of(self, pid: int) -> int | None:
        """Return the process that W&B's helper works for."""
        words = arguments(pid)
        with suppress(ValueError, IndexError):
            return int(words[words.index("--pid") + 1])
        return self.processes[pid].parent

    def _of_event_files(self, log: Path) -> LogWriter | None:
        """Return the process that this machine's newest event file names, if it is old enough."""
        with suppress(OSError):
            files = [*_log_files(log), *islice(log.glob(_EVENTS_BELOW), _MAX_LOG_FILES)]
            matches = [(_EVENT_FILE.fullmatch(file.name), file) for file in files]
            local = [
                (int(match[1]), int(match[3]), file)
                for match, file in matches
                if match and match[2] == socket.gethostname()
            ]
            if not local:
                return None
            began, pid, file = max(local)
            process = self.processes.get(pid)
            if process is None or process.user != file.stat().st_uid or not may_be_named(process):
                return None
            if started_at(process) <= began + _CLOCK_SLACK_SECONDS:
                return LogWriter(process, NAMED_BY_EVENT_FILE)
        return None


def _group(pairs: Iterable[tuple[_Key, int]]) -> Mapping[_Key, list[int]]:
    lists: dict[_Key, list[int]] = {}
    for key, pid in pairs:
        lists.setdefault(key, []).append(pid)
    return lists


def may_be_named(target: Process) -> bool:
    """Return whether a number in a file beside a log can mean this process of the machine.

    The kernel's own threads write no log. Within a container a training has another number than here, and
    the number that it writes down is that of some other process here.
    """
    return bool(arguments(target.pid)) and not is_in_container(target.pid)


def files_of(log: Path) -> Mapping[File, int]:
    """Return the files of a log, with their owners."""
    owners = {}
    with suppress(OSError):
        for file in _log_files(log):
            status = file.stat()
            if stat.S_ISREG(status.st_mode):
                owners[status.st_dev, status.st_ino] = status.st_uid
    return owners


def size_of(log: Path) -> int:
    """Return the bytes of all files of a log."""
    with suppress(OSError):
        return sum(os.stat(file).st_size for file in _log_files(log))
    return 0


def _log_files(log: Path) -> list[Path]:
    return [*islice(log.iterdir(), _MAX_LOG_FILES)] if is_directory(log) else [log]
