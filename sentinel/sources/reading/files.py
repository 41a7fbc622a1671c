"""Opens and resolves paths that may be anything: links to nowhere, pipes, directories named like a log."""

import os
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO


def open_log(path: Path) -> BinaryIO:
    """The file, for reading.

    Raises OSError, also for a pipe or a device, which could keep its reader waiting.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(None, "not a regular file")


def real_path(path: str | Path) -> str:
    """The path without links; with those that cannot be read, such as ``/proc/2/exe``, as they are."""
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


def stamp(path: Path) -> list[Any]:
    """What changes when the file is written anew. Raises OSError."""
    status = path.stat()
    return [str(path), status.st_ino, status.st_size, status.st_mtime_ns]
