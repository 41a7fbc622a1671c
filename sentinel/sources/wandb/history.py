"""Reads the numbers in W&B's history records. Each record holds what was logged at one step.

A record has one message for each item. The first fields of an item hold its name, the last one its value as
JSON. The keys of nested dictionaries are joined with dots, as W&B shows them.

wandb orders the items differently in each record. So numpy walks through the records side by side: it reads
the first item of all records at once, then the second, and so on. Protobuf reads records that are too few for
this, and records with an item of another form.
"""

import math
import sys
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import orjson
from numpy.typing import NDArray

from sentinel.sources.readers.plain import JSON, plain_text
from sentinel.sources.wandb.messages import item_name, item_values, message_type, name_in, parsed

_ITEM = 0x0A  # field of a HistoryRecord
_KEY = 0x0A  # field of a HistoryItem
_NESTED_KEY = 0x12  # likewise
_STEP_FIELD = 0x12  # field of a HistoryRecord, after its items
_STEP_NUMBER = 0x08  # field of a HistoryStep
_MAX_STEP_BYTES = 11  # of a HistoryStep: its field, and a number of 64 bits
_VALUE_JSON = (0x82, 0x01)  # likewise
_SPARE = bytes(8)  # follows the last record, so that reading ahead stays within the bytes
_NO_LENGTH = 1 << 40  # bytes, more than a record can have
_WORTH_A_WALK = 16  # records; fewer are read faster one by one
_MAX_NAMES_COMPARED = 64  # of one length that are compared at once; further ones are looked up one by one

_NUMBER_SIGNS = tuple("-0123456789")  # of which one begins a number
_BEGINS_NUMBER = np.isin(np.arange(256), list(map(ord, _NUMBER_SIGNS)))
_BEGINS_OTHER = np.isin(np.arange(256), list(b'-NI"{'))  # -Infinity, NaN, Infinity, a text, an object
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NO_JSON = "a history record holds something that is not JSON"
_LAST_CHARACTER = chr(sys.maxunicode)  # behind every other character
_MEDIA = "_type"  # key that marks images, tables and the like, which hold no metrics
_MAX_DEPTH = 16  # levels of nesting; what lies deeper is no metric either

_Array = NDArray[np.int64]


class Numbers(msgspec.Struct, frozen=True, dict=True):
    """The numbers in some records, in the order of the log. The arrays have one entry for each number."""

    names: Sequence[str]
    name: _Array  # index into names
    row: _Array  # which record
    value: NDArray[np.float64]

    def by_row(self, name: str, rows: int) -> NDArray[np.float64]:
        """Return the number of this name in each of ``rows`` records; NaN for a record without it."""
        values = np.full(rows, np.nan)
        if (index := self.index.get(name)) is not None:
            at = self._groups.of(index)
            values[self.row[at]] = self.value[at]
        return values

    @cached_property
    def index(self) -> dict[str, int]:
        """The index of each name in ``names``."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def _groups(self) -> "Groups":
        return Groups(self.name)


class Groups:
    """The indices of each of the values 0, 1, 2 and so on in an array."""

    def __init__(self, values: _Array) -> None:
        self._order = np.argsort(values, kind="stable")
        self._starts = np.cumsum([0, *np.bincount(values).tolist()])

    def of(self, value: int) -> _Array:
        """Return the indices of a value, in order."""
        if value + 1 >= len(self._starts):
            return self._order[:0]
        return self._order[self._starts[value] : self._starts[value + 1]]


def read_history(records: Sequence[bytes]) -> Numbers:
    """Return every number in some serialised ``HistoryRecord`` messages.

    Raises ValueError or google.protobuf.message.DecodeError if an item is invalid.
    """
    if len(records) < _WORTH_A_WALK:
        leaves = _Leaves({})
        for i, record in enumerate(records):
            leaves.add_record(i, i, record)
        return leaves.numbers()
    text = b"".join([*records, _SPARE])
    data = np.frombuffer(text, np.uint8)
    bounds = np.cumsum([0, *map(len, records)])
    row, begin, end, odd = _items(data, bounds)
    name_end, value = _fields(data, begin, end)
    odd[row[value < 0]] = True
    odd[row[_beyond_ascii(data, value, end)]] = True
    number = ~odd[row] & _BEGINS_NUMBER[data[value]] & (data[value + 1] != ord("I"))
    other = ~odd[row] & ~number & _BEGINS_OTHER[data[value]]
    ids: dict[str, int] = {}

    leaves = _Leaves(ids)
    for i in np.flatnonzero(other).tolist():
        name = name_in(text[begin[i] : name_end[i]])
        value_json = text[value[i] : end[i]]
        leaves.add(begin[i], row[i], name, parsed(value_json))
    for i in np.flatnonzero(odd).tolist():
        leaves.add_record(bounds[i], i, records[i])

    begin, name_end, value, end, row = (a[number] for a in (begin, name_end, value, end, row))
    plain = (begin, row, _ids_of(text, begin, name_end, ids), _floats(data, value, end))
    columns = [np.concatenate(pair) for pair in zip(plain, leaves.columns(), strict=True)]
    order = np.argsort(columns[0], kind="stable")
    row, which, numbers = (column[order] for column in columns[1:])
    metric = leaves.no_media(which, row)
    return Numbers(list(ids), which[metric], row[metric], numbers[metric])


def numbers_in(rows: Sequence[Mapping[str, Any]]) -> Numbers:
    """Return every number in rows of history from W&B's server, in which the names have no order."""
    leaves = _Leaves({})
    for i, items in enumerate(rows):
        for key in sorted(items):
            leaves.add(0, i, plain_text(key), items[key])
    return leaves.numbers()


class _Leaves:
    """Numbers that are read one by one: in nested objects, in texts such as "NaN", in unusual items."""

    def __init__(self, ids: dict[str, int]) -> None:
        self._ids = ids  # index by name, of all numbers
        self._found: list[tuple[int, int, int, float]] = []
        self._media: dict[str, list[int]] = {}  # rows by what the names of the parts begin with

    def add(self, offset: int, row: int, name: str, value: Any, level: int = 1) -> None:
        """Add the numbers in a JSON value."""
        if isinstance(value, str):
            if name.endswith(f".{_MEDIA}"):
                self._media.setdefault(name.removesuffix(_MEDIA), []).append(row)
            value = _NOT_FINITE.get(value)
        if type(value) in (float, int) and name:
            self._found.append((offset, row, self._ids.setdefault(name, len(self._ids)), float(value)))
        elif isinstance(value, dict) and _MEDIA not in value and level < _MAX_DEPTH:
            for key, part in value.items():
                self.add(offset, row, f"{name}.{plain_text(key)}", part, level + 1)

    def add_record(self, offset: int, row: int, record: bytes) -> None:
        """Add the numbers in a serialised ``HistoryRecord``. Raises like `read_history`."""
        items = message_type("HistoryRecord").FromString(record).item
        for item, value in zip(items, item_values(items), strict=True):
            if value is None and item.value_json.startswith(_NUMBER_SIGNS):
                raise ValueError(_NO_JSON)
            self.add(offset, row, item_name(item), value)

    def numbers(self) -> Numbers:
        """Return all of them, in the order in which they were found."""
        _, row, name, value = self.columns()
        metric = self.no_media(name, row)
        return Numbers(list(self._ids), name[metric], row[metric], value[metric])

    def columns(self) -> tuple[NDArray[Any], ...]:
        """Return offsets in the log, rows, names and values."""
        offset, row, name, value = zip(*self._found, strict=True) if self._found else ((),) * 4
        integers = (np.array(column, np.int64) for column in (offset, row, name))
        return *integers, np.array(value, np.float64)

    def no_media(self, name: _Array, row: _Array) -> NDArray[np.bool_]:
        """Return which of the numbers with this name in this row are no part of an image or the like."""
        metric = np.ones(len(name), np.bool_)
        if not self._media:
            return metric
        names = sorted(self._ids)
        groups = Groups(name)
        for prefix, rows in self._media.items():
            for part in names[bisect_left(names, prefix) : bisect_left(names, prefix + _LAST_CHARACTER)]:
                at = groups.of(self._ids[part])
                metric[at] &= ~np.isin(row[at], rows)
        return metric


def _items(data: NDArray[np.uint8], bounds: _Array) -> tuple[NDArray[Any], ...]:
    """Return each item's row, begin and end, and which records have an item of unusual length."""
    ends = bounds[1:]
    odd = np.zeros(len(ends), np.bool_)
    row = np.arange(len(ends))
    at = bounds[:-1]
    spans = [(row[:0], at[:0], at[:0])]
    while len(row):
        more = (at < ends[row]) & (data[at] == _ITEM)
        odd[row[~more]] = ~_ends_well(data, at[~more], ends[row[~more]])
        row = row[more]
        at = at[more]
        length, begin = _varint(data, at + 1)
        end = begin + length
        sound = end <= ends[row]
        if not sound.all():
            odd[row[~sound]] = True
            row = row[sound]
            begin = begin[sound]
            end = end[sound]
        spans.append((row, begin, end))
        at = end
    return *map(np.concatenate, zip(*spans, strict=True)), odd


def _ends_well(data: NDArray[np.uint8], at: _Array, end: _Array) -> NDArray[np.bool_]:
    """Return whether nothing follows the last item of a record but its step, as the library writes it."""
    size = data[at + 1].astype(np.int64)
    last = end - 1
    is_step: NDArray[np.bool_] = (data[at] == _STEP_FIELD) & (size > 1) & (size <= _MAX_STEP_BYTES)
    is_step &= at + 2 + size == end
    is_step &= (data[at + 2] == _STEP_NUMBER) & (data[last] < 0x80)
    for byte in range(3, _MAX_STEP_BYTES + 1):  # all but the last byte of a number say that it goes on
        is_step &= (at + byte >= last) | (data[np.minimum(at + byte, last)] >= 0x80)
    is_step |= (data[at] == _STEP_FIELD) & (size == 0) & (at + 2 == end)
    is_step |= at == end
    return is_step


def _beyond_ascii(data: NDArray[np.uint8], value: _Array, end: _Array) -> NDArray[np.bool_]:
    """Return which of the values hold other characters than those of ASCII, which may be no characters."""
    counts = np.concatenate([np.zeros(1, np.int64), np.cumsum(data >= 0x80)])
    return (value >= 0) & (counts[end] > counts[value])


def _fields(data: NDArray[np.uint8], begin: _Array, end: _Array) -> tuple[_Array, _Array]:
    """Return where each item's name ends and its value begins; -1 for a value of unusual form."""
    name_end = begin.copy()
    unfinished = np.arange(len(begin))
    while len(unfinished):
        at = name_end[unfinished]
        more = ((data[at] == _NESTED_KEY) | (data[at] == _KEY)) & (at < end[unfinished])
        unfinished = unfinished[more]
        at = at[more]
        length, text = _varint(data, at + 1)
        name_end[unfinished] = np.minimum(text + length, end[unfinished])
    length, value = _varint(data, name_end + 2)
    usual = (data[name_end] == _VALUE_JSON[0]) & (data[name_end + 1] == _VALUE_JSON[1])
    usual &= (value + length == end) & (length > 0) & (name_end > begin)
    return name_end, np.where(usual, value, -1)


def _varint(data: NDArray[np.uint8], at: _Array) -> tuple[_Array, _Array]:
    """Return the lengths at these offsets, and where they end; _NO_LENGTH for more than two bytes."""
    low = data[at].astype(np.int64)
    high = data[at + 1].astype(np.int64)
    long = low >= 0x80
    length = np.where(long, low & 0x7F | high << 7, low)
    length[long & (high >= 0x80)] = _NO_LENGTH
    return length, at + 1 + long


def _floats(data: NDArray[np.uint8], begin: _Array, end: _Array) -> NDArray[np.float64]:
    """Return the JSON numbers between these offsets. They are decoded together, as one list."""
    sizes = end - begin + 1  # with a comma
    ends = np.cumsum(sizes)
    characters = data[np.arange(sizes.sum()) + np.repeat(begin - (ends - sizes), sizes)]
    characters[ends - 1] = ord(",")
    text = b"[%b]" % characters[:-1].tobytes()
    try:
        numbers = orjson.loads(text)
    except orjson.JSONDecodeError:
        numbers = JSON.decode(text.decode())  # what is too large for a float becomes infinite
    if len(numbers) != len(begin):
        raise ValueError(_NO_JSON)
    return np.array(numbers, np.float64)


def _ids_of(text: bytes, begin: _Array, end: _Array, ids: dict[str, int]) -> _Array:
    """Return the index of each item's name in ``ids``, given its offset. New names are added to ``ids``."""
    indices = np.empty(len(begin), np.int64)
    lengths = end - begin
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        rest = np.flatnonzero(lengths == length)
        fields = np.ndarray((len(text) - length + 1,), f"V{length}", text, strides=(1,))[begin[rest]]
        for _ in range(min(_MAX_NAMES_COMPARED, len(rest))):
            same = fields == fields[0]
            indices[rest[same]] = ids.setdefault(name_in(fields[0].tobytes()), len(ids))
            rest = rest[~same]
            fields = fields[~same]
            if not len(rest):
                break
        indices[rest] = [ids.setdefault(name_in(name), len(ids)) for name in fields.tolist()]
    return indices
