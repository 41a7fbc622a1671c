"""Opens and resolves paths that may be anything: links to nowhere, pipes, directories named like a log."""

import os
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO

_LONGEST_PATH = 4096
"""Bytes, with the zero at its end; Linux's PATH_MAX."""


def open_log(path: Path) -> BinaryIO:
    """Open the file for reading.

    Raises OSError. A pipe or a device is an error too, because it could keep its reader waiting.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(None, "not a regular file")


def real_path(path: str | Path) -> str:
    """The path without links. Links that cannot be read, such as ``/proc/2/exe``, stay in it."""
    try:
        return os.path.realpath(path)
    except OSError:
        return os.path.abspath(path)  # noqa: PTH100  it reads no link


def is_text(name: str) -> bool:
    """Whether a name is UTF-8, so that it can be shown and kept."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def can_exist(path: Path) -> bool:
    """Whether the system takes such a path. A database may give a run any name."""
    return "\0" not in str(path) and is_text(str(path)) and len(os.fsencode(path)) < _LONGEST_PATH


def stamp(path: Path) -> list[Any]:
    """A value that changes whenever the file is rewritten. Raises OSError."""
    status = path.stat()
    return [str(path), status.st_ino, status.st_size, status.st_mtime_ns]
