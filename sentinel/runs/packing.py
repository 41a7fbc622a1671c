"""Encodes the state of a run, which may hold arrays."""

from typing import Any

import msgspec
import numpy as np


def packed(state: dict[str, Any]) -> bytes:
    """Encode a state that may hold arrays. Raises TypeError for any other type."""
    return _ENCODER.encode(state)


def unpacked(state: bytes) -> dict[str, Any]:
    """Undo `packed`. Raises msgspec.DecodeError for bytes that it did not make."""
    found = msgspec.msgpack.decode(state, ext_hook=_array)
    if not isinstance(found, dict):
        raise msgspec.DecodeError("no state of a run")
    return found


_ARRAY = 1  # msgpack extension code


def _extension(thing: Any) -> Any:
    if isinstance(thing, np.ndarray):
        parts = [thing.dtype.str, thing.shape, thing.tobytes()]
        return msgspec.msgpack.Ext(_ARRAY, msgspec.msgpack.encode(parts))
    raise TypeError(f"{type(thing).__name__} is no part of a run's state")


def _array(code: int, data: memoryview) -> Any:
    if code != _ARRAY:
        raise msgspec.DecodeError(f"unknown extension {code}")
    kind, shape, content = msgspec.msgpack.decode(data)
    return np.frombuffer(content, dtype=kind).reshape(shape).copy()


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_extension)
