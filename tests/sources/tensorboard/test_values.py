"""Which values of an event are scalars, in all their forms, and which events are none."""

import math
import struct

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

from tests.sources.tensorboard.writer import (
    NAME,
    SCALARS,
    SHAPELESS,
    TEXT,
    VERSION,
    WORDS,
    event,
    read,
    record,
    scalar,
    tensor,
)

IMAGE = Summary.Value(tag="sample", image=Summary.Image(encoded_image_string=b"x" * 3000))


@pytest.fixture
def log(tmp_path):
    return tmp_path / NAME


@pytest.mark.parametrize(
    "value",
    [
        Summary.Value(tag="a", simple_value=1.5),
        Summary.Value(tag="a", simple_value=1.5, metadata=SCALARS),
        tensor("a", dtype="DT_FLOAT", float_val=[1.5]),
        tensor("a", dtype="DT_DOUBLE", double_val=[1.5]),
        tensor("a", dtype="DT_FLOAT", tensor_shape=SHAPELESS, tensor_content=struct.pack("<f", 1.5)),
        tensor("a", dtype="DT_DOUBLE", tensor_shape=SHAPELESS, tensor_content=struct.pack("<d", 1.5)),
        tensor("a", dtype="DT_HALF", half_val=[0x3E00]),
        tensor("a", dtype="DT_HALF", tensor_content=struct.pack("<e", 1.5)),
        tensor("a", dtype="DT_BFLOAT16", half_val=[0x3FC0]),
        tensor("a", dtype="DT_BFLOAT16", tensor_content=b"\xc0\x3f"),
        tensor("a", metadata=None, dtype="DT_FLOAT", float_val=[1.5]),
        tensor("a", dtype="DT_FLOAT", float_val=[1.5], tensor_shape={"dim": [{"size": 1}]}),
    ],
)
def test_forms_of_a_float(log, value):
    assert read(log, event(value, step=3)).points == [("a", 3, "1.5")]
    assert len(read(log, *[event(value, step=i) for i in range(300)]).points) == 300


@pytest.mark.parametrize(
    ("fields", "number"),
    [
        ({"dtype": "DT_INT32", "int_val": [-7]}, -7),
        ({"dtype": "DT_INT32", "tensor_content": struct.pack("<i", -7)}, -7),
        ({"dtype": "DT_INT64", "int64_val": [1 << 40]}, 1 << 40),
        ({"dtype": "DT_INT64", "tensor_content": struct.pack("<q", -(1 << 40))}, -(1 << 40)),
        ({"dtype": "DT_INT16", "int_val": [-7]}, -7),
        ({"dtype": "DT_INT8", "tensor_content": b"\xf9"}, -7),
        ({"dtype": "DT_UINT8", "tensor_content": b"\xf9"}, 249),
        ({"dtype": "DT_UINT16", "int_val": [65535]}, 65535),
        ({"dtype": "DT_UINT32", "uint32_val": [7]}, 7),
        ({"dtype": "DT_UINT64", "uint64_val": [7]}, 7),
        ({"dtype": "DT_BOOL", "bool_val": [True]}, 1),
    ],
)
def test_forms_of_a_whole_number(log, fields, number):
    assert read(log, event(tensor("a", **fields))).points == [("a", 0, str(float(number)))]


@pytest.mark.parametrize(
    "value",
    [
        IMAGE,
        WORDS,
        Summary.Value(tag="only named", metadata=SCALARS),
        tensor("another plugin's", metadata=TEXT, dtype="DT_FLOAT", float_val=[1.0]),
        tensor("two", dtype="DT_FLOAT", float_val=[1.0, 2.0], tensor_shape={"dim": [{"size": 2}]}),
        tensor("none", dtype="DT_FLOAT", tensor_shape={"dim": [{"size": 0}]}),
        tensor("torn", dtype="DT_FLOAT", tensor_content=b"abc"),
        tensor("nothing", dtype="DT_FLOAT"),
        tensor("complex", dtype="DT_COMPLEX64", scomplex_val=[1.0, 2.0]),
        tensor("no type", float_val=[1.0]),
    ],
)
def test_what_is_no_scalar_is_left_out(log, value):
    reader = read(log, scalar("a", 1, 1.0), event(value), *[event(value)] * 100, scalar("a", 2, 1.0))
    assert reader.points == [("a", 1, "1.0"), ("a", 2, "1.0")]
    assert not reader.read_issues


def test_several_values_in_one_event_keep_their_order(log):
    values = [Summary.Value(tag=tag, simple_value=i) for i, tag in enumerate("cab")]
    assert read(log, event(values[0], IMAGE, *values[1:], step=1)).points == [
        ("c", 1, "0.0"),
        ("a", 1, "1.0"),
        ("b", 1, "2.0"),
    ]


@pytest.mark.parametrize("count", [1, 100])
def test_steps_and_times_at_the_edge(log, count):
    steps = [0, 1, -1, 2**63 - 1, -(2**63), 127, 128, 5, 5, 3]
    reader = read(log, *[scalar("a", step, 1.0) for step in steps for _ in range(count)])
    assert [step for _, step, _ in reader.points] == [step for step in steps for _ in range(count)]
    untimed = record(
        Event(summary=Summary(value=[Summary.Value(tag="a", simple_value=1.0)])).SerializeToString()
    )
    assert all(math.isnan(time) for time in read(log, *[untimed] * count).times)


@pytest.mark.parametrize("count", [1, 100])
def test_what_is_no_event_is_complained_about(log, count):
    good = [scalar("a", i, 1.0) for i in range(count)]
    payload = Event(
        wall_time=1.0, summary=Summary(value=[{"tag": "xyz", "simple_value": 1.0}])
    ).SerializeToString()
    reader = read(log, *good, *[record(payload.replace(b"xyz", b"\xff\xfe\xfd"))] * count, *good)
    assert len(reader.points) == 2 * count
    place = len(VERSION) + len(b"".join(good))
    [complaint] = reader.read_issues
    assert complaint.startswith(f"{log} at byte {place}: record is not a TensorBoard event and was skipped")
