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
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

import numpy as np

from sentinel.sources.readers.growing import Mark, Read, read_new
from sentinel.sources.readers.problems import Problem, summed

BLOCK_BYTES = 1 << 15
MAX_RECORD = 32 << 20
"""Bytes. A longer record holds tables or the like, and is skipped. This bounds the memory of a poll."""

FILE_HEADER_BYTES = 7

# bytes at once
_MIN_READ = BLOCK_BYTES // 4
_MAX_READ = 8 << 20
_HEADER = Struct("<IHB")
_CHECKED = 6  # offset in a chunk of what the checksum covers: type and payload
_FULL = 1
_FIRST = 2
_MIDDLE = 3
_LAST = 4
_MAX_BROKEN = 16  # chunks of one block; after them the rest of the block is skipped
_MAX_SEARCHED = 128 * BLOCK_BYTES  # bytes whose checksums a search for a sound chunk may compute


@dataclass(frozen=True)
class FileHeader:
    """How the files of a logger begin: with 6 bytes of its own, and a byte for the version of the format."""

    logger: str
    magic: bytes
    versions: Sequence[int]  # that can be read

    def version(self, data: bytes) -> int | None:
        """Return the version of the file that begins with ``data``; None if the header is not complete.

        Raises ValueError, which says what to do, if nothing of the file can be read.
        """
        known = data[:FILE_HEADER_BYTES].rstrip(b"\0")  # zeros may be bytes that are not written yet
        if self.magic.startswith(known) and (len(data) < FILE_HEADER_BYTES or len(known) < len(self.magic)):
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


@dataclass(frozen=True)
class Log:
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
    records: list[bytes] = []
    ends: list[int] = []
    broken: list[int] = []
    overlong: list[int] = []
    parts: list[bytes] = []  # of a record that is not complete
    consumed = position = start
    while True:
        left = BLOCK_BYTES - (offset + position) % BLOCK_BYTES
        if left < _HEADER.size:
            position += left
            left = BLOCK_BYTES
        if position + _HEADER.size > written:
            break
        checksum, length, kind = _HEADER.unpack_from(data, position)
        end = position + _HEADER.size + length
        fits = _FULL <= kind <= _LAST and _HEADER.size + length <= left
        if not fits or zlib.crc32(view[position + _CHECKED : end]) != checksum:
            if fits and end > written:
                break
            block_end = position + left
            in_block = sum(place >= block_end - BLOCK_BYTES for place in broken[-_MAX_BROKEN:])
            following = None
            if in_block < _MAX_BROKEN:
                following = _sound_chunk(data, position + 1, block_end)
            if following is None and block_end > len(data):
                break
            broken.append(position)
            parts = []
            consumed = position = block_end if following is None else following
            continue
        payload = data[position + _HEADER.size : end]
        if kind == _FULL:
            records.append(payload)
        elif kind == _FIRST:
            consumed = position
            parts = [payload]
        elif parts:
            parts.append(payload)
            if kind == _LAST:
                records.append(b"".join(parts))
            elif end - consumed > MAX_RECORD:
                overlong.append(consumed)
                parts = []
        if kind in (_FULL, _LAST):
            parts = []
        position = end
        if not parts:
            consumed = end
        if len(ends) < len(records):
            ends.append(end)
    problems = [
        *summed(np.array(broken), "record does not match its checksum and was skipped"),
        *summed(np.array(overlong), f"record is longer than {MAX_RECORD >> 20} MiB and was skipped"),
    ]
    return Log(records, ends, problems, min(consumed, len(data)))


def read_log(path: Path, mark: Mark, size: int) -> tuple[Read, Log] | None:
    """About ``size`` new bytes of a file and their records; None if there is nothing new.

    A longer record is read whole if it is not overlong. Raises OSError.
    """
    read = read_new(path, mark, min(max(size, _MIN_READ), _MAX_READ))
    while read:
        start = 0 if read.offset else FILE_HEADER_BYTES
        log = split(read.data, start, read.offset, not read.more)
        if log.consumed > start or not read.more:
            return read, log
        read = read_new(path, mark, min(4 * len(read.data), MAX_RECORD + 2 * BLOCK_BYTES))
    return None


def _sound_chunk(data: bytes, start: int, block_end: int) -> int | None:
    """Return the offset of the first sound chunk in the rest of a block, if the search finds it soon."""
    end = min(block_end, len(data))
    searched = 0
    kinds = np.frombuffer(data, np.uint8)[start + _CHECKED : end]
    for place in (np.flatnonzero((kinds >= _FULL) & (kinds <= _LAST)) + start).tolist():
        checksum, length, _ = _HEADER.unpack_from(data, place)
        chunk_end = place + _HEADER.size + length
        if chunk_end > end:
            continue
        searched += length
        if searched > _MAX_SEARCHED:
            return None
        if zlib.crc32(data[place + _CHECKED : chunk_end]) == checksum:
            return int(place)
    return None
