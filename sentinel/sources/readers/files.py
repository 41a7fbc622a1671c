"""Opens and resolves paths that may be anything: links to nowhere, pipes, directories named like a log.

Text in UTF-16, as PowerShell writes it, becomes UTF-8.
"""

import codecs
import os
import re
from errno import ELOOP
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.readers.mounts import is_of_kernel

_READING = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_PATH = 4096
"""Bytes, with the zero at its end; Linux's PATH_MAX."""


def open_log(path: Path) -> BinaryIO:
    """Open the file for reading.

    Raises OSError. A pipe or a device is an error too, because it could keep its reader waiting, and so is a
    file of the kernel. A link may lead to a file below its own directory alone: what lies elsewhere is no
    part of the log, and a search resolves the links that it follows.
    """
    try:
        descriptor = os.open(path, _READING | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno != ELOOP:
            raise
        descriptor = _open_link(path)
    if _is_regular(os.fstat(descriptor)):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(None, "not a regular file")


def _open_link(path: Path) -> int:
    real = os.path.realpath(path)
    if not real.startswith(f"{os.path.realpath(path.parent)}/"):
        raise OSError(None, "a link out of its directory")
    return os.open(real, _READING)


def is_another_thing(path: Path) -> bool:
    """Return whether the path, or what it links to, is there and is no file, or is one of the kernel."""
    try:
        return not _is_regular(os.stat(path))
    except OSError:
        return False


def _is_regular(status: os.stat_result) -> bool:
    return S_ISREG(status.st_mode) and not on_kernel(status)


def on_kernel(status: os.stat_result) -> bool:
    """Return whether a file or a directory lies on a file system of the kernel."""
    return is_of_kernel(os.major(status.st_dev), os.minor(status.st_dev))


def real_path(path: str | Path) -> str:
    """Return the path without links. Links that cannot be read, such as ``/proc/2/exe``, stay in it."""
    try:
        return os.path.realpath(path)
    except OSError:
        return os.path.abspath(path)  # noqa: PTH100  it reads no link


def is_text(name: str) -> bool:
    """Return whether a name is UTF-8, so that it can be shown and kept."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def can_exist(path: Path) -> bool:
    """Return whether the system takes such a path. A database may give a run any name."""
    return "\0" not in str(path) and is_text(str(path)) and len(os.fsencode(path)) < _MAX_PATH


def stamp(path: Path) -> list[Any]:
    """Return a value that changes whenever the file is rewritten. Raises OSError."""
    status = path.stat()
    return [str(path), status.st_ino, status.st_size, status.st_mtime_ns]


def version(file: BinaryIO) -> tuple[int, int]:
    """Return the size in bytes and the time of the last change in ns, which a writer to the file changes."""
    status = os.fstat(file.fileno())
    return (status.st_size, status.st_mtime_ns)


_LITTLE = lazy_pattern(rb"\xff\xfe|[^\0]\0[^\0]\0", re.DOTALL)
_BIG = lazy_pattern(rb"\xfe\xff|\0[^\0]\0[^\0]", re.DOTALL)
"""How UTF-16 begins: with a byte order mark, or with two characters of ASCII."""


def utf_16(head: bytes) -> str:
    """Return the name of the UTF-16 in which a text begins with ``head``; empty if it is not UTF-16."""
    return "utf-16-le" if _LITTLE.match(head) else "utf-16-be" if _BIG.match(head) else ""


def as_utf_8(data: bytes, encoding: str) -> bytes:
    """Return the text that ``data`` holds in UTF-16, without a torn character at its end.

    A broken character becomes a replacement character, so that the text has as many bytes in UTF-16 as
    before.
    """
    return codecs.getincrementaldecoder(encoding)("replace").decode(data).encode()


def plain_utf_8(data: bytes) -> bytes:
    """Return a whole text, or its beginning, in UTF-8 whether it is UTF-16 or UTF-8."""
    encoding = utf_16(data)
    return as_utf_8(data, encoding) if encoding else data
