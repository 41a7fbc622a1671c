"""Tells a log that grew from a copy: all of a copy was written at once, which no training does."""

import ctypes
import math
import os
import struct
from functools import cache
from pathlib import Path
from typing import Any

from sentinel.runs.metadata import RunMetadata
from sentinel.runs.state import silent_seconds
from sentinel.sources.location import Location

_MANY_POINTS = 50  # a training logs fewer at once
_MOMENT_SECONDS = 10.0  # after a write; until then a new training may have begun with many points
_AT_ONCE_SECONDS = 1.0  # to write a small file ...
_BYTES_A_SECOND = 20e6  # ... and a large one on a slow disk
_HERE = -100  # AT_FDCWD
_NO_FOLLOW = 0x100  # AT_SYMLINK_NOFOLLOW
_BIRTH = 0x800  # STATX_BTIME
# of struct statx, which is the same on all machines
_SIZE = 256
_BIRTH_AT = 0x50


def silence_of(place: Location, facts: RunMetadata, now: float, *, whole: bool = True) -> float | None:
    """Return seconds since the last write to a run, as `silent_seconds`; infinite for a copy of unknown age.

    The age of a copy is not known if its log has no times, or was not read to its end.
    """
    last_time = facts.last_time if whole else None
    silent = silent_seconds(place, last_time, now)
    if silent is None or last_time is not None or silent <= _MOMENT_SECONDS or facts.points < _MANY_POINTS:
        return silent
    is_there = isinstance(place, Path) and (place.is_file() or facts.last_time is not None)
    return math.inf if isinstance(place, Path) and is_there and is_copy(place) else silent


def is_copy(path: Path) -> bool:
    """Return whether a file, or each file directly in a directory, was written within a moment of its birth.

    A copy that keeps the time of its original is older than its birth, so its time tells. Of a file system
    that does not know births the answer is no.
    """
    try:
        files = [path] if path.is_file() else [inside for inside in path.iterdir() if inside.is_file()]
        return bool(files) and all(_was_written_at_once(file) for file in files)
    except OSError:
        return False


def _was_written_at_once(file: Path) -> bool:
    status = file.lstat()
    born = birth(file)
    at_once = _AT_ONCE_SECONDS + status.st_size / _BYTES_A_SECOND
    return born is not None and 0 <= status.st_mtime - born <= at_once


def birth(path: Path) -> float | None:
    """Return when a file was made, in seconds since the epoch; None if the file system does not tell."""
    if (statx := _statx()) is None:
        return None
    buffer = ctypes.create_string_buffer(_SIZE)
    if statx(_HERE, os.fsencode(path), _NO_FOLLOW, _BIRTH, buffer) != 0:
        return None
    (mask,) = struct.unpack_from("=I", buffer.raw)
    seconds, nanoseconds = struct.unpack_from("=qI", buffer.raw, _BIRTH_AT)
    return float(seconds + nanoseconds / 1e9) if mask & _BIRTH else None


@cache
def _statx() -> Any:
    """Return the C library's function; Python 3.11 has none. None on a system without it."""
    try:
        return ctypes.CDLL(None).statx
    except (OSError, AttributeError):
        return None
