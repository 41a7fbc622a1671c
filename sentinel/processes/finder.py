"""Which process of this machine writes a log: one pass over all processes for all logs.

Only `stat` and `readlink` are used below `/proc`, and nothing is opened there through another process. A
process counts only if it has the user who owns the log.

- A process that has the log open for writing. Loader workers inherit that, so the topmost of such processes
  counts.
- If it only copies what it gets through a pipe, as `tee` does, the process at the other end of the pipe.
- The process that an event file of TensorBoard names, since its writer closes the file between two writes.
"""

import os
import re
import socket
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from sentinel.processes.exits import PROC

_MOST_FILES = 100  # of a directory with a log
_MOST_DESCRIPTORS = 1000  # of a process
_COPIERS = ("tee", "cat", "ts", "awk", "rotatelogs", "multilog")
_SHELLS = ("sh", "bash", "dash", "zsh", "fish", "ksh")
_HELPERS = ("wandb-core",)  # writes W&B's file for the training, which is another process
_EVENTS = re.compile(r"events\.out\.tfevents\.(\d+)\.(.+)\.(\d+)\.\d+(?:\.v2)?")
_SLACK_SECONDS = 60.0  # the clock may have been set since

_File = tuple[int, int]  # device and inode


@dataclass
class _Process:
    parent: int
    name: str
    user: int
    writes: set[_File] = field(default_factory=set)
    stdin: _File | None = None


def writers(logs: Iterable[Path]) -> dict[Path, int]:
    """The process that writes each of some logs (files, or directories with files), where one is found."""
    files = {log: _files(log) for log in logs}
    processes = _processes()
    found: dict[Path, int] = {}
    for log, mine in files.items():
        holders = [
            pid
            for pid, one in processes.items()
            if one.name not in _HELPERS and any(one.user == mine.get(file) for file in one.writes)
        ]
        pid = _behind_a_pipe(_topmost(holders, processes), processes) or _of_event_files(log, processes)
        if pid:
            found[log] = pid
    return found


def _files(log: Path) -> Mapping[_File, int]:
    """The files of a log, with their owners."""
    found = {}
    with suppress(OSError):
        files = islice(log.iterdir(), _MOST_FILES) if log.is_dir() else [log]
        for file in files:
            status = file.stat()
            if stat.S_ISREG(status.st_mode):
                found[status.st_dev, status.st_ino] = status.st_uid
    return found


def _processes() -> dict[int, _Process]:
    found = {}
    with suppress(OSError), os.scandir(PROC) as entries:
        for entry in entries:
            if entry.name.isdigit() and entry.name != str(os.getpid()):
                with suppress(OSError, ValueError, IndexError):
                    found[int(entry.name)] = _process(Path(entry.path))
    return found


def _process(place: Path) -> _Process:
    name, _, rest = (place / "stat").read_text().partition("(")[2].rpartition(")")
    process = _Process(int(rest.split()[1]), name, place.stat().st_uid)
    with suppress(OSError), os.scandir(place / "fd") as links:  # else it is somebody else's, or has ended
        for link in islice(links, _MOST_DESCRIPTORS):
            with suppress(OSError):
                status = os.stat(link.path)
                file = status.st_dev, status.st_ino
                is_pipe = stat.S_ISFIFO(status.st_mode)
                if link.name == "0" and is_pipe:
                    process.stdin = file
                if (is_pipe or stat.S_ISREG(status.st_mode)) and os.lstat(link.path).st_mode & stat.S_IWUSR:
                    process.writes.add(file)
    return process


def _topmost(holders: list[int], processes: Mapping[int, _Process]) -> int | None:
    """Of some processes, the one whose parents are not among them; None if there are none or several.

    A shell that started the others counts only if there are none.
    """
    holders = [pid for pid in holders if processes[pid].name not in _SHELLS] or holders
    top = [pid for pid in holders if processes[pid].parent not in holders]
    return top[0] if len(top) == 1 else None


def _behind_a_pipe(pid: int | None, processes: Mapping[int, _Process]) -> int | None:
    """The process whose output another one copies; that one itself if it copies none."""
    if pid is None or processes[pid].name not in _COPIERS or (pipe := processes[pid].stdin) is None:
        return pid
    behind = [other for other, one in processes.items() if other != pid and pipe in one.writes]
    return _topmost(behind, processes)


def _of_event_files(log: Path, processes: Mapping[int, _Process]) -> int | None:
    """The process that the newest event file of this machine names, if it is as old as that file says."""
    with suppress(OSError):
        named = [
            (int(found[1]), int(found[3]), file)
            for file in (islice(log.iterdir(), _MOST_FILES) if log.is_dir() else [log])
            if (found := _EVENTS.fullmatch(file.name)) and found[2] == socket.gethostname()
        ]
        for began, pid, file in sorted(named, reverse=True)[:1]:
            one = processes.get(pid)
            if one and one.user == file.stat().st_uid and started(pid) <= began + _SLACK_SECONDS:
                return pid
    return None


def started(pid: int) -> float:
    """When a process was started, in seconds since the epoch. Raises OSError if there is none."""
    ticks = int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19])
    lines = (PROC / "stat").read_text().splitlines()
    booted = next(float(line.split()[1]) for line in lines if line.startswith("btime "))
    return booted + ticks / os.sysconf("SC_CLK_TCK")
