"""Opens and resolves paths that may be anything: links to nowhere, pipes, directories named like a log.

Text in UTF-16, as PowerShell writes it, becomes UTF-8, and so does that in the encoding of Windows in China.
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


_CHINESE = lazy_pattern(rb"(?:[\t\n\r -~]*+[\xa1-\xa9\xb0-\xf7][\xa1-\xfe]){3}")
"""How a text in GB 18030 begins: with Chinese letters, each of which is two bytes above ASCII."""

_HEAD_BYTES = 64
"""At the beginning of a file, which tell its encoding."""


def encoding_of(head: bytes) -> str:
    """Return the name of the encoding of a text that begins with ``head``; empty if it may be UTF-8."""
    if _LITTLE.match(head):
        return "utf-16-le"
    if _BIG.match(head):
        return "utf-16-be"
    return "gb18030" if _CHINESE.match(head, 0, _HEAD_BYTES) and not _may_be_utf_8(head) else ""


def _may_be_utf_8(head: bytes) -> bool:
    """Return whether a text in UTF-8 may begin so; its last character may be torn."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head[:_HEAD_BYTES])
    except UnicodeDecodeError:
        return False
    return True


def as_utf_8(data: bytes, encoding: str) -> bytes:
    """Return the text that ``data`` holds in another encoding, without a torn character at its end.

    A broken character is replaced by one that has as many bytes in that encoding, so that a place in the text
    tells its place in the file.
    """
    errors = "replace" if encoding.startswith("utf-16") else _AS_LONG
    return codecs.getincrementaldecoder(encoding)(errors).decode(data).encode()


def _with_marks(error: UnicodeError) -> tuple[str, int]:
    """Return a question mark for each byte that stands for no character, and where the text goes on."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "?" * (error.end - error.start), error.end


_AS_LONG = "sentinel.as_long"
codecs.register_error(_AS_LONG, _with_marks)


def plain_utf_8(data: bytes) -> bytes:
    """Return a whole text, or its beginning, in UTF-8, whatever its encoding is."""
    encoding = encoding_of(data)
    return as_utf_8(data, encoding) if encoding else data
