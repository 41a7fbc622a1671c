"""NumPy archives of arrays that grow together, such as the ``evaluations.npz`` of Stable-Baselines3.

One array may count the steps, and each other has a value, or a row of values, for each of them. Of a row the
mean counts: of Stable-Baselines3 a row holds the episodes of one evaluation. An archive is saved anew as a
whole; an array of Python objects is never unpickled, and left out.

An array alone, such as ``rewards.npy``, is a curve if its file is called after a metric. Like a table, an
archive is a log if it names metrics beside a counter that grows, or if it has the name of a
log.
"""

import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
from numpy.lib import format as array_format
from numpy.typing import NDArray

from sentinel.sources.base import Cursor, PollResult, Run
from sentinel.sources.json.documents import BrokenError, parse_new
from sentinel.sources.readers.files import open_log, stamp, version
from sentinel.sources.readers.growing import nothing_new, refusal, unreadable
from sentinel.sources.readers.records import named
from sentinel.sources.readers.sniffing import COUNTS, are_metrics, is_log, is_log_name, remembered
from sentinel.sources.readers.words import says_metric

FORMAT = "npz"

MAX_BYTES = 1 << 26
"""Bytes of an archive, and of its arrays. A larger one is data."""

MAX_ARRAYS = 1 << 14
"""Arrays of an archive. One with more is data."""

MAX_CURVES = 24
"""Files of one array each, with the name of a metric, in a directory. More are data."""

MIN_POINTS = 3
"""Numbers of an array that is a curve."""

_ENDING = ".npz"
_MEMBER = ".npy"
_NUMBERS = "biuf"
"""Kinds of arrays that hold numbers."""

_END_OF_ARCHIVE = b"PK\x05\x06"
_MAX_END = (1 << 16) + 22
"""Bytes within which the end of an archive stands."""

_SB3_TAGS = {
    "timesteps": "timesteps",
    "results": "eval/mean_reward",
    "ep_lengths": "eval/mean_ep_length",
    "successes": "eval/success_rate",
}
"""The tags that Stable-Baselines3 gives, in its other logs, to what its archive of evaluations holds."""

_SB3_ARRAYS = {"timesteps", "results", "ep_lengths"}
"""Arrays of each such archive."""

_BROKEN = (zipfile.BadZipFile, zlib.error, ValueError, RuntimeError, EOFError, OverflowError)
"""What a broken archive raises."""


_LIST = "its list of arrays"
"""Where an archive is broken that has no list of what it holds."""


class _TornError(Exception):
    """The archive has no end yet."""


def find(directory: Path, names: Sequence[str]) -> Iterator[Run]:
    """Yield the archives among the names of one directory that are logs, and the arrays that are curves."""
    arrays = [name for name in names if name.endswith(_MEMBER) and says_metric(name.removesuffix(_MEMBER))]
    archives = [name for name in names if name.endswith(_ENDING)]
    for name in [*archives, *(arrays if len(arrays) <= MAX_CURVES else ())]:
        if _is_log(directory / name):
            yield Run(directory / name, FORMAT, Archive(directory / name))


class Archive(msgspec.Struct, frozen=True):
    """One archive, or the file of one array."""

    path: Path

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return the rows that were added since ``cursor``; see `sentinel.sources.base.Source`."""
        try:
            newest = stamp(self.path)
            if newest == cursor.get("newest"):
                return nothing_new(cursor)
            with open_log(self.path) as file:
                version_before = version(file)
                rows = _rows(self.path, file)
                is_being_saved = version(file) != version_before
        except OSError as error:
            return unreadable(self.path, cursor, error)
        except _TornError:
            return PollResult({**cursor, "newest": newest})
        except BrokenError as error:
            return refusal(cursor, newest, error.complaint)
        if is_being_saved:
            return nothing_new(cursor)
        new_cursor, chunks, more = parse_new(cursor, rows, limit, self.path.name, {})
        return PollResult({**new_cursor, "newest": None if more else newest}, chunks, more=more)


@remembered
def _is_log(path: Path) -> bool:
    try:
        with open_log(path) as file:
            if path.suffix == _MEMBER:
                return len(_rows(path, file)) >= MIN_POINTS
            with _opened(path, file) as archive:
                if not _is_named_log(path.stem, [*_tags(archive).values()]):
                    return False
            rows = _rows(path, file)
    except BrokenError as error:
        return error.complaint.location != _LIST  # the names are those of a log; a poll says what is broken
    except (OSError, _TornError):
        return False
    tags = [*rows[0]] if rows else []
    counting = named(tags, COUNTS)
    return _is_named_log(path.stem, tags, [row[counting] for row in rows] if counting else None)


def _is_named_log(stem: str, tags: Sequence[str], counts: Sequence[float] | None = None) -> bool:
    """Return whether tags are those of a log; a history need not count its losses."""
    is_history = is_log_name(stem) and are_metrics(tags) and counts is None
    return is_history or is_log(stem, tags, counts)


def _rows(path: Path, file: BinaryIO) -> list[dict[str, float]]:
    """Return what each row of the arrays holds, by tag.

    Raises OSError, `BrokenError`, and `_TornError` for an archive without an end.
    """
    if path.suffix == _MEMBER:
        return _rows_of_one(path, file)
    with _opened(path, file) as archive:
        arrays = {
            tag: array
            for name, tag in _tags(archive).items()
            if (array := _array(path, archive, name)) is not None
        }
    counting = named([tag for tag, array in arrays.items() if array.ndim == 1], COUNTS)
    length = len(arrays[counting]) if counting else max(map(len, arrays.values()), default=0)
    columns = {
        tag: _means(array).tolist()
        for tag, array in arrays.items()
        if len(array) == length and (array.ndim == 1 or says_metric(tag) or tag in _SB3_TAGS.values())
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _opened(path: Path, file: BinaryIO) -> zipfile.ZipFile:
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - _MAX_END))
    if _END_OF_ARCHIVE not in file.read(_MAX_END):
        raise _TornError
    try:
        archive = zipfile.ZipFile(file)
    except _BROKEN as error:
        raise BrokenError(path, _LIST, f"is no archive of NumPy ({error})") from None
    members = archive.infolist()
    if len(members) > MAX_ARRAYS or max(size, sum(member.file_size for member in members)) > MAX_BYTES:
        raise BrokenError(path, _LIST, f"holds more than {MAX_BYTES >> 20} MiB and is not read")
    return archive


def _tags(archive: zipfile.ZipFile) -> Mapping[str, str]:
    """Return the tag of each array, by the name of the array."""
    names = [name.removesuffix(_MEMBER) for name in archive.namelist() if name.endswith(_MEMBER)]
    is_of_sb3 = _SB3_TAGS.keys() & {*names} >= _SB3_ARRAYS
    return {name: _SB3_TAGS.get(name, name) if is_of_sb3 else name for name in names}


def _array(path: Path, archive: zipfile.ZipFile, name: str) -> NDArray[Any] | None:
    """Return an array of numbers that has rows; None for any other. Raises `BrokenError`."""
    try:
        return _numbers(archive.read(name + _MEMBER))
    except _BROKEN as error:
        problem = f"is broken ({error}), so the archive is not read until it is saved again"
        raise BrokenError(path, f"array {name}", problem) from None


def _rows_of_one(path: Path, file: BinaryIO) -> list[dict[str, float]]:
    """Return the rows of a file with one array, which has the name of the file.

    Raises OSError, `BrokenError`, and `_TornError` for an array that is shorter than it says.
    """
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise BrokenError(path, _LIST, f"holds more than {MAX_BYTES >> 20} MiB and is not read")
    try:
        numbers = _numbers(data)
    except _BROKEN:
        raise _TornError from None
    if numbers is None or numbers.ndim > 1:
        return []
    return [{path.stem: value} for value in numbers.tolist()]


def _numbers(data: bytes) -> NDArray[Any] | None:
    """Return the numbers of an array that has rows; None for any other. Raises one of `_BROKEN`."""
    text = io.BytesIO(data)
    major, _ = array_format.read_magic(text)
    header = array_format.read_array_header_1_0 if major == 1 else array_format.read_array_header_2_0
    shape, is_transposed, kind = header(text)
    if kind.kind not in _NUMBERS or not shape or 0 in shape:
        return None
    numbers = np.frombuffer(data, kind, offset=text.tell())
    numbers = numbers.astype(kind if kind.kind in "iu" else np.float64)
    return numbers.reshape(shape, order="F" if is_transposed else "C")


def _means(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.ndim == 1 else array.reshape(len(array), -1).mean(axis=1)
