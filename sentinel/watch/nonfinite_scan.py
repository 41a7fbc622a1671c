"""Finds logs in which a number ceases to be finite, before it is their turn to be read.

A NaN or an infinity is the problem that costs most while nobody knows of it, and the only one that the bytes
of a log show without being parsed. So the new bytes of all changed files are scanned, and a log with such a
number is read first. What is wrong with it is decided by reading: the scan only changes the order.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from sentinel.common.lazy_pattern import lazy_pattern

_MAX_SCANNED_BYTES = 1 << 16  # of a file, the newest
_MAX_SCANNED_FILES = 1 << 16  # that are remembered

# A number as text, as W&B, JSONL and consoles write it; and as TensorBoard does, which is little-endian: the
# quiet NaN and the infinities of IEEE 754, of 32 and of 64 bits.
_NONFINITE = lazy_pattern(
    rb"\b(?:[Nn][Aa][Nn]|[Ii]nf(?:inity)?)\b"
    rb"|\0\0[\x80\xc0][\x7f\xff]|\0{6}[\xf0\xf8][\x7f\xff]"
)


class NonFiniteScan:
    """Remembers how far it has scanned each file, and whether the last bytes held such a number."""

    def __init__(self) -> None:
        self._scanned: dict[Path, tuple[int, bool]] = {}

    def scan(self, changed: Iterable[Path]) -> Iterator[Path]:
        """Yield the changed files whose newest bytes hold a number that is not finite, and whose bytes before
        did not.

        A log with such numbers all the time has no preference, so it keeps nobody waiting.
        """
        if len(self._scanned) > _MAX_SCANNED_FILES:
            self._scanned.clear()
        for path in changed:
            size, was_nonfinite = self._scanned.get(path, (0, False))
            try:
                newest, end = _read_from(path, size)
            except OSError:  # gone, a directory, or not for us
                self._scanned.pop(path, None)
                continue
            if newest:
                is_nonfinite = _NONFINITE.search(newest) is not None
                self._scanned[path] = end, is_nonfinite
                if is_nonfinite and not was_nonfinite:
                    yield path


def _read_from(path: Path, offset: int) -> tuple[bytes, int]:
    """Return the bytes of a file from an offset on, at most the newest, and its size. Raises OSError."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        size = os.fstat(file).st_size
        offset = offset if offset <= size else 0  # else the file was written anew
        offset = max(offset, size - _MAX_SCANNED_BYTES)
        return os.pread(file, size - offset, offset), size
    finally:
        os.close(file)
