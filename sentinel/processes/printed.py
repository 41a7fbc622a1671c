"""What a process printed last, where its output goes to a file that no other process writes.

A log's directory often does not hold that file: `python train.py > train.log` prints into the directory from
which somebody started the training, and Lightning logs two levels below. Only a process that failed is asked,
because then the file says why, or that a person interrupted it.
"""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sentinel.processes.finder import SHELLS, Host
from sentinel.processes.table import PROC, File, Process
from sentinel.runs.end_markers import ending_in_file
from sentinel.sources.base import Ending, EndKind

_STDERR = "2"  # descriptor
_STDOUT = "1"  # descriptor


class OutputFile(NamedTuple):
    """A file into which a process prints, and its identity when that was noted."""

    path: Path
    file: File


def output_files(target: Process) -> Sequence[OutputFile]:
    """Return the files of its user into which a process prints, that of its errors first."""
    outputs: dict[File, OutputFile] = {}
    for name in (_STDERR, _STDOUT):
        link = PROC / str(target.pid) / "fd" / name
        with suppress(OSError):
            status = link.stat()
            path = link.readlink()
            if stat.S_ISREG(status.st_mode) and status.st_uid == target.user:
                file = status.st_dev, status.st_ino
                outputs.setdefault(file, OutputFile(path, file))
    return [*outputs.values()]


def printed_end(files: Sequence[OutputFile], host: Host) -> tuple[Path, Ending] | None:
    """Return the end that a process that failed has printed, and the file with it; None if it printed none.

    That its training had finished says nothing about its failure. A file into which others print as well may
    hold the end of another one. Shells only pass it on.
    """
    for path, file in files:
        with suppress(OSError):
            status = os.stat(path)
            others = {host.processes[pid].name for pid in host.writers(file)} - SHELLS
            is_log_file = (status.st_dev, status.st_ino) == file
            ending = ending_in_file(path) if is_log_file and not others else None
            if ending is not None and ending.outcome is not EndKind.FINISHED:
                return path, ending
    return None
