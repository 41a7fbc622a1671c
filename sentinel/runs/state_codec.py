"""Encodes the state of a run, which may hold arrays, in few bytes."""

import lzma
import zlib
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from sentinel.series.history import SeriesHistory


def packed(state: dict[str, Any], *, lasting: bool = False) -> bytes:
    """Encode a state that may hold arrays. Raises TypeError for any other type.

    A ``lasting`` state, which is seldom written again, takes about half the space and four times as long. Its
    detectors hold the same rows, further apart than zlib looks for repeats.
    """
    content = _ENCODER.encode(state)
    # Higher levels of either cost far more than they save.
    return lzma.compress(content, preset=0) if lasting else zlib.compress(content, 1)


def unpacked(state: bytes) -> dict[str, Any]:
    """Undo `packed`. Raises msgspec.DecodeError for bytes that it did not make."""
    decompress = _DECOMPRESSORS.get(state[:1])
    if decompress is None:
        raise msgspec.DecodeError("no state of a run")
    try:
        content = decompress(state)
    except (zlib.error, lzma.LZMAError) as error:
        raise msgspec.DecodeError(f"no state of a run: {error}") from None
    restored = msgspec.msgpack.decode(content, ext_hook=_restored_array)
    if not isinstance(restored, dict):
        raise msgspec.DecodeError("no state of a run")
    return restored


_DECOMPRESSORS: dict[bytes, Callable[[bytes], bytes]] = {b"\x78": zlib.decompress, b"\xfd": lzma.decompress}
"""By the first byte of what `packed` made."""

_ARRAY = 1  # msgpack extension code


def _extension(value: Any) -> Any:
    """Encode an array or the history of a series. Raises TypeError for any other type."""
    if isinstance(value, SeriesHistory):
        return value.dump()
    if isinstance(value, np.ndarray):
        parts = [value.dtype.str, value.shape, _sorted_bytes(value)]
        return msgspec.msgpack.Ext(_ARRAY, msgspec.msgpack.encode(parts))
    raise TypeError(f"{type(value).__name__} is no part of a run's state")


def _restored_array(code: int, data: memoryview) -> Any:
    """Undo `_extension`."""
    if code != _ARRAY:
        raise msgspec.DecodeError(f"unknown extension {code}")
    dtype, shape, content = msgspec.msgpack.decode(data)
    rows = np.frombuffer(content, np.uint8).reshape(np.dtype(dtype).itemsize, -1).T.tobytes()
    return np.frombuffer(rows, dtype=dtype).reshape(shape[::-1]).T.copy()


def _sorted_bytes(array: np.ndarray[Any, Any]) -> bytes:
    """Return the content by columns: the first byte of every number, then the second ones.

    Neighbours in a column mostly share their sign, exponent and high digits. So these bytes repeat, and the
    compressed state is half as long as one of numbers in their usual form.
    """
    columns = np.frombuffer(array.T.tobytes(), np.uint8)
    return columns.reshape(-1, array.itemsize).T.tobytes()


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_extension)
