"""Reads what agents ask, such that half a surrogate pair, which no text can hold, costs nobody an answer."""

import io
import re
from typing import BinaryIO

from sentinel.common.lazy_pattern import lazy_pattern

_ESCAPE = lazy_pattern(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>u[dD][89a-fA-F]..)|.)", re.DOTALL)
_REPLACEMENT = rb"\ufffd"


def whole(line: bytes) -> bytes:
    """Return a line of JSON with a replacement character for each half of a surrogate pair."""
    return _ESCAPE.sub(lambda escape: _REPLACEMENT if escape["half"] else escape[0], line)


class WholeText(io.RawIOBase):
    """Lines of JSON from a binary file, whole."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._rest = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer
        """Read a part of a line."""
        if not self._rest:
            self._rest = whole(self._file.readline())
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
