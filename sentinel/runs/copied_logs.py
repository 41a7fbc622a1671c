"""Tells a log that grew from a copy: all of a copy was written at once, which no training does."""

import ctypes
import math
import os
import struct
from functools import cache
from pathlib import Path
from typing import Any

from sentinel.common.paths import is_file
from sentinel.runs.metadata import RunMetadata
from sentinel.runs.state import silent_seconds
from sentinel.sources.location import Location

_MIN_COPIED_POINTS = 50  # of a copy; a training logs fewer at once
_MIN_SILENT_SECONDS = 10.0  # until then a new training may have begun with many points
_MAX_COPY_SECONDS = 1.0  # to write a small file ...
_MIN_BYTES_PER_SECOND = 20e6  # ... and a large one on a slow disk
_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW = 0x100
_STATX_BTIME = 0x800
_STATX_BYTES = 256  # size of struct statx, which is the same on all machines
_BIRTH_OFFSET = 0x50  # bytes, of the time of birth in it


def silence_of(location: Location, metadata: RunMetadata, now: float, *, whole: bool = True) -> float | None:
    """Return seconds since the last write to a run, like `silent_seconds`; infinite for an undatable copy.

    The age of a copy is not known if its log has no times, or was not read to its end.
    """
    last_time = metadata.last_time if whole else None
    silent = silent_seconds(location, last_time, now)
    if (
        silent is None
        or last_time is not None
        or silent <= _MIN_SILENT_SECONDS
        or metadata.points < _MIN_COPIED_POINTS
    ):
        return silent
    is_there = isinstance(location, Path) and (is_file(location) or metadata.last_time is not None)
    return math.inf if isinstance(location, Path) and is_there and is_copy(location) else silent


def is_copy(path: Path) -> bool:
    """Return whether a file, or each file directly in a directory, was written within a moment of its birth.

    A copy that keeps the time of its original is older than its birth, so its time tells. Of a file system
    that does not know births the answer is no.
    """
    try:
        files = [path] if is_file(path) else [inside for inside in path.iterdir() if is_file(inside)]
        return bool(files) and all(was_written_at_once(file) for file in files)
    except OSError:
        return False


def was_written_at_once(file: Path, *, keeps_time: bool = False) -> bool:
    """Return whether a file was written within a moment of its birth, or earlier if a copy ``keeps_time``.

    Raises OSError.
    """
    status = file.lstat()
    born = birth(file)
    copy_seconds = _MAX_COPY_SECONDS + status.st_size / _MIN_BYTES_PER_SECOND
    return (
        born is not None
        and (keeps_time or status.st_mtime >= born)
        and status.st_mtime - born <= copy_seconds
    )


def birth(path: Path) -> float | None:
    """Return when a file was made, in seconds since the epoch; None if the file system does not tell."""
    statx = _statx()
    if statx is None:
        return None
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    if statx(_AT_FDCWD, os.fsencode(path), _AT_SYMLINK_NOFOLLOW, _STATX_BTIME, buffer) != 0:
        return None
    (mask,) = struct.unpack_from("=I", buffer.raw)
    seconds, nanoseconds = struct.unpack_from("=qI", buffer.raw, _BIRTH_OFFSET)
    return float(seconds + nanoseconds / 1e9) if mask & _STATX_BTIME else None


@cache
def _statx() -> Any:
    """Return the C library's `statx`, which Python 3.11 lacks; None on a system without it."""
    try:
        return ctypes.CDLL(None).statx
    except (OSError, AttributeError):
        return None
