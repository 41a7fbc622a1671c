import logging
import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tbparse import SummaryReader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboardX import SummaryWriter

from sentinel.sources import tensorboard, tensorboard_events, tfrecord
from sentinel.sources.tensorboard import EventFiles, find
from tests.benchmarks.fuzz_tensorboard import fuzz_tensorboard
from tests.sources.event_files import NAME, VERSION, event, header, record, scalar
from tests.sources.reading import Reader

SCALARS = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
TEXT = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
HISTOGRAM = Summary.Value(tag="weights", histo=HistogramProto(num=1.0, bucket_limit=[1.0], bucket=[1.0]))
IMAGE = Summary.Value(tag="sample", image=Summary.Image(encoded_image_string=b"x" * 3000))
WORDS = Summary.Value(tag="note", tensor=TensorProto(dtype="DT_STRING", string_val=[b"hello"]), metadata=TEXT)
SHAPELESS = TensorShapeProto()


@pytest.fixture(autouse=True)
def quiet_tensorboard():
    logging.getLogger("tensorboard").setLevel(logging.ERROR)


@pytest.fixture
def log(tmp_path):
    return tmp_path / NAME


def tensor(tag, metadata=SCALARS, **fields):
    return Summary.Value(tag=tag, tensor=TensorProto(**fields), metadata=metadata)


def read(log, *records):
    log.write_bytes(b"".join([VERSION, *records]))
    return Reader(log.parent).poll(limit=50_000)


def by_protobuf(log, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(tfrecord, "_WORTH_A_MATRIX", 10**9)
        return Reader(log.parent).poll(limit=50_000)


def scalars(reader):
    """Without what stands for histograms."""
    return [point for point in reader.points if "#" not in point[0]]


def by_tbparse(log):
    """Tag, step and value of each scalar in no particular order."""
    reader = SummaryReader(str(log), event_types={"scalars", "tensors"})
    frames = [frame for frame in (reader.scalars, reader.tensors) if len(frame)]
    rows = [row for f in frames for row in zip(f["tag"], f["step"], f["value"], strict=True)]
    return sorted((tag, step, str(float(value))) for tag, step, value in rows if np.size(value) == 1)


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
    assert not reader.complaints


def test_several_values_in_one_event_keep_their_order(log):
    values = [Summary.Value(tag=tag, simple_value=i) for i, tag in enumerate("cab")]
    assert read(log, event(values[0], IMAGE, *values[1:], step=1)).points == [
        ("c", 1, "0.0"),
        ("a", 1, "1.0"),
        ("b", 1, "2.0"),
    ]


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # in tbparse, of pandas
def test_what_tensorboardx_writes(tmp_path, monkeypatch):
    with SummaryWriter(str(tmp_path), max_queue=1) as writer:
        for step in range(500):
            writer.add_scalar("train/loss", 1 / (step + 1), step, walltime=1.7e9 + step)
            writer.add_scalar("train/kl", step, step, display_name="KL", summary_description="nats")
            if step % 100 == 0:
                writer.add_histogram("weights", np.arange(10.0), step)
                writer.add_text("note", "some words", step)
    reader = Reader(tmp_path).poll()
    assert len(scalars(reader)) == 1000
    [log] = tmp_path.iterdir()
    assert sorted(scalars(reader)) == by_tbparse(log)
    assert reader.points == by_protobuf(log, monkeypatch).points


KINDS = [
    lambda tag, value: Summary.Value(tag=tag, simple_value=value),
    lambda tag, value: Summary.Value(tag=tag, simple_value=value, metadata=SCALARS),
    lambda tag, value: tensor(tag, dtype="DT_FLOAT", float_val=[value]),
    lambda tag, value: tensor(tag, dtype="DT_DOUBLE", double_val=[value]),
    lambda tag, value: tensor(
        tag, dtype="DT_FLOAT", tensor_shape=SHAPELESS, tensor_content=np.float32(value).tobytes()
    ),
    lambda _tag, _value: HISTOGRAM,
    lambda _tag, _value: WORDS,
]
NUMBERS = st.floats(width=32) | st.sampled_from([0.0, -0.0, math.nan, math.inf, 2.0**-149])
STEPS = st.integers(-(2**63), 2**63 - 2000) | st.sampled_from([0, 100, 2**14 - 50, 2**21 - 50, -50])


@st.composite
def logged(draw):
    """Records of a loop that logs a few values each time, some of them several in one event."""
    tag = st.sampled_from(["a", "b", "ab", "\xe9", "long/tag"])
    values = st.lists(st.tuples(st.sampled_from(KINDS), tag), max_size=3)
    numbers = st.lists(NUMBERS, min_size=1, max_size=5)
    lines = draw(st.lists(st.tuples(values, numbers, st.sampled_from([0.0, 0.25, 1.7e9, -1.0])), max_size=5))
    first, stride = draw(STEPS), draw(st.sampled_from([0, 1, 3]))
    return [
        event(*(kind(t, ns[i % len(ns)]) for kind, t in made), step=first + i * stride, time=time + i)
        for i in range(draw(st.sampled_from([1, 70, 150])))
        for made, ns, time in lines
    ]


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # in tbparse, of pandas
@settings(max_examples=40, deadline=None)
@given(records=logged())
def test_all_readers_agree(records, tmp_path_factory):
    log = tmp_path_factory.mktemp("agree") / NAME
    log.write_bytes(b"".join([VERSION, *records]))
    reader = Reader(log.parent).poll(limit=50_000)
    assert not reader.complaints
    with pytest.MonkeyPatch.context() as patch:
        slow = by_protobuf(log, patch)
    assert reader.points == slow.points
    np.testing.assert_array_equal(reader.times, slow.times)
    assert sorted(scalars(reader)) == by_tbparse(log)


def test_tags_that_hash_alike_stay_apart(log, monkeypatch):
    records = [scalar(f"tag{i % 7}", i, i) for i in range(700)]
    expected = read(log, *records).points
    monkeypatch.setattr(tensorboard_events, "_MIX", tensorboard_events._MIX * 0)
    assert read(log, *records).points == expected


def test_many_scalars_do_not_go_through_protobuf_one_by_one(log, monkeypatch):
    seen = []
    real = tensorboard_events._points
    monkeypatch.setattr(tensorboard_events, "_points", lambda record: seen.append(1) or real(record))
    tensorboard_events._proved_tag.cache_clear()
    tags = [f"layer{i}/norm" for i in range(20)]
    assert len(read(log, *[scalar(tags[i % 20], i // 20, i) for i in range(20_000)]).points) == 20_000
    assert len(seen) < 600


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
    [complaint] = reader.complaints
    assert complaint.startswith(f"{log} at byte {place}: record is not a TensorBoard event and was skipped")


def test_broken_records_are_complained_about_once_and_skipped(log):
    good = scalar("a", 1, 1.0)
    bad = good[:-8] + b"?" + good[-7:]
    reader = read(log, good, bad, good, b"?" * 9, good)
    for _ in range(2):
        with log.open("ab") as file:
            file.write(good)
        reader.poll()
    assert reader.points == [("a", 1, "1.0")] * 5
    second, fourth = len(VERSION + good), len(VERSION + good + bad + good)
    assert reader.complaints == [
        f"{log} at byte {second}: record does not match its checksum and was skipped",
        f"{log} at byte {fourth}: record length does not match its checksum; "
        "reading goes on at the next sound record header",
    ]


def test_a_file_of_something_else_is_complained_about_once(log):
    log.write_bytes(b"<html>not found</html>" * 10_000)
    reader = Reader(log.parent).poll(limit=10).poll()
    with log.open("ab") as file:
        file.write(b"<html>" * 10_000)
    assert reader.poll().complaints == [
        f"{log} at byte 0: record length does not match its checksum; "
        "reading goes on at the next sound record header"
    ]


def test_a_claim_of_an_exabyte_takes_no_memory(log):
    reader = read(log, scalar("a", 1, 1.0), header(1 << 60), scalar("a", 2, 1.0))
    assert reader.points == [("a", 1, "1.0"), ("a", 2, "1.0")]
    assert f"claims to be {1 << 60} bytes long" in reader.complaints[0]


def test_records_longer_than_a_read(log, monkeypatch):
    large = Summary.Value(tag="sample", image=Summary.Image(encoded_image_string=bytes(200_000)))
    number = Summary.Value(tag="a", simple_value=1.0)
    log.write_bytes(VERSION + scalar("a", 1, 1.0) + event(large, number, step=2) + scalar("a", 3, 1.0))
    assert [step for _, step, _ in Reader(log.parent).poll(limit=10).points] == [1, 2, 3]
    monkeypatch.setattr(tensorboard, "LONGEST_RECORD", 100_000)
    with log.open("ab") as file:
        file.write(event(large, step=4) + scalar("a", 5, 1.0))
    reader = Reader(log.parent).poll(limit=10)
    assert [step for _, step, _ in reader.points] == [1, 3, 5]
    [complaint] = reader.complaints
    place = len(VERSION + scalar("a", 1, 1.0))
    assert complaint.startswith(f"{log} at byte {place}: record is 0 MiB long and was skipped")


def test_a_torn_tail_is_not_read_again_and_again(log, monkeypatch):
    reads = []
    real = tensorboard.split
    reader = read(log, scalar("a", 1, 1.0), header(5000) + b"some of it")
    monkeypatch.setattr(tensorboard, "split", lambda *args: reads.append(args) or real(*args))
    reader.poll().poll()
    assert not reads


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_a_poll_keeps_to_its_limit(log, limit):
    log.write_bytes(VERSION + b"".join(scalar("a", i, 1.0) for i in range(300)))
    cursor, sizes, more = {}, [], True
    while more:
        batch = EventFiles(log.parent).poll(cursor, limit)
        sizes += [sum(len(chunk.value) for chunk in batch.chunks)]
        cursor, more = batch.cursor, batch.more
    assert sum(sizes) == 300
    assert max(sizes) <= limit
    assert nothing_new(log.parent, cursor)


def nothing_new(directory, cursor):
    batch = EventFiles(directory).poll(cursor, 10)
    return batch.cursor == cursor and not (batch.chunks or batch.complaints or batch.more)


def write(directory, name, *steps):
    (directory / name).write_bytes(VERSION + b"".join(scalar("a", step, 1.0) for step in steps))


def streams(directory, limit=1000):
    found, cursor, more = {}, {}, True
    while more:
        batch = EventFiles(directory).poll(cursor, limit)
        for chunk in batch.chunks:
            found.setdefault(chunk.stream, []).extend(chunk.step.tolist())
        cursor, more = batch.cursor, batch.more
    return found


@pytest.mark.parametrize("limit", [1, 2, 1000])
def test_the_files_of_a_process_are_one_stream(tmp_path, limit):
    write(tmp_path, "events.out.tfevents.1700000900.gpu-1.local.77.10", 7, 8)
    write(tmp_path, "events.out.tfevents.1700000900.gpu-1.local.77.9", 4, 5, 6)
    write(tmp_path, "events.out.tfevents.1700000000.gpu-1.local.77.0", 1, 2, 3)
    write(tmp_path, "events.out.tfevents.1700000000.gpu-1.local.78.0", 1)
    write(tmp_path, "events.out.tfevents.1700000000.gpu-1.local.77.0.v2", 10)
    write(tmp_path, "events.out.tfevents.1700000000.gpu-2.local", 20)
    write(tmp_path, "events.out.tfevents.1700000001.gpu-2.local", 21)
    assert streams(tmp_path, limit) == {
        "gpu-1.local.77": [1, 2, 3, 4, 5, 6, 7, 8],
        "gpu-1.local.78": [1],
        "gpu-1.local.77.v2": [10],
        "events.out.tfevents.1700000000.gpu-2.local": [20],
        "events.out.tfevents.1700000001.gpu-2.local": [21],
    }


@pytest.mark.parametrize(
    "name",
    [
        "events.out.tfevents.1700000000.host",
        "events.out.tfevents.1700000000.host.1.0",
        "events.out.tfevents.1700000000.host.1.0.v2",
        "events.out.tfevents.1700000000.host.1.0_my-suffix",
        "events.out.tfevents.1700000000.host.profile-empty",
        "model.out.tfevents.1700000000.10.0.0.1",
    ],
)
def test_names_of_event_files(tmp_path, name):
    [run] = find(tmp_path, ["notes.txt", name])
    assert (run.path, run.format) == (tmp_path, "tensorboard")


@pytest.mark.parametrize(
    "name",
    [
        "events.out.tfevents.1700000000.host.1.0.meta",
        "events.out.tfevents.1700000000.host.1.0.gz",
        ".events.out.tfevents.1700000000.host.1.0.Kq3x1Z",
        "tfevents.md",
        "about-tfevents.1.py",
    ],
)
def test_names_of_other_files(tmp_path, name):
    assert not list(find(tmp_path, [name]))


def test_each_directory_is_a_run(tmp_path):
    for name in ("run", "run/train", "run/validation", "run/empty"):
        (tmp_path / name).mkdir()
        if name != "run/empty":
            write(tmp_path / name, NAME, 1, 2)
    reader = Reader(tmp_path).poll()
    assert [run.path.relative_to(tmp_path).as_posix() for run in reader.runs.values()] == [
        "run",
        "run/train",
        "run/validation",
    ]
    assert len(reader.points) == 6


def test_a_run_whose_files_are_gone_is_quiet(tmp_path):
    write(tmp_path, NAME, 1)
    cursor = EventFiles(tmp_path).poll({}, 10).cursor
    (tmp_path / NAME).unlink()
    assert nothing_new(tmp_path, cursor)
    assert nothing_new(tmp_path / "gone", cursor)


def test_damaged_files():
    assert fuzz_tensorboard(300, seed=0)
