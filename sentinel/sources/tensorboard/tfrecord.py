"""TFRecord framing: cuts bytes into records and verifies their checksums. The content of a record is opaque.

A record consists of its length (8 bytes, little-endian), a checksum of the length, the payload, and a
checksum of the payload. The checksums are masked CRC-32C (Castagnoli). Most records of a large file have one
of a few lengths, so all records of one length are handled at once:

- The sequence of lengths nearly always repeats, because a training loop logs the same tags each time. So the
  reader guesses headers far ahead and compares them with the bytes that are there.
- CRC-32C is linear over GF(2). The checksum of a record is the checksum of the bytes that all records of its
  length share, XORed with one table entry for each byte in which they differ.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from struct import Struct
from typing import Any

import google_crc32c
import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.sources.readers.problems import Problem, summed

MAX_PAYLOAD = 1 << 31  # protobuf's own limit: a longer message cannot exist

_RECORD_HEADER = Struct("<QI")
HEADER_BYTES = _RECORD_HEADER.size
_FRAME_BYTES = HEADER_BYTES + 4  # of a record beside its payload: the header, and the checksum behind it
_WORTH_A_MATRIX = 64  # rows; below this, checksums are cheaper one by one
MAX_ROW = 2048
"""Bytes: about fifty scalars in one event. Checksums of longer records are computed one by one."""

_STRETCH = 256  # records walked one by one before a repetition is looked for
_SIGNATURE = 32  # last lengths that must have occurred before, in this order, to call it a repetition
_LEAP = 1024  # records guessed at once at first; doubled while every guess is right
_SEARCH_BYTES = 1 << 16  # in which a sound header is looked for at once

_CRC32C_REVERSED = 0x82F63B78  # the polynomial of Castagnoli
_MASK_DELTA = 0xA282EAD8  # that masks a checksum, as in LevelDB


class RecordGroup(msgspec.Struct, frozen=True):
    """Many records of one length: ``rows[i]`` is the payload of record ``number[i]``."""

    number: NDArray[np.int64]
    rows: NDArray[np.uint8]
    varying: NDArray[np.bool_]  # the columns in which the rows are not all equal


class Frames(msgspec.Struct, frozen=True):
    """What ``split`` found. Numbers count all records; the payloads of broken ones are left out."""

    starts: NDArray[np.int64]  # offset of each record, by number
    groups: Sequence[RecordGroup]
    single: Sequence[tuple[int, bytes]]  # number and payload of all other records
    problems: Sequence[Problem]
    consumed: int  # bytes that need not be looked at again
    needed: int  # bytes that must follow for the record that begins there to be whole; 0 if not known
    lost: bool  # a header was broken and no sound one follows yet


def split(data: bytes, most: int, lost: bool = False, at_end: bool = False) -> Frames:
    """Split off the first ``most`` records of ``data``. ``lost`` is that of the frames before ``data``.

    A torn record is left for the next call. A payload with a wrong checksum is skipped. If the header has a
    wrong checksum or claims more than MAX_PAYLOAD, nobody knows where the next record begins. The bytes
    are then searched for a header whose checksum is right.

    ``at_end`` says that the file ends with ``data``. Network file systems show bytes that are not written yet
    as zeros, so a record that fails its checksum because of zeros at the end is torn.
    """
    written = len(data.rstrip(b"\0")) if at_end else len(data)
    parts: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    problems: list[Problem] = []
    position = 0
    count = 0
    needed = 0
    while True:
        if lost:
            position, lost = _find_header(data, position)
        if lost:
            break
        starts, position, needed, wrong = _walk_records(data, position, most - count)
        parts.append(starts)
        count += len(starts)
        if wrong and position + HEADER_BYTES > written:
            wrong = ""
            needed = len(data) - position + 1
        if not wrong:
            break
        problems.append(Problem(position, f"{wrong}; reading goes on at the next sound record header"))
        position = position + 1
        lost = True
    starts = np.concatenate(parts)
    groups, single, broken = _checked(data, starts)
    if broken and broken[-1] == count - 1 and position > written:
        position = int(starts[broken.pop()])
        needed = len(data) - position + 1
    problems += summed(starts[broken], "record does not match its checksum and was skipped")
    return Frames(starts, groups, single, problems, position, needed, lost)


def _walk_records(data: bytes, position: int, most: int) -> tuple[NDArray[np.int64], int, int, str]:
    """Walk over whole records from ``position`` on.

    Gives their offsets, where they end, the size of the torn record that begins there (or 0), and what is
    wrong with the header there (or nothing).
    """
    parts: list[NDArray[np.int64]] = []
    recent: list[int] = []
    stretch = _STRETCH
    unpack = _RECORD_HEADER.unpack_from
    last = len(data) - HEADER_BYTES
    needed = 0
    wrong = ""
    while position <= last and most > len(recent):
        length, checksum = unpack(data, position)
        if checksum != _checksum_of_length(length):
            wrong = "record length does not match its checksum"
            break
        if length >= MAX_PAYLOAD:
            wrong = f"record claims to be {length} bytes long"
            break
        if position + length + _FRAME_BYTES > len(data):
            needed = length + _FRAME_BYTES
            break
        recent.append(position)
        position += length + _FRAME_BYTES
        if len(recent) == stretch:
            leap, position = _leap(data, np.array(recent), position, most - len(recent))
            stretch = _STRETCH if len(leap) else 2 * stretch
            parts += [np.array(recent), leap]
            most -= len(recent) + len(leap)
            recent = []
    return np.concatenate([*parts, np.array(recent, np.int64)]), position, needed, wrong


def _leap(data: bytes, recent: NDArray[np.int64], position: int, most: int) -> tuple[NDArray[np.int64], int]:
    """Return the offsets of the records after ``recent`` while its latest lengths repeat, and their end."""
    lengths = np.diff(recent, append=position).astype(np.uint8).tobytes()
    before = lengths.rfind(lengths[-_SIGNATURE:], 0, -1)
    leap: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    if before < 0:
        return leap[0], position
    cycle = recent[before + _SIGNATURE - len(lengths) :]
    span = position - cycle[0]
    headers = _every(data, f"V{HEADER_BYTES}")
    expected = headers[cycle].view(np.uint32)
    reach = _LEAP
    while (rounds := min(reach // len(cycle) + 1, (len(data) - position) // span)) and most:
        guess = (position + span * np.arange(rounds + 1)[:, None] + cycle - cycle[0]).ravel()
        repeats = headers[guess[: rounds * len(cycle)]].view(np.uint32).reshape(rounds, -1)
        same = (repeats == expected).reshape(-1, 3).all(axis=1)
        right = min(len(same) if same.all() else int(same.argmin()), most)
        leap.append(guess[:right])
        position = int(guess[right])
        most = most - right
        if right < len(same):
            break
        reach *= 2
    return np.concatenate(leap), position


def _find_header(data: bytes, position: int) -> tuple[int, bool]:
    """Return where the next sound header begins, and False; or where to search with more bytes, and True."""
    lengths = _every(data, "<u8")
    checksums = _every(data, "<u4")
    last = len(data) - HEADER_BYTES
    while position <= last:
        piece = data[position : position + _SEARCH_BYTES]
        zeros = len(piece) - len(piece.lstrip(b"\0"))
        if zeros >= HEADER_BYTES:  # no header is zeros alone, which a power cut leaves by the megabyte
            position += zeros - HEADER_BYTES + 1
            continue
        offsets = np.arange(position, min(position + _SEARCH_BYTES, last + 1))
        offsets = offsets[lengths[offsets] < MAX_PAYLOAD]
        headers = lengths[offsets].view(np.uint8).reshape(-1, 8)
        sound = offsets[_checksums(headers, np.ones(8, np.bool_)) == _unmasked(checksums[offsets + 8])]
        if len(sound):
            return int(sound[0]), False
        position = min(position + _SEARCH_BYTES, last + 1)
    return position, True


def _checked(
    data: bytes, starts: NDArray[np.int64]
) -> tuple[list[RecordGroup], list[tuple[int, bytes]], list[int]]:
    """Return the records at ``starts``, in groups and single ones, and the numbers of broken ones."""
    lengths = _every(data, "<u4")[starts].astype(np.int64)
    payloads = starts + HEADER_BYTES
    ends = payloads + lengths
    stored = _unmasked(_every(data, "<u4")[ends])
    groups: list[RecordGroup] = []
    single: list[tuple[int, bytes]] = []
    broken: list[int] = []
    short = np.where(lengths <= MAX_ROW, lengths, 0)
    worth = np.bincount(short, minlength=1) >= _WORTH_A_MATRIX
    worth[0] = False
    many = np.flatnonzero(worth[short])
    many = many[np.argsort(short[many].astype(np.uint16), kind="stable")]
    for numbers in np.split(many, np.flatnonzero(np.diff(short[many])) + 1) if len(many) else ():
        length = int(short[numbers[0]])
        rows = _every(data, f"V{length}")[payloads[numbers]].view(np.uint8).reshape(-1, length)
        varying = (rows != rows[0]).any(axis=0)
        sound = _checksums(rows, varying) == stored[numbers]
        if not sound.all():
            broken += numbers[~sound].tolist()
            numbers = numbers[sound]
            rows = rows[sound]
        groups.append(RecordGroup(numbers, rows, varying))
    rest = np.flatnonzero(~worth[short])
    for number, start, end, checksum in zip(
        *(column.tolist() for column in (rest, payloads[rest], ends[rest], stored[rest])), strict=True
    ):
        payload = data[start:end]
        if google_crc32c.value(payload) == checksum:
            single.append((number, payload))
        else:
            broken.append(number)
    return groups, single, sorted(broken)


def _every(data: bytes, dtype: str) -> NDArray[Any]:
    """Return a view of ``data`` whose element i is the value that begins at byte i."""
    kind = np.dtype(dtype)
    return np.ndarray((max(len(data) - kind.itemsize + 1, 0),), kind, data, strides=(1,))


def _checksums(rows: NDArray[np.uint8], varying: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Return the CRC-32C of each row; columns that do not vary are equal in all of them."""
    shared = np.where(varying, 0, rows[:1]).astype(np.uint8)
    crc = np.full(len(rows), google_crc32c.value(shared.tobytes()), np.uint32)
    width = rows.shape[1]
    effects = _effects(1 << (width - 1).bit_length())  # most rows are short, and few tables serve all widths
    for column in np.flatnonzero(varying):
        crc ^= effects[width - 1 - column].take(rows[:, column])
    return crc


@cache
def _effects(width: int) -> NDArray[np.uint32]:
    """Return what a byte adds to the checksum of a row of at most ``width`` bytes: entry [d, b] is for byte b
    with d bytes after it.
    """
    crc = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = np.where(crc & 1, crc >> 1 ^ _CRC32C_REVERSED, crc >> 1)
    effects = [crc]
    for _ in range(width - 1):
        effects.append(effects[-1] >> 8 ^ crc[effects[-1] & 0xFF])
    return np.array(effects, np.uint32)


@lru_cache(maxsize=1 << 12)
def _checksum_of_length(length: int) -> int:
    """Return the masked CRC-32C of a header. The mask's rotation keeps checksums of checksums useful."""
    crc: int = google_crc32c.value(length.to_bytes(8, "little"))
    return (crc >> 15 | crc << 17) + _MASK_DELTA & 0xFFFFFFFF


def _unmasked(checksums: NDArray[np.uint32]) -> NDArray[np.uint32]:
    turned = checksums - np.uint32(_MASK_DELTA)
    crc: NDArray[np.uint32] = turned << np.uint32(15) | turned >> np.uint32(17)
    return crc
