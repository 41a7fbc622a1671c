"""The process that a file beside a log names: a pid file, as scripts write it (`echo $! > train.pid`), or the
log of W&B's client.

It is said what that file says, and whether it fits what runs on this machine: a number may be of another
machine, or used again.
"""

import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import orjson

from sentinel.common.text import clean_text
from sentinel.detectors.run_checks import Writer
from sentinel.processes.finder import Found
from sentinel.processes.table import process, started_at
from sentinel.runs.state import last_write

_SOON_SECONDS = 600.0  # after its start at the latest a training leaves its number
_SLACK_SECONDS = 60.0  # the clock may have been set since
_MAX_FILE = 1 << 16  # bytes that are read of a file
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


def named(log: Path) -> Found | Writer:
    """Return the process that a file beside a log names if it fits, else what is to be said of it."""
    with suppress(OSError):
        names = [*_of_wandb(log)] or [*_of_pid_files(log)]
        if len(names) == 1:  # several name several
            return _checked(names[0], last_write(log))
    return Writer()


def _checked(told: _Named, written: float) -> Found | Writer:
    """Return what the file says, if it fits what runs here; ``written`` is when the log was last written."""
    here = socket.gethostname()
    file = clean_text(told.file, 80)
    names = f"{file} names process {told.pid}"
    if told.host and told.host != here:
        return Writer(f"{names} on {clean_text(told.host, 80)}, and this is {here}")
    writer = process(told.pid)
    if writer is None or started_at(writer) > written + _SLACK_SECONDS:
        return Writer(f"{names}, which does not run on {here}", lives=False if told.host == here else None)
    soon = -_SLACK_SECONDS < told.at - started_at(writer) < _SOON_SECONDS
    return Found(writer, f"is named by {file}") if soon and writer.user == told.owner else Writer()


def _of_wandb(log: Path) -> Iterator[_Named]:
    debug = log / "logs" / "debug.log"
    with suppress(OSError, UnicodeDecodeError):
        if line := _WANDB_LINE.match(_beginning(debug)):
            at = datetime.fromisoformat(line[1]).timestamp()  # its times are local
            yield _Named("W&B's log", int(line[2]), debug.stat().st_uid, at, _host(log))


def _host(log: Path) -> str:
    """Return the machine that W&B's metadata names; W&B writes them only for runs that it uploads."""
    try:
        metadata = orjson.loads(_beginning(log / "files" / "wandb-metadata.json"))
    except (OSError, ValueError):
        return ""
    return str(metadata.get("host", "")) if isinstance(metadata, dict) else ""


def _of_pid_files(log: Path) -> Iterator[_Named]:
    """Yield what pid files say: that of the log's own name, else all in its directory."""
    place = log if log.is_dir() else log.parent
    files = sorted(place.glob("*.pid"))
    for file in [file for file in files if file.stem == log.stem] or files:
        with suppress(OSError, UnicodeDecodeError):
            if number := _PID.fullmatch(_beginning(file)):
                status = file.stat()
                yield _Named(file.name, int(number[1]), status.st_uid, status.st_mtime)


def _beginning(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(_MAX_FILE).decode()
