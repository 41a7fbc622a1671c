"""What one TensorBoard event holds, read by protobuf: scalars, and the numbers that stand for histograms."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sentinel.sources.tensorboard.histograms import statistics

_HALF = 19  # DataType of 16 bits
_BFLOAT16 = 14  # DataType of the upper half of 32 bits
_ELEMENTS = {  # by DataType: what one element of a tensor is in its content, and the field it is in else
    1: ("<f4", "float_val"),
    2: ("<f8", "double_val"),
    3: ("<i4", "int_val"),
    4: ("u1", "int_val"),
    5: ("<i2", "int_val"),
    6: ("i1", "int_val"),
    9: ("<i8", "int64_val"),
    10: ("?", "bool_val"),
    _BFLOAT16: ("<f4", "half_val"),  # the upper half of a float
    17: ("<u2", "int_val"),
    _HALF: ("<f2", "half_val"),
    22: ("<u4", "uint32_val"),
    23: ("<u8", "uint64_val"),
}


class Values(NamedTuple):
    """The scalars of one event, in order: a value for each tag."""

    tags: tuple[str, ...]
    step: int
    time: float
    values: tuple[float, ...]


def values(record: bytes) -> Values | None:
    """Return an event's scalars and the statistics of its histograms; None if the record is no event."""
    event_type, decode_error = _protobuf()
    try:
        event = event_type.FromString(record)
    except decode_error:
        return None
    scalars: list[tuple[str, float]] = []
    for value in event.summary.value:
        number = _scalar(value)
        scalars += statistics(value) if number is None else [(value.tag, number)]
    tags, numbers = zip(*scalars, strict=True) if scalars else ((), ())
    return Values(tags, event.step, event.wall_time, numbers)


def _scalar(value: Any) -> float | None:
    """Return the number in a ``Summary.Value``; None if it is no scalar.

    Writers name the plugin only with the first value of a tag. So a single number in a tensor counts as a
    scalar unless another plugin is named.
    """
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return float(value.simple_value)
    if kind == "tensor" and value.metadata.plugin_data.plugin_name in ("", "scalars"):
        return _element(value.tensor)
    return None


def _element(tensor: Any) -> float | None:
    """Return the number in a ``TensorProto`` that holds only one."""
    if tensor.dtype not in _ELEMENTS or any(dim.size != 1 for dim in tensor.tensor_shape.dim):
        return None
    kind, field = _ELEMENTS[tensor.dtype]
    content = tensor.tensor_content
    if not content:
        typed = getattr(tensor, field)
        if len(typed) != 1:
            return None
        if field != "half_val":
            return float(typed[0])
        content = (typed[0] & 0xFFFF).to_bytes(2, "little")
    if tensor.dtype == _BFLOAT16:
        content = b"\0\0" + content
    return float(np.frombuffer(content, kind)[0]) if len(content) == np.dtype(kind).itemsize else None


@cache
def _protobuf() -> tuple[Any, type[Exception]]:
    """Return the ``Event`` message type and its error for other bytes. Both are slow to import."""
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.event_pb2 import Event

    return Event, DecodeError
