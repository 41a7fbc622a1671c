"""LevelDB's log framing, in which W&B and SwanLab write: cuts bytes into records and verifies checksums.

A file begins with a header of 7 bytes that the logger chose. It consists of blocks of 32 KiB, and a block of
chunks. A chunk is a checksum (4 bytes), a length (2 bytes, little-endian), a type, and the payload. Fewer
than 7 bytes at the end of a block are padding. A record is one FULL chunk, or a FIRST chunk, some MIDDLE
chunks and a LAST one. The checksum of both loggers is the plain CRC-32 of type and payload. LevelDB itself
has a masked CRC-32C.

https://github.com/google/leveldb/blob/main/doc/log_format.md
"""

import zlib
from collections.abc import Sequence
from pathlib import Path
from struct import Struct

import msgspec
import numpy as np

from sentinel.sources.readers.growing import Mark, Read, read_new
from sentinel.sources.readers.problems import Problem, summed

BLOCK_BYTES = 1 << 15  # of the file; the last block may be shorter
MAX_RECORD = 32 << 20
"""Bytes. A longer record holds tables or the like, and is skipped. This bounds the memory of a poll."""

FILE_HEADER_BYTES = 7  # that the logger chose

_MIN_READ_BYTES = BLOCK_BYTES // 4  # at once
_MAX_READ_BYTES = 8 << 20  # at once
_RECORD_HEADER = Struct("<IHB")
_CHECKED = 6  # offset in a chunk of what the checksum covers: type and payload
_FULL = 1  # type of a chunk that is a whole record
_FIRST = 2  # of one with which a record begins
_MIDDLE = 3  # of one that goes on with a record
_LAST_CHUNK = 4  # of one with which it ends
_MAX_BROKEN = 16  # chunks of one block; after them the rest of the block is skipped
_MAX_SEARCHED = 128 * BLOCK_BYTES  # bytes whose checksums a search for a sound chunk may compute


class FileHeader(msgspec.Struct, frozen=True):
    """How the files of a logger begin: with 6 bytes of its own, and a byte for the version of the format."""

    logger: str
    magic: bytes
    versions: Sequence[int]  # that can be read

    def version(self, data: bytes) -> int | None:
        """Return the version of the file that begins with ``data``; None if the header is not complete.

        Raises ValueError, which says what to do, if nothing of the file can be read.
        """
        header = data[:FILE_HEADER_BYTES].rstrip(b"\0")  # zeros may be bytes that are not written yet
        if self.magic.startswith(header) and (len(data) < FILE_HEADER_BYTES or len(header) < len(self.magic)):
            return None
        if not data.startswith(self.magic):
            raise ValueError(
                f"is no {self.logger} log, although its name says so, and is not read; remove or rename it"
            )
        if (version := data[len(self.magic)]) not in self.versions:
            can_be_read = " and ".join(map(str, self.versions))
            raise ValueError(
                f"is a {self.logger} log in version {version} of the format, and only version {can_be_read} "
                "can be read"
            )
        return version


class Log(msgspec.Struct, frozen=True):
    """What ``split`` found. Offsets count from the start of the bytes that were split."""

    records: Sequence[bytes]
    ends: Sequence[int]  # offset behind each record
    problems: Sequence[Problem]
    consumed: int  # bytes that need not be looked at again


def split(data: bytes, start: int, offset: int, at_end: bool) -> Log:
    """Split off the complete records of ``data[start:]``. A chunk begins at ``start``.

    ``offset`` is the offset of ``data`` in its file. ``at_end`` says that the file ends with ``data``.

    A torn record is left for the next call. A broken record looks like a torn one until a sound chunk or the
    rest of the block follows it. Until then it is left as well; after that, reading goes on at the sound
    chunk or at the next block. The continuation of a record whose beginning was lost is skipped.
    """
    written = len(data.rstrip(b"\0")) if at_end else len(data)  # zeros may be bytes still on their way
    view = memoryview(data)
    broken: list[int] = []
    assembly = _Assembly(start)
    position = start
    while True:
        left_in_block = BLOCK_BYTES - (offset + position) % BLOCK_BYTES
        if left_in_block < _RECORD_HEADER.size:  # padding
            position += left_in_block
            left_in_block = BLOCK_BYTES
        if position + _RECORD_HEADER.size > written:
            break
        checksum, length, kind = _RECORD_HEADER.unpack_from(data, position)
        end = position + _RECORD_HEADER.size + length
        fits = _FULL <= kind <= _LAST_CHUNK and _RECORD_HEADER.size + length <= left_in_block
        if fits and zlib.crc32(view[position + _CHECKED : end]) == checksum:
            assembly.add(kind, data[position + _RECORD_HEADER.size : end], position, end)
            position = end
            continue
        is_torn = fits and end > written
        following = None if is_torn else _behind_broken(data, broken, position, position + left_in_block)
        if following is None:
            break
        broken.append(position)
        assembly.give_up(following)
        position = following
    problems = [
        *summed(np.array(broken), "record does not match its checksum and was skipped"),
        *summed(np.array(assembly.overlong), f"record is longer than {MAX_RECORD >> 20} MiB and was skipped"),
    ]
    return Log(assembly.records, assembly.ends, problems, min(assembly.consumed, len(data)))


class _Assembly:
    """Puts the chunks of records together."""

    def __init__(self, start: int) -> None:
        self.records: list[bytes] = []
        self.ends: list[int] = []  # offset behind each record
        self.overlong: list[int] = []  # offsets of records that are too long
        self.consumed = start  # where the record begins that is not complete, else the end of the last chunk
        self._parts: list[bytes] = []  # of the record that is not complete

    def add(self, kind: int, payload: bytes, begin: int, end: int) -> None:
        """Add a sound chunk that lies between two offsets."""
        if kind == _FULL:
            self._finish(payload, end)
        elif kind == _FIRST:
            self.consumed = begin
            self._parts = [payload]
        elif not self._parts:  # the continuation of a record whose beginning was lost
            self.consumed = end
        elif kind == _LAST_CHUNK:
            self._finish(b"".join([*self._parts, payload]), end)
        else:
            self._parts.append(payload)
            if end - self.consumed > MAX_RECORD:
                self.overlong.append(self.consumed)
                self.give_up(end)

    def give_up(self, position: int) -> None:
        """Skip the record that is not complete. Reading goes on at another position."""
        self._parts = []
        self.consumed = position

    def _finish(self, record: bytes, end: int) -> None:
        self.records.append(record)
        self.ends.append(end)
        self.give_up(end)


def _behind_broken(data: bytes, broken: Sequence[int], position: int, block_end: int) -> int | None:
    """Return where reading goes on behind a broken chunk; None if nothing that follows is there yet.

    ``broken`` are the offsets of earlier ones. After too many of them in a block the rest of it is skipped.
    """
    in_block = sum(offset >= block_end - BLOCK_BYTES for offset in broken[-_MAX_BROKEN:])
    following = _sound_chunk(data, position + 1, block_end) if in_block < _MAX_BROKEN else None
    if following is None and block_end <= len(data):
        return block_end
    return following


def read_log(path: Path, mark: Mark, size: int) -> tuple[Read, Log] | None:
    """Read about ``size`` new bytes of a file, with their records; None if there is nothing new.

    A longer record is read whole if it is not overlong. Raises OSError.
    """
    piece = read_new(path, mark, min(max(size, _MIN_READ_BYTES), _MAX_READ_BYTES))
    while piece:
        start = 0 if piece.offset else FILE_HEADER_BYTES
        log = split(piece.data, start, piece.offset, not piece.more)
        if log.consumed > start or not piece.more:
            return piece, log
        piece = read_new(path, mark, min(4 * len(piece.data), MAX_RECORD + 2 * BLOCK_BYTES))
    return None


def _sound_chunk(data: bytes, start: int, block_end: int) -> int | None:
    """Return the offset of the first sound chunk in the rest of a block, if the search finds it soon."""
    end = min(block_end, len(data))
    searched = 0
    kinds = np.frombuffer(data, np.uint8)[start + _CHECKED : end]
    for offset in (np.flatnonzero((kinds >= _FULL) & (kinds <= _LAST_CHUNK)) + start).tolist():
        checksum, length, _ = _RECORD_HEADER.unpack_from(data, offset)
        chunk_end = offset + _RECORD_HEADER.size + length
        if chunk_end > end:
            continue
        searched += length
        if searched > _MAX_SEARCHED:
            return None
        if zlib.crc32(data[offset + _CHECKED : chunk_end]) == checksum:
            return int(offset)
    return None
