"""Finds where the numbers lie in TensorBoard events, so that protobuf need not read events one by one.

Nearly all events of one length differ only in their *holes*: the wall time, the step and the values. The rest
of an event is its *skeleton*, which says which tags it has. The offsets of the holes are not assumed but
proved for each skeleton: other bytes are put into the holes, and protobuf must then read the same numbers as
the fast way does.

The process remembers what it proved, because the runs of one project log the same tags.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from struct import Struct
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.sources.tensorboard.tfrecord import MAX_ROW
from sentinel.sources.tensorboard.values import Values, values

WORTH_A_PROOF = 8
"""Events of one kind. Fewer are read with protobuf, because a proof costs more than it saves."""

_TIME = 1  # offset in an event whose fields have the usual order
_STEP = 10  # likewise
_STEP_FIELD = b"\x10"  # the byte before the step
_MAX_SKELETONS = 1 << 13  # remembered; with MAX_ROW this bounds the memory to some 16 MB
_PROBES = (np.arange(3 * MAX_ROW).reshape(3, -1) * 37 % 61 + 2).astype(np.uint8)  # no NaN, no zero
_FLOAT_CODES = {"<f4": "f", "<f8": "d"}


@dataclass(frozen=True)
class Layout:
    """The offsets of the holes in events of one length. All values have 4 bytes, or all have 8."""

    width: int  # bytes of the event
    step_bytes: int  # 0 where the event has no step, which stands for step 0
    value_offsets: tuple[int, ...]  # offsets of the values
    kind: str
    proved: dict[int, tuple[str, ...]] = field(default_factory=dict, compare=False)
    """Tags by skeleton. The skeleton is the event, with its holes blanked, as a little-endian integer."""

    @cached_property
    def mask(self) -> NDArray[np.uint8]:
        """The bits outside the holes. A bit that ends a varint counts as outside."""
        mask = np.full(self.width, 0xFF, np.uint8)
        mask[_TIME : _TIME + 8] = 0
        mask[_STEP : _STEP + self.step_bytes] = 0x80
        for offset in self.value_offsets:
            mask[offset : offset + np.dtype(self.kind).itemsize] = 0
        return mask

    @cached_property
    def bits(self) -> int:
        """The mask as a little-endian integer."""
        return int.from_bytes(self.mask.tobytes(), "little")

    @cached_property
    def _struct(self) -> Struct:
        """Wall time and values; it does not know varints."""
        ends = [_TIME + 8, *(offset + np.dtype(self.kind).itemsize for offset in self.value_offsets)]
        gaps = [offset - end for offset, end in zip(self.value_offsets, ends, strict=False)]
        return Struct(f"<{_TIME}xd" + "".join(f"{gap}x{_FLOAT_CODES[self.kind]}" for gap in gaps))

    def read(self, rows: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]:
        """Return step and wall time of every row, and its values, a row each."""
        step = np.zeros(len(rows), np.int64)
        for i in range(self.step_bytes):
            step |= (rows[:, _STEP + i] & 0x7F).astype(np.int64) << 7 * i
        columns = [_column(rows, offset, self.kind) for offset in self.value_offsets]
        return step, _column(rows, _TIME, "<f8"), np.stack(columns, axis=1)

    def read_one(self, record: bytes) -> tuple[int, float, Sequence[float]]:
        """Return what ``read`` gives for one row. It costs less for a few rows."""
        step = 0
        for i in range(self.step_bytes):
            step |= (record[_STEP + i] & 0x7F) << 7 * i
        if self.step_bytes == 10:  # all 64 bits, of which the highest is the sign
            step = (step & (1 << 64) - 1 ^ 1 << 63) - (1 << 63)
        time, *numbers = self._struct.unpack_from(record)
        return step, time, numbers

    def tags(self, record: bytes) -> tuple[str, ...] | None:
        """Return the tags of a record; None if its holes lie elsewhere."""
        skeleton = int.from_bytes(record, "little") & self.bits
        if skeleton not in self.proved:
            shared = np.frombuffer(record, np.uint8) & self.mask
            rows = shared | _PROBES[:, : self.width] & ~self.mask
            fields = zip(*(column.tolist() for column in self.read(rows)), strict=True)
            events = [values(bytes(row)) for row in rows]
            tags = events[0].tags if events[0] else ()
            if events != [(tags, step, time, tuple(numbers)) for step, time, numbers in fields]:
                return None
            _remember(self, skeleton, tags)
        return self.proved[skeleton]


class _EventsOfLength(msgspec.Struct):
    """What is known of events of one length."""

    layouts: list[Layout] = msgspec.field(default_factory=list)
    unknown: int = 0  # events since a proof was tried
    due: int = WORTH_A_PROOF  # and when the next one is


_events_by_length: dict[int, _EventsOfLength] = {}  # by length


def find_layout(record: bytes) -> Layout | None:
    """Return where the holes of this record are; None if its values are not scalars in one usual form."""
    events = _events_by_length.get(len(record))
    for layout in events.layouts if events else ():
        if layout.tags(record) is not None:
            return layout
    event = values(record)
    if event is None or not event.tags:
        return None
    step_bytes = 0
    if record[_STEP - 1 : _STEP] == _STEP_FIELD:  # a varint, which ends with the first byte below 0x80
        step_bytes = next((count for count, byte in enumerate(record[_STEP:], 1) if byte < 0x80), 0)
    for kind in _FLOAT_CODES:
        value_offsets = _value_offsets(record, event, kind, _STEP + step_bytes)
        if value_offsets is not None:
            layout = Layout(len(record), step_bytes, value_offsets, kind)
            if layout.tags(record) is not None:
                return layout
    return None


def recognise(record: bytes) -> tuple[Layout, tuple[str, ...]] | None:
    """Return the layout and the tags of a record; None if no layout is proved for its kind.

    A kind is proved as soon as enough of its records have come.
    """
    events = _events_by_length.get(len(record))
    if events is None:
        if len(record) > MAX_ROW:
            return None
        events = _events_by_length.setdefault(len(record), _EventsOfLength())
    event = int.from_bytes(record, "little")
    for layout in events.layouts:
        tags = layout.proved.get(event & layout.bits)
        if tags is not None:
            return layout, tags
    events.unknown += 1
    if events.unknown >= events.due:
        events.unknown = 0
        if find_layout(record) is None:
            events.due *= 2  # a layout that cannot be proved is tried less and less often
    return None


def _value_offsets(record: bytes, event: Values, kind: str, begin: int) -> tuple[int, ...] | None:
    """Return the offsets of the values: those where protobuf reads another number that is put there."""
    value_offsets: list[int] = []
    with np.errstate(over="ignore"):
        contents = [content.tobytes() for content in np.array(event.values, kind)]
    for i, content in enumerate(contents):
        offset = record.find(content, begin)
        while offset >= 0 and not _is_value(record, event, i, offset, kind):
            offset = record.find(content, offset + 1)
        if offset < 0:
            return None
        value_offsets.append(offset)
        begin = offset + len(content)
    return tuple(value_offsets)


def _is_value(record: bytes, event: Values, i: int, offset: int, kind: str) -> bool:
    other = 1.5 if event.values[i] != 1.5 else 2.5
    content = np.array(other, kind).tobytes()
    changed = values(record[:offset] + content + record[offset + len(content) :])
    expected = event._replace(values=(*event.values[:i], other, *event.values[i + 1 :]))
    return repr(changed) == repr(expected)  # NaN is NaN here


def _remember(layout: Layout, skeleton: int, tags: tuple[str, ...]) -> None:
    if (
        sum(len(old.proved) for events in _events_by_length.values() for old in events.layouts)
        >= _MAX_SKELETONS
    ):
        for old in (old for events in _events_by_length.values() for old in events.layouts):
            old.proved.clear()
        _events_by_length.clear()
    events = _events_by_length.setdefault(layout.width, _EventsOfLength())
    if layout not in events.layouts:
        events.layouts.append(layout)
    layout.proved[skeleton] = tags


def _column(rows: NDArray[np.uint8], offset: int, kind: str) -> NDArray[Any]:
    """Return the numbers that begin at ``offset`` of every row."""
    return np.ndarray(len(rows), kind, rows, offset, rows.strides[:1])
