"""What the machine and the files beside a log tell of the process that writes it, without guessing.

That a process of this machine has the log open for writing is certain. Else a file may name the process: a
pid file, as scripts write it (`echo $! > train.pid`), or the log of W&B's client. Then it is said what that
file says, and whether it fits what runs on this machine: a number may be of another machine, or used again.
"""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import orjson

from detectors.checks import Writer
from sentinel.runs.state import last_write
from sentinel.text import clean_text

_PROC = Path("/proc")
_STATES = {"R": "runs", "S": "sleeps", "D": "waits for a device", "T": "is stopped", "Z": "is dead"}
_HELPERS = ("wandb-core",)  # writes W&B's file for the training, which has another file there open
_KERNELS = (b"ipykernel", b"colab_kernel_launcher")
_SOON_SECONDS = 600.0  # after its start at the latest a training leaves its number
_SLACK_SECONDS = 60.0  # the clock may have been set since
_LONGEST_FILE = 1 << 16  # bytes that are read of a file
_PID = re.compile(r"\s*(\d{1,10})\s*")
_WANDB_LINE = re.compile(  # the first one of `logs/debug.log`
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+ \w+ +MainThread:(\d{1,10}) "
)


class _Named(NamedTuple):
    """A process that a file of ``owner`` named at some time. ``host`` is empty if it does not say where."""

    file: str
    pid: int
    owner: int
    at: float
    host: str = ""


def process_of(log: Path) -> Writer:
    """The process that writes the log, and what it does: "process 7 (python) sleeps in pipe_read".

    Else what a file beside the log says of it: "train.pid names process 7, which does not run on gpu-3".
    A program that closes its log between two writes and leaves no file is not found.
    """
    target = str(log.resolve())
    for process in _processes():
        if _writes(process, target) and _name(process) not in _HELPERS:
            return described(int(process.name))
    with suppress(OSError):
        if (named := _named(log)) is not None:
            return _checked(named, last_write(log))
    return Writer()


def _processes() -> list[Path]:
    try:
        return [
            process
            for process in _PROC.iterdir()
            if process.name.isdigit() and process.name != str(os.getpid())
        ]
    except OSError:
        return []


def _writes(process: Path, target: str) -> bool:
    try:
        for descriptor in (process / "fd").iterdir():
            path = str(descriptor.readlink())
            of_log = path == target or path.startswith(f"{target}/")
            if of_log and _is_for_writing(process, descriptor.name):
                return True
    except OSError:  # it is somebody else's, or has just ended
        pass
    return False


def _is_for_writing(process: Path, descriptor: str) -> bool:
    for line in (process / "fdinfo" / descriptor).read_text().splitlines():
        if line.startswith("flags:"):
            return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return ""


def _described(process: Path) -> str:
    try:
        name, _, rest = (process / "stat").read_text().partition("(")[2].rpartition(")")
        wait = (process / "wchan").read_text()
    except OSError:
        return ""
    state = _STATES.get(rest.split()[0] if rest else name, "lives")
    return f"process {process.name} ({name}) {state}" + (f" in {wait}" if wait not in ("", "0") else "")


def _named(log: Path) -> _Named | None:
    """The process that a file beside the log names; None if none does, or if several do."""
    found = [*_of_wandb(log)] or [*_of_pid_files(log)]
    return found[0] if len(found) == 1 else None


def _of_wandb(log: Path) -> Iterator[_Named]:
    debug = log / "logs" / "debug.log"
    with suppress(OSError, UnicodeDecodeError):
        if line := _WANDB_LINE.match(_beginning(debug)):
            at = datetime.fromisoformat(line[1]).timestamp()  # its times are local
            yield _Named("W&B's log", int(line[2]), debug.stat().st_uid, at, _host(log))


def _host(log: Path) -> str:
    """The machine that W&B's metadata names; W&B writes them only for runs that it uploads."""
    try:
        metadata = orjson.loads(_beginning(log / "files" / "wandb-metadata.json"))
    except (OSError, ValueError):
        return ""
    return str(metadata.get("host", "")) if isinstance(metadata, dict) else ""


def _of_pid_files(log: Path) -> Iterator[_Named]:
    """What pid files say: that of the log's own name, else all in its directory."""
    directory = log if log.is_dir() else log.parent
    files = sorted(directory.glob("*.pid"))
    for file in [one for one in files if one.stem == log.stem] or files:
        with suppress(OSError, UnicodeDecodeError):
            if number := _PID.fullmatch(_beginning(file)):
                status = file.stat()
                yield _Named(file.name, int(number[1]), status.st_uid, status.st_mtime)


def _beginning(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(_LONGEST_FILE).decode()


def described(pid: int) -> Writer:
    """What a process does at present."""
    process = _PROC / str(pid)
    text = _described(process)
    return Writer(text, lives=True if text and not _outlives_a_training(process) else None)


def _outlives_a_training(process: Path) -> bool:
    """Whether it is the kernel of a notebook, which goes on when the training in it has ended."""
    try:
        return any(name in (process / "cmdline").read_bytes() for name in _KERNELS)
    except OSError:
        return False


def _checked(named: _Named, written: float) -> Writer:
    """What the file says, if it fits what runs here; ``written`` is when the log was last written."""
    here, names = socket.gethostname(), f"{clean_text(named.file, 80)} names process {named.pid}"
    if named.host and named.host != here:
        return Writer(f"{names} on {clean_text(named.host, 80)}, and this is {here}")
    process = _PROC / str(named.pid)
    started = _started(process)
    if started is None or started > written + _SLACK_SECONDS:
        return Writer(f"{names}, which does not run on {here}", lives=False if named.host == here else None)
    soon = -_SLACK_SECONDS < named.at - started < _SOON_SECONDS
    with suppress(OSError):
        if soon and process.stat().st_uid == named.owner:
            return described(named.pid)
    return Writer()


def _started(process: Path) -> float | None:
    """When a process was started, in seconds since the epoch; None if there is no such process."""
    try:
        ticks = int((process / "stat").read_text().rpartition(")")[2].split()[19])
        booted = (line.split() for line in (_PROC / "stat").read_text().splitlines())
        return next(float(t[1]) for t in booted if t[0] == "btime") + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, StopIteration):
        return None
