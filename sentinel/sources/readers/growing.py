"""Reads what is new, since a mark, in a file that somebody else is still writing.

A mark is the JSON-able part of a cursor that belongs to one file. It holds the offset up to which the file
was consumed, the first bytes of the file, and a fingerprint of the last bytes before the offset. If a file
differs in these bytes, it was replaced and is read from its start. The inode does not tell this, because
rsync, editors and `mv` replace a file by a longer copy of itself.

A file that became shorter and begins as before may be a copy that is still being written, because `cp` and
`scp` truncate a file before they fill it. It has some polls to grow back, as long as each poll finds it
changed. After that it counts as replaced. An empty file could be either, so the reader waits for its first
byte.

The inode, the size and the time of the last change tell whether a file needs to be read at all. A file that
was renamed, as a log that is rotated, is read to its end before its successor is read from its start.
"""

import hashlib
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import polars as pl
from msgspec.structs import replace

from sentinel.sources.base import Cursor, PollResult, ReadIssue
from sentinel.sources.location import Location
from sentinel.sources.readers.files import as_utf_8, encoding_of, open_log, version

_HEAD_BYTES = 64  # at the beginning of a file that tell whether it is another one
_TAIL_BYTES = 1024  # before the mark that tell the same
_BLOCK_BYTES = 4096  # buffers are filled, and left to the file, in multiples of it
_MAX_BESIDE = 10_000  # files in a directory that are looked at
_MAX_WAITS = 10  # polls in which a shorter file may grow back

Mark = Mapping[str, Any]


class Total:
    """A sum to which any thread may add."""

    def __init__(self) -> None:
        self.value = 0
        self._lock = threading.Lock()

    def add(self, amount: int) -> None:
        """Add an amount."""
        with self._lock:
            self.value += amount


BYTES_READ = Total()
"""What this process has read of growing files."""


class Read(msgspec.Struct, frozen=True):
    """``data`` begins at byte ``offset`` of the file. ``more`` is true if the file has bytes after it.

    If the file is text that is not in UTF-8, `read_text` gives ``data`` in UTF-8, and ``_encoding`` is that
    of the file.
    """

    data: bytes
    offset: int
    restarted: bool
    more: bool
    size: int  # of the file
    _inode: int
    _replaced: int  # ns since the epoch
    head: bytes  # of the file
    _before: bytes  # ``data``
    _waiting: Mark | None = None  # the mark of a file that is shorter than what was consumed of it
    _encoding: str = ""

    def in_file(self, begin: int, end: int) -> bytes:
        """Return the bytes of the file that the whole characters in ``data[begin:end]`` stand for."""
        part = self.data[begin:end]
        return part.decode(errors="ignore").encode(self._encoding) if self._encoding else part

    def mark(self, consumed: int, waiting: bool = False) -> dict[str, Any]:
        """Return the mark after ``consumed`` bytes from the start of ``data``, which may be more than it has.

        ``waiting`` says that the rest of the file is torn. The rest is not read again until the file grows.
        """
        status = {"inode": self._inode, "changed": self._replaced}
        if self._waiting is not None:
            waits = self._waiting.get("waits", 0) + 1
            return {**self._waiting, **status, "size": self.size, "waits": waits}
        data = self.data
        if self._encoding:
            data = self.in_file(0, consumed)
            consumed = len(data)
        offset = self.offset + consumed
        size = self.size if waiting else offset
        mark: dict[str, Any] = {**status, "size": size, "offset": offset, "head": self.head.hex()}
        if consumed <= len(data):
            tail = data[max(0, consumed - _TAIL_BYTES) : consumed]
            mark["tail"] = _tail_fingerprint(self._before + tail)
        return mark


def read_new(path: Path, mark: Mark, limit: int) -> Read | None:
    """Read at most ``limit`` bytes after ``mark`` (``{}`` for the start); None if there is nothing new.

    Raises OSError if the file cannot be opened or read.
    """
    offset = int(mark.get("offset", 0))
    status = os.stat(path)
    old_status = tuple(map(mark.get, ("size", "inode", "changed")))
    unchanged = old_status == (status.st_size, status.st_ino, status.st_mtime_ns)
    waits = mark.get("waits", 0)
    if unchanged and not waits:
        return None
    if old_status[1] not in (None, status.st_ino) and not holds(path, mark):
        renamed = _renamed(path, mark)
        if renamed is not None and os.path.getsize(renamed) > offset:  # noqa: PTH202  as fast as above
            renamed_read = read_new(renamed, mark, limit)
            return None if renamed_read is None else replace(renamed_read, more=True)
    with open_log(path) as file:
        status = os.fstat(file.fileno())
        size = status.st_size
        old_head = bytes.fromhex(mark.get("head", ""))
        head = file.read(_HEAD_BYTES)
        if not size:
            return None
        tail = _bytes_at(file, max(0, offset - _TAIL_BYTES), min(offset, _TAIL_BYTES))
        about = (size, status.st_ino, status.st_mtime_ns, head)
        if size < offset and old_head.startswith(head) and not unchanged and waits < _MAX_WAITS:
            return Read(b"", offset, False, False, *about, tail, mark)
        restarted = bool(mark) and (
            size < offset
            or not head.startswith(old_head)
            or _tail_fingerprint(tail) != mark.get("tail", _tail_fingerprint(tail))
        )
        if restarted and version(file) != (size, status.st_mtime_ns):
            return None  # it was being saved, and the next poll tells what it became
        if restarted:
            offset = 0
            tail = b""
        # Asking for more than there is takes three times as long, because Python then moves the bytes.
        data = _bytes_at(file, offset, min(limit, max(0, size - offset)))
        BYTES_READ.add(len(data))
    if not data and not restarted:
        return None
    return Read(data, offset, restarted, offset + len(data) < size, *about, tail)


def holds(path: Path, mark: Mark) -> bool:
    """Return whether a file holds what was consumed up to a mark, as its first and those last bytes tell."""
    head = bytes.fromhex(mark.get("head", ""))
    offset = int(mark.get("offset", 0))
    try:
        with open_log(path) as file:
            size = os.fstat(file.fileno()).st_size
            if not head or size < offset or file.read(_HEAD_BYTES)[: len(head)] != head:
                return False
            tail = _bytes_at(file, max(0, offset - _TAIL_BYTES), min(offset, _TAIL_BYTES))
    except OSError:
        return False
    return bool(_tail_fingerprint(tail) == mark.get("tail", ""))


def marks_in(cursor: Cursor) -> list[Mark]:
    """Return the marks of a cursor whose heads are whole: of one file, or of several by name."""
    of_files = cursor.get("files", {})
    marks = [cursor.get("mark"), *(of_files.values() if isinstance(of_files, Mapping) else ())]
    return [
        mark for mark in marks if isinstance(mark, Mapping) and len(mark.get("head", "")) == 2 * _HEAD_BYTES
    ]


def head_of(path: Path) -> str:
    """Return the first bytes of a file as a mark has them; empty for a file with fewer bytes."""
    try:
        with open_log(path) as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return ""
    return head.hex() if len(head) == _HEAD_BYTES else ""


def _renamed(path: Path, mark: Mark) -> Path | None:
    """Return the file beside ``path`` that a mark is about; None if there is none."""
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in islice(entries, _MAX_BESIDE):
            if entry.inode() == mark.get("inode") and holds(path.parent / entry.name, mark):
                return path.parent / entry.name
    return None


def read_text(path: Path, mark: Mark, limit: int) -> Read | None:
    """`read_new` for text. Reads about ``limit`` characters at most, and as many bytes if it is UTF-8."""
    piece = read_new(path, mark, limit)
    encoding = encoding_of(piece.head) if piece else ""
    if piece and encoding and piece.more:
        piece = read_new(path, mark, 2 * limit)
    if not piece or not encoding:
        return piece
    return replace(piece, data=as_utf_8(piece.data, encoding), _encoding=encoding)


def read_lines(path: Path, mark: Mark, size: int, longest: int) -> Read | None:
    """Read about ``size`` new bytes of text, but at least one line; None if there is nothing new.

    A line of more than ``longest`` bytes comes alone and without its end. Raises OSError like `read_new`.
    """
    piece = read_text(path, mark, size)
    if piece and piece.more and b"\n" not in piece.data:
        return read_text(path, mark, longest)
    begin = 0
    while piece and len(piece.data) - begin > longest:
        end = piece.data.rfind(b"\n", begin, begin + longest) + 1
        if not end:
            return read_text(path, mark, begin or longest)
        begin = end
    return piece


def read_rest(path: Path, mark: Mark, longest: int) -> Read | None:
    """Read the last line, at most ``longest`` bytes, of a file that is over; None if its line break was read.

    A file that ends with a whole block was cut by a buffer, and half a number misleads. Raises OSError.
    """
    piece = read_text(path, {**mark, "changed": None}, longest)
    if piece is None or piece.restarted or piece.more or not piece.data or piece.size % _BLOCK_BYTES == 0:
        return None
    return piece


def _bytes_at(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)


def _tail_fingerprint(data: bytes) -> str:
    return hashlib.blake2b(data[-_TAIL_BYTES:], digest_size=8).hexdigest()


def nothing_new(cursor: Cursor) -> PollResult:
    """Return the result of a poll that found nothing new."""
    return PollResult({name: value for name, value in cursor.items() if name != "unreadable"})


def refusal(cursor: Cursor, newest: Any, complaint: ReadIssue) -> PollResult:
    """Return that the file, as it is now, cannot be read; it is asked again once it changes."""
    return PollResult({**cursor, "newest": newest, "refused": complaint.problem}, read_issues=[complaint])


def unreadable(path: Location, cursor: Cursor, error: OSError) -> PollResult:
    """Return the result of a poll that met ``error``. It complains only if the reason is a new one."""
    reason = error.strerror or str(error)
    if cursor.get("unreadable") == reason:
        return PollResult(cursor)
    problem = f"cannot be read ({reason}); trying again at every poll"
    return PollResult({**cursor, "unreadable": reason}, read_issues=[ReadIssue(path, "", problem)])


def size_of(lines: int, data: bytes) -> int:
    """Return how many bytes the first ``lines`` lines of ``data`` have, counted from the end."""
    end = len(data)
    for _ in range(data.count(b"\n") - lines + 1):
        end = data.rfind(b"\n", 0, end)
    return end + 1


def whole_rows(frame: pl.DataFrame, data: bytes, max_rows: int) -> pl.DataFrame:
    """Return at most ``max_rows`` rows of the frame that was read from ``data``, without a torn last row."""
    if frame.height > max_rows:
        return frame.head(max_rows)
    return frame if data.endswith(b"\n") else frame.head(-1)
