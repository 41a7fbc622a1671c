"""Finds logs in which a number ceases to be finite, before it is their turn to be read.

A NaN or an infinity is the trouble that costs most while nobody knows of it, and the only one that the bytes
of a log show without being understood. So a fleet that is too large to be read at once is peeked at, and
such a log is read first. What is found there is decided by reading: a peek only changes the order.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_MAX_BYTES = 1 << 16  # the newest of a file
_MAX_FILES = 1 << 16  # that are remembered

# A number as text, as W&B, JSONL and consoles write it; and as TensorBoard does, which is little-endian: the
# quiet NaN and the infinities of IEEE 754, of 32 and of 64 bits.
_ILL = re.compile(
    rb"\b(?:[Nn][Aa][Nn]|[Ii]nf(?:inity)?)\b"
    rb"|\0\0[\x80\xc0][\x7f\xff]|\0{6}[\xf0\xf8][\x7f\xff]"
)


class NonFiniteScan:
    """Remembers how far it has seen each file, and whether the last bytes were ill."""

    def __init__(self) -> None:
        self._seen: dict[Path, tuple[int, bool]] = {}

    def found(self, changed: Iterable[Path]) -> Iterator[Path]:
        """Yield the files among those that changed whose newest bytes are ill and whose bytes before were
        not.

        A log that is ill all the time has no preference, so it keeps nobody waiting.
        """
        if len(self._seen) > _MAX_FILES:
            self._seen.clear()
        for path in changed:
            size, before = self._seen.get(path, (0, False))
            try:
                newest, end = _since(path, size)
            except OSError:  # gone, a directory, or not for us
                self._seen.pop(path, None)
                continue
            if newest:
                now = _ILL.search(newest) is not None
                self._seen[path] = end, now
                if now and not before:
                    yield path


def _since(path: Path, begin: int) -> tuple[bytes, int]:
    """Return the bytes of a file from there on, at most the newest, and its size. Raises OSError."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        size = os.fstat(file).st_size
        begin = begin if begin <= size else 0  # written anew
        begin = max(begin, size - _MAX_BYTES)
        return os.pread(file, size - begin, begin), size
    finally:
        os.close(file)
