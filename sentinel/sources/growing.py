"""Reading a file that somebody else is still writing: what is new since a mark, and whether it is
still the same file.

A mark is the JSON-able part of a cursor that belongs to one file: its inode, the offset up to which
it was consumed, its first bytes, a fingerprint of the last ones before the offset, when it was changed
and, where only more bytes can help, its size. A file that shrank, has another inode or differs in these
bytes was replaced and is read from its start. (Many logs begin alike: with a header, a banner, the same
first steps; and one that is logged again may be just as long, under an inode that was freed.)
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from sentinel.sources.base import Batch, Complaint, Cursor
from sentinel.sources.places import Place

_FINGERPRINT_BYTES = 64

Mark = Mapping[str, Any]


@dataclass(frozen=True)
class Read:
    """``data`` begins at byte ``offset`` of the file; ``more`` says that the file goes on behind it."""

    data: bytes
    offset: int
    restarted: bool
    more: bool
    size: int  # of the file
    _inode: int
    _changed: int  # ns since the epoch
    _head: bytes
    _before: bytes  # ``data``

    def mark(self, consumed: int, waiting: bool = False) -> dict[str, Any]:
        """The mark after the first ``consumed`` bytes of ``data``, or some behind it, were understood.

        ``waiting`` says that the rest of the file is torn: it is not read again until the file grows.
        """
        offset = self.offset + consumed
        size = self.size if waiting else offset
        mark: dict[str, Any] = {
            "inode": self._inode,
            "changed": self._changed,
            "size": size,
            "offset": offset,
            "head": self._head.hex(),
        }
        if consumed <= len(self.data):
            last = self.data[max(0, consumed - _FINGERPRINT_BYTES) : consumed]
            mark["tail"] = _fingerprint(self._before + last)
        return mark


def read_new(path: Path, mark: Mark, limit: int) -> Read | None:
    """At most ``limit`` bytes that follow ``mark`` (``{}`` for the start); None if there is nothing new.

    Raises OSError where the file cannot be opened or read.
    """
    offset = int(mark.get("offset", 0))
    status = os.stat(path)
    known = tuple(map(mark.get, ("size", "inode", "changed")))
    if known == (status.st_size, status.st_ino, status.st_mtime_ns):
        return None
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        seen = bytes.fromhex(mark.get("head", ""))
        head = file.read(_FINGERPRINT_BYTES)
        before = _at(file, max(0, offset - _FINGERPRINT_BYTES), min(offset, _FINGERPRINT_BYTES))
        restarted = bool(mark) and (
            status.st_ino != mark["inode"]
            or status.st_size < offset
            or not head.startswith(seen)
            or _fingerprint(before) != mark.get("tail", _fingerprint(before))
        )
        if restarted:
            offset, before = 0, b""
        # To ask for more than there is takes thrice as long, since the bytes are then moved.
        data = _at(file, offset, min(limit, max(0, status.st_size - offset)))
    if not data and not restarted:
        return None
    size = status.st_size
    more = offset + len(data) < size
    return Read(data, offset, restarted, more, size, status.st_ino, status.st_mtime_ns, head, before)


def read_lines(path: Path, mark: Mark, size: int, longest: int) -> Read | None:
    """What is new, up to about ``size`` bytes but at least one line, and nothing behind an overlong one.

    A line of more than ``longest`` bytes comes alone, without its end. Raises OSError as `read_new`.
    """
    read = read_new(path, mark, size)
    if read and read.more and b"\n" not in read.data:
        return read_new(path, mark, longest)
    begin = 0
    while read and len(read.data) - begin > longest:
        end = read.data.rfind(b"\n", begin, begin + longest) + 1
        if not end:
            return read_new(path, mark, begin or longest)
        begin = end
    return read


def _at(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)


def _fingerprint(data: bytes) -> str:
    return hashlib.blake2b(data[-_FINGERPRINT_BYTES:], digest_size=8).hexdigest()


def unreadable(path: Place, cursor: Cursor, error: OSError) -> Batch:
    """What a poll yields that met ``error``: a complaint, said once as long as the reason stays the same."""
    reason = error.strerror or str(error)
    if cursor.get("unreadable") == reason:
        return Batch(cursor)
    problem = f"cannot be read ({reason}); trying again at every poll"
    return Batch({**cursor, "unreadable": reason}, complaints=[Complaint(path, "", problem)])
