"""The process that a file beside a log names: a pid file, as scripts write it (`echo $! > train.pid`), or the
log of W&B's client.

What that file says counts only if it fits what runs on this machine: a number may be of another machine, or
used again.
"""

import socket
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import orjson

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.paths import is_directory
from sentinel.common.text import clean_text
from sentinel.detectors.run_checks import Writer
from sentinel.processes.finder import LogWriter, may_be_named
from sentinel.processes.table import process, started_at
from sentinel.runs.state import last_write

_MAX_START_SECONDS = 600.0  # after its start at the latest a training writes its number
_CLOCK_SLACK_SECONDS = 60.0  # by which the clock may have been set since
_MAX_PID_FILE_BYTES = 1 << 16  # that are read of a file
_PID = lazy_pattern(r"\s*(\d{1,10})\s*")
_WANDB_LINE = lazy_pattern(  # the first one of `logs/debug.log`
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+ \w+ +MainThread:(\d{1,10}) "
)


class _PidEntry(NamedTuple):
    """The process that a file of ``owner`` named at some time. ``host`` is empty if it does not say where."""

    file: str
    pid: int
    owner: int
    at: float
    host: str = ""


def find_named_process(log: Path) -> LogWriter | Writer:
    """Return the process that a file beside a log names if it fits, else what a person should know of it."""
    with suppress(OSError):
        named_processes = [*_of_wandb(log)] or [*_of_pid_files(log)]
        if len(named_processes) == 1:  # several name several
            return _named_writer(named_processes[0], last_write(log))
    return Writer()


def _named_writer(entry: _PidEntry, last_write_at: float) -> LogWriter | Writer:
    local_host = socket.gethostname()
    file = clean_text(entry.file, 80)
    names = f"{file} names process {entry.pid}"
    if entry.host and entry.host != local_host:
        return Writer(f"{names} on {clean_text(entry.host, 80)}, and this is {local_host}")
    writer = process(entry.pid)
    if writer is None or started_at(writer) > last_write_at + _CLOCK_SLACK_SECONDS:
        lives = False if entry.host == local_host else None
        return Writer(f"{names}, which does not run on {local_host}", lives=lives)
    fits = -_CLOCK_SLACK_SECONDS < entry.at - started_at(writer) < _MAX_START_SECONDS
    fits = fits and writer.user == entry.owner and may_be_named(writer)
    return LogWriter(writer, f"is named by {file}") if fits else Writer()


def _of_wandb(log: Path) -> Iterator[_PidEntry]:
    debug = log / "logs" / "debug.log"
    with suppress(OSError, UnicodeDecodeError):
        if line := _WANDB_LINE.match(_beginning(debug)):
            started_at = datetime.fromisoformat(line[1]).timestamp()  # its times are local
            yield _PidEntry("W&B's log", int(line[2]), debug.stat().st_uid, started_at, _host(log))


def _host(log: Path) -> str:
    """Return the machine that W&B's metadata names; W&B writes them only for runs that it uploads."""
    try:
        metadata = orjson.loads(_beginning(log / "files" / "wandb-metadata.json"))
    except (OSError, ValueError):
        return ""
    return str(metadata.get("host", "")) if isinstance(metadata, dict) else ""


def _of_pid_files(log: Path) -> Iterator[_PidEntry]:
    """Yield the process of the pid file with the log's name, else those of all in its directory."""
    directory = log if is_directory(log) else log.parent
    files = sorted(directory.glob("*.pid"))
    for file in [file for file in files if file.stem == log.stem] or files:
        with suppress(OSError, UnicodeDecodeError):
            if number := _PID.fullmatch(_beginning(file)):
                status = file.stat()
                yield _PidEntry(file.name, int(number[1]), status.st_uid, status.st_mtime)


def _beginning(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(_MAX_PID_FILE_BYTES).decode()
