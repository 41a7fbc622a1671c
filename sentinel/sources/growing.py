"""Reading a file that somebody else is still writing: what is new since a mark, and whether it is
still the same file.

A mark is the JSON-able part of a cursor that belongs to one file: its inode, the offset up to which
it was consumed, its first bytes and, where only more bytes can help, its size. A file that shrank, has
another inode or begins differently was replaced and is read from its start.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    _head: bytes

    def mark(self, consumed: int, waiting: bool = False) -> dict[str, Any]:
        """The mark after the first ``consumed`` bytes of ``data`` were understood.

        ``waiting`` says that the rest of the file is torn: it is not read again until the file grows.
        """
        offset = self.offset + consumed
        size = self.size if waiting else offset
        return {"inode": self._inode, "offset": offset, "size": size, "head": self._head.hex()}


def read_new(path: Path, mark: Mark, limit: int) -> Read | None:
    """At most ``limit`` bytes that follow ``mark`` (``{}`` for the start); None if there is nothing new.

    Raises OSError where the file cannot be opened or read.
    """
    offset = int(mark.get("offset", 0))
    status = os.stat(path)
    if mark and status.st_size == mark["size"] and status.st_ino == mark["inode"]:
        return None
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        seen = bytes.fromhex(mark.get("head", ""))
        head = file.read(_FINGERPRINT_BYTES)
        restarted = bool(mark) and (
            status.st_ino != mark["inode"] or status.st_size < offset or not head.startswith(seen)
        )
        if restarted:
            offset = 0
        file.seek(offset)
        data = file.read(limit)
    if not data and not restarted:
        return None
    more = offset + len(data) < status.st_size
    return Read(data, offset, restarted, more, status.st_size, status.st_ino, head)


def unreadable(path: Place, cursor: Cursor, error: OSError) -> Batch:
    """What a poll yields that met ``error``: a complaint, said once as long as the reason stays the same."""
    reason = error.strerror or str(error)
    if cursor.get("unreadable") == reason:
        return Batch(cursor)
    problem = f"cannot be read ({reason}); trying again at every poll"
    return Batch({**cursor, "unreadable": reason}, complaints=[Complaint(path, "", problem)])
