"""What is read at once must be what protobuf reads."""

import json
import math

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from wandb.proto.wandb_internal_pb2 import HistoryItem, HistoryRecord

from sentinel.sources.wandb.history import _Leaves, read_history

MANY = 16
"""Times the records; so many are walked side by side."""

NAMES = st.one_of(st.sampled_from(["loss", "lr", "_step", "train/loss"]), st.text(min_size=1, max_size=300))
NUMBERS = st.one_of(st.floats(), st.integers(), st.just(10**400))
VALUES = st.one_of(
    NUMBERS,
    st.text("xyz", max_size=4),
    st.none(),
    st.booleans(),
    st.lists(st.integers(), max_size=2),
    st.just("x" * 17_000),  # its length takes three bytes
)
ITEMS = st.builds(
    lambda path, value, nested: HistoryItem(
        **({"nested_key": path} if nested else {"key": path[0]}), value_json=json.dumps(value)
    ),
    st.lists(NAMES, min_size=1, max_size=3),
    VALUES,
    st.booleans(),
)
RECORDS = st.lists(st.builds(HistoryRecord, item=st.lists(ITEMS, max_size=8)), max_size=6)


def read(*records):
    """Row, name and value as text, so that NaN equals NaN."""
    numbers = read_history([record.SerializeToString() for record in records])
    names = [numbers.names[i] for i in numbers.name]
    return list(zip(numbers.row.tolist(), names, map(str, numbers.value.tolist()), strict=True))


def record(*items):
    return HistoryRecord(item=[HistoryItem(**item) for item in items])


@pytest.mark.long  # many examples
@given(RECORDS)
def test_every_number_of_any_records(records):
    expected = []
    for row, one in enumerate(records):
        for item in one.item:
            value = json.loads(item.value_json, parse_int=float)
            if isinstance(value, float):
                expected.append((row, item.key or ".".join(item.nested_key), str(value)))
    assert read(*records) == expected
    assert read(*records * MANY) == [
        (n * len(records) + row, name, value) for n in range(MANY) for row, name, value in expected
    ]


def test_more_names_of_one_length_than_are_looked_for_at_once():
    items = [{"key": f"{i:04}", "value_json": str(i)} for i in range(500)]
    assert read(record(*items), record(*items[::-1]))[:500] == [(0, f"{i:04}", f"{i}.0") for i in range(500)]


def test_nested_values():
    nested = {"b": 1, "c": {"d": math.nan, "text": "x", "flag": True}, "e.f": "-Infinity"}
    item = {"key": "a", "value_json": json.dumps(nested)}
    assert read(record(item)) == [(0, "a.b", "1.0"), (0, "a.c.d", "nan"), (0, "a.e.f", "-inf")]


def test_the_other_kinds_of_value():
    items = [
        {"key": "integer", "integer": -3},
        {"key": "number", "number": 0.5},
        {"key": "json", "json": '{"a": 2}'},
        {"key": "text", "text": "NaN"},
        {"key": "flag", "boolean": True},
        {"value_json": "1"},
        {"key": "usual", "value_json": "7"},
    ]
    expected = {"integer": "-3.0", "number": "0.5", "json.a": "2.0", "text": "nan", "usual": "7.0"}
    assert read(record(*items)) == [(0, name, value) for name, value in expected.items()]


def test_parts_of_media_are_no_metrics():
    image = {"_type": "image-file", "width": 28, "size": 900}
    whole = {"key": "image", "value_json": json.dumps(image)}
    parts = [{"nested_key": ["image", k], "value_json": json.dumps(v)} for k, v in image.items()]
    number = {"nested_key": ["image", "size"], "value_json": "3"}
    loss = {"key": "loss", "value_json": "1.5"}
    expected = [(0, "loss", "1.5"), (1, "loss", "1.5"), (2, "image.size", "3.0")]
    assert read(record(whole, loss), record(*parts[::-1], loss), record(number)) == expected


def test_deep_nesting():
    text = '{"a":' * 5000 + "1" + "}" * 5000
    assert read(record({"key": "a", "value_json": text}, {"key": "b", "value_json": "1"})) == [
        (0, "b", "1.0")
    ]


def test_half_a_surrogate_pair():
    assert read(record({"key": "a", "value_json": r'{"\ud800": 1}'})) == [(0, "a.?", "1.0")]


@pytest.mark.parametrize("text", ["-", "1.2.3", "1,2", "0x10"])
def test_what_is_no_json(text):
    with pytest.raises(ValueError, match=r"JSON|delimiter|Expecting"):
        read(record({"key": "a", "value_json": text}))


@pytest.mark.slow
@given(st.lists(st.binary(max_size=40), max_size=4))
def test_any_bytes_are_read_alike_in_few_records_and_in_many(records):
    few = read_or_none(records)
    if few is None:
        assert read_or_none(records * MANY) is None
    else:
        count = len(records)
        assert {row for row, _, _ in few} <= {*range(count)}
        many = [(n * count + row, name, value) for n in range(MANY) for row, name, value in few]
        assert read_or_none(records * MANY) == many


SOUND = HistoryRecord(item=[HistoryItem(nested_key=["a"], value_json="1.5")])
ENDS = [
    b"",
    b"\x12\x00",
    b"\x12\x02\x08\x07",
    b"\x12\x03\x08\x80\x01",
    b"\x12\x02\x08\x80",
    b"\x12\x01\x08",
    b"\xff",
]
ENDS += [
    b"\x12\x05\x08\x07\x08\x07",
    b"\x0b",
    b"\x00",
    b"\x12\x0b\x08" + b"\xff" * 9 + b"\x01",
    b"\x12\x04\x08\xff",
]
VALUES_OF_BYTES = [b"\xff", b'"\xff"', b"[\xff]", b"true\xff", b'{"b": "\xc3\xa9"}', b"1\xff", b"tru", b"1.5"]


@pytest.mark.parametrize("end", ENDS)
def test_what_follows_the_items_is_read_alike_in_few_records_and_in_many(end):
    record = SOUND.SerializeToString() + end
    few = read_or_none([record])
    many = read_or_none([record] * MANY)
    assert many == (few and [(n, name, value) for n in range(MANY) for _, name, value in few])


@pytest.mark.parametrize("value", VALUES_OF_BYTES)
def test_values_of_any_bytes_are_read_alike_in_few_records_and_in_many(value):
    placeholder = "x" * len(value)
    other = HistoryItem(nested_key=["c"], value_json="2")
    record = HistoryRecord(item=[HistoryItem(nested_key=["a"], value_json=placeholder), other])
    record = record.SerializeToString().replace(placeholder.encode(), value)
    few = read_or_none([record])
    many = read_or_none([record] * MANY)
    assert many == (few and [(n, name, value) for n in range(MANY) for _, name, value in few])


def read_or_none(records):
    try:
        numbers = read_history(records)
    except (ValueError, DecodeError):
        return None
    names = [numbers.names[i] for i in numbers.name]
    return list(zip(numbers.row.tolist(), names, map(str, numbers.value.tolist()), strict=True))


@pytest.mark.long
@given(
    rows=st.lists(st.dictionaries(st.sampled_from(["a", "a.b", "a.b.c", "a.c", "b", "ab"]), st.booleans()))
)
def test_parts_of_media_are_left_out(rows):
    """What one part of an image is told by holds for its row, and for what is nested below it."""
    leaves = _Leaves({})
    expected = []
    for i, row in enumerate(rows):
        media = [f"{name}." for name, is_media in row.items() if is_media]
        for name in (f"{prefix}_type" for prefix in media):
            leaves.add(0, i, name, "image-file")
        for name in row:
            leaves.add(0, i, f"{name}.x", 1.0)
            if not any(f"{name}.x".startswith(prefix) for prefix in media):
                expected.append((f"{name}.x", i))
    numbers = leaves.numbers()
    found = [(numbers.names[n], r) for n, r in zip(numbers.name.tolist(), numbers.row.tolist(), strict=True)]
    assert found == expected
