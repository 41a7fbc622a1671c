"""What the records of a TensorBoard event file mean: scalars, and the numbers that stand for histograms.

Protobuf reads any event, one at a time. Of many records of one length nearly all differ only in their
*holes*: wall time, step and value. Such records are sorted by the bytes outside the holes, exactly,
and the holes of all of them are read at once. Where the holes lie is not assumed but proved for each
different record: with other bytes in them, protobuf must read just what the reading at once makes of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentinel.sources.tensorboard_histograms import statistics
from sentinel.sources.tensorboard_settings import settings_in
from sentinel.sources.tfrecord import LONGEST_ROW, Frames, Problem, summed

_SAMPLES = (0.5, 0.1, 0.9, 0.3, 0.7, 0.0)  # where among the unknown records of a length to look for a layout
_WORTH_A_PROOF = 8  # records; fewer are read one by one
_TIME, _STEP = 1, 10  # offsets in an event whose fields have the usual order
_STEP_FIELD = b"\x10"
_MIX = np.random.default_rng(0).integers(1 << 32, size=LONGEST_ROW, dtype=np.uint32)
_PROBES = (np.arange(3 * LONGEST_ROW).reshape(3, -1) * 37 % 61 + 2).astype(np.uint8)  # no NaN, no zero

_HALF, _BFLOAT16 = 19, 14
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

_Point = tuple[str, int, float, float]  # tag, step, wall time, value


@dataclass(frozen=True)
class Points:
    """The scalars of some records, in order, with arrays as in `sentinel.sources.base.Chunk`.

    ``settings`` are the run's, each with the number of points that precede them.
    """

    tags: Sequence[str]
    tag: NDArray[np.uint32]
    step: NDArray[np.int64]
    time: NDArray[np.float64]
    value: NDArray[np.float64]
    settings: Sequence[tuple[int, Mapping[str, Any]]]
    problems: Sequence[Problem]


@dataclass(frozen=True)
class _Layout:
    """Where the holes of a record are. Its value is one float of 4 or 8 bytes."""

    step_bytes: int  # 0 where the event has no step, which stands for step 0
    value: int  # offset
    kind: str

    def mask(self, width: int) -> NDArray[np.uint8]:
        """The bits outside the holes. Those that end a varint are outside."""
        mask = np.full(width, 0xFF, np.uint8)
        mask[_TIME : _TIME + 8] = 0
        mask[_STEP : _STEP + self.step_bytes] = 0x80
        mask[self.value : self.value + np.dtype(self.kind).itemsize] = 0
        return mask

    def skeleton(self, record: bytes) -> bytes:
        """The record without what is in its holes."""
        return bytes(np.frombuffer(record, np.uint8) & self.mask(len(record)))

    def read(self, rows: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]:
        """Step, wall time and value of every row."""
        step = np.zeros(len(rows), np.int64)
        for i in range(self.step_bytes):
            step |= (rows[:, _STEP + i] & 0x7F).astype(np.int64) << 7 * i
        return step, _column(rows, _TIME, "<f8"), _column(rows, self.value, self.kind)


def decode(frames: Frames) -> Points:
    """Every scalar and setting in the records. A record that is no event becomes a problem and is skipped."""
    tags: dict[str, int] = {}
    parts = []
    single = list(frames.single)
    for group in frames.alike:
        number, rows = group.number, group.rows
        for place in _SAMPLES:
            if len(rows) < _WORTH_A_PROOF:
                break
            layout = _find_layout(bytes(rows[int(place * len(rows))]))
            if layout is None:
                continue
            names, which = _recognise(rows, group.varying, layout)
            known = which >= 0
            if not known.any():
                continue
            ids = np.array([tags.setdefault(name, len(tags)) for name in names], np.uint32)
            holes = layout.read(rows if known.all() else rows[known])
            parts.append((number[known], ids[which[known]], *holes))
            number, rows = number[~known], rows[~known]
        single += zip(number.tolist(), map(bytes, rows), strict=True)
    part, told, broken = _read_singly(single, tags)
    columns = [np.concatenate(column) for column in zip(part, *parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    number, tag, step, time, value = (column[order] for column in columns)
    settings = [(int(np.searchsorted(number, at)), config) for at, config in sorted(told.items())]
    time[time == 0] = np.nan  # protobuf's word for "not given"
    problems = summed(frames.starts[sorted(broken)], "record is not a TensorBoard event and was skipped")
    return Points(list(tags), tag, step, time, value.astype(np.float64), settings, problems)


def _recognise(
    rows: NDArray[np.uint8], varying: NDArray[np.bool_], layout: _Layout
) -> tuple[list[str], NDArray[np.int64]]:
    """Some tags, and for each row which of them it has, with its holes as in ``layout``; -1 if unknown."""
    mask = layout.mask(rows.shape[1])
    columns = np.flatnonzero(varying & (mask > 0))
    outside = rows[:, columns] & mask[columns]
    mixed = outside @ _MIX[columns] >> 16  # sorting 16 bits is fast; what they confuse is told apart below
    _, first, which, count = np.unique(
        mixed.astype(np.uint16), return_index=True, return_inverse=True, return_counts=True
    )
    names: list[str] = []
    places = np.full(len(first), -1)
    for i in np.flatnonzero(count >= _WORTH_A_PROOF):
        tag = _proved_tag(layout, layout.skeleton(bytes(rows[first[i]])))
        if tag is not None:
            places[i] = len(names)
            names.append(tag)
    equal = (outside == outside[first][which]).all(axis=1)
    return names, np.where(equal, places[which], -1)


def _find_layout(record: bytes) -> _Layout | None:
    """Where the holes of this record are; None if it is not one scalar in a usual form."""
    points = _points(record) or []
    if len(points) != 1:
        return None
    step_bytes = _varint_bytes(record[_STEP:]) if record[_STEP - 1 : _STEP] == _STEP_FIELD else 0
    for kind in ("<f4", "<f8"):
        with np.errstate(over="ignore"):
            value = np.array(points[0][-1], kind).tobytes()
        place = record.find(value)
        while place >= 0:
            layout = _Layout(step_bytes, place, kind)
            if _proved_tag(layout, layout.skeleton(record)) is not None:
                return layout
            place = record.find(value, place + 1)
    return None


@lru_cache(maxsize=1 << 14)
def _proved_tag(layout: _Layout, skeleton: bytes) -> str | None:
    """The tag of a record, given without what is in its holes; None if these are not its holes."""
    shared = np.frombuffer(skeleton, np.uint8)
    rows = shared | _PROBES[:, : len(shared)] & ~layout.mask(len(shared))
    read = zip(*(column.tolist() for column in layout.read(rows)), strict=True)
    found = [_points(bytes(row)) for row in rows]
    tag = found[0][0][0] if found[0] else None
    return tag if found == [[(tag, *holes)] for holes in read] else None


def _read_singly(
    records: Sequence[tuple[int, bytes]], tags: dict[str, int]
) -> tuple[tuple[NDArray[Any], ...], dict[int, Mapping[str, Any]], list[int]]:
    """Number, tag, step, time and value of the scalars; settings by number; numbers of what is no event."""
    broken: list[int] = []
    told: dict[int, Mapping[str, Any]] = {}
    found: list[tuple[float, ...]] = []
    for number, record in records:
        points = _points(record)
        if points is None:
            broken.append(number)
            continue
        if not points and (config := settings_in(record)):
            told[number] = config
        found += [(number, tags.setdefault(tag, len(tags)), *rest) for tag, *rest in points]
    columns = zip(*found, strict=True) if found else [()] * 5
    kinds = (np.int64, np.uint32, np.int64, np.float64, np.float64)
    return tuple(np.array(c, k) for c, k in zip(columns, kinds, strict=True)), told, broken


def _points(record: bytes) -> list[_Point] | None:
    """The scalars of one event and the statistics of its histograms; None if the record is no event."""
    event_type, decode_error = _protobuf()
    try:
        event = event_type.FromString(record)
    except decode_error:
        return None
    points: list[_Point] = []
    for value in event.summary.value:
        number = _number(value)
        found = statistics(value) if number is None else [(value.tag, number)]
        points += [(tag, event.step, event.wall_time, n) for tag, n in found]
    return points


def _number(value: Any) -> float | None:
    """What a ``Summary.Value`` holds, if it is a scalar.

    Writers name the plugin with the first value of a tag only, so a single number in a tensor counts
    unless another plugin claims it.
    """
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return float(value.simple_value)
    if kind == "tensor" and value.metadata.plugin_data.plugin_name in ("", "scalars"):
        return _element(value.tensor)
    return None


def _element(tensor: Any) -> float | None:
    """The number in a ``TensorProto`` that holds just one."""
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


def _varint_bytes(data: bytes) -> int:
    return next((i for i, byte in enumerate(data, 1) if byte < 0x80), 0)


def _column(rows: NDArray[np.uint8], offset: int, kind: str) -> NDArray[Any]:
    """The numbers that begin at ``offset`` of every row."""
    return np.ndarray(len(rows), kind, rows, offset, rows.strides[:1])


@cache
def _protobuf() -> tuple[Any, type[Exception]]:
    """The ``Event`` message type, and what it raises for bytes that are none; slow to import."""
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.event_pb2 import Event

    return Event, DecodeError
