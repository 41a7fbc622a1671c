"""Reading many events at once gives what protobuf and other readers give."""

import logging
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary
from tensorboardX import SummaryWriter

from sentinel.sources.tensorboard import events as tensorboard_events
from sentinel.sources.tensorboard import layouts as tensorboard_layouts
from sentinel.sources.tensorboard import tfrecord
from sentinel.sources.tensorboard.event_files import EventFiles
from sentinel.sources.tensorboard.values import values
from tests.sources.reader import Reader
from tests.sources.tensorboard.writer import (
    NAME,
    SCALARS,
    SHAPELESS,
    VERSION,
    WORDS,
    event,
    read,
    scalar,
    tensor,
)

HISTOGRAM = Summary.Value(tag="weights", histo=HistogramProto(num=1.0, bucket_limit=[1.0], bucket=[1.0]))


@pytest.fixture(autouse=True)
def quiet_tensorboard():
    logging.getLogger("tensorboard").setLevel(logging.ERROR)


@pytest.fixture
def log(tmp_path):
    return tmp_path / NAME


def by_protobuf(log, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(tfrecord, "_WORTH_A_MATRIX", 10**9)
        patch.setattr(tensorboard_events, "recognise", lambda _: None)
        return Reader(log.parent).poll(limit=50_000)


def scalars(reader):
    """Without what stands for histograms."""
    return [point for point in reader.points if "#" not in point[0]]


def by_tbparse(log):
    """Tag, step and value of each scalar in no particular order."""
    from tbparse import SummaryReader  # pandas is slow to import

    reader = SummaryReader(str(log), event_types={"scalars", "tensors"})
    frames = [frame for frame in (reader.scalars, reader.tensors) if len(frame)]
    rows = [row for f in frames for row in zip(f["tag"], f["step"], f["value"], strict=True)]
    return sorted((tag, step, str(float(value))) for tag, step, value in rows if np.size(value) == 1)


@pytest.mark.slow
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
    first = draw(STEPS)
    stride = draw(st.sampled_from([0, 1, 3]))
    return [
        event(*(kind(t, ns[i % len(ns)]) for kind, t in made), step=first + i * stride, time=time + i)
        for i in range(draw(st.sampled_from([1, 70, 150])))
        for made, ns, time in lines
    ]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # in tbparse, of pandas
@settings(max_examples=40, deadline=None)
@given(records=logged())
def test_all_readers_agree(records, tmp_path_factory):
    log = tmp_path_factory.mktemp("agree") / NAME
    log.write_bytes(b"".join([VERSION, *records]))
    reader = Reader(log.parent).poll(limit=50_000)
    assert not reader.read_issues
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


def test_tags_of_events_of_one_length_come_in_the_order_of_the_log(log):
    tags = [f"tag{i * 5 % 7}" for i in range(7)]
    read(log, *[scalar(tags[i % 7], 1000 + i, 1 + i) for i in range(700)])
    (chunk,) = EventFiles(log.parent).poll({}, 1000).chunks
    assert chunk.tags == tags


@pytest.fixture
def parsed(monkeypatch):
    """The records that went through protobuf; nothing is known yet."""
    seen = []
    real = tensorboard_layouts.values
    for module in (tensorboard_layouts, tensorboard_events):
        monkeypatch.setattr(module, "values", lambda record: seen.append(record) or real(record))
    monkeypatch.setattr(tensorboard_layouts, "_events_by_length", {})
    return seen


def several(step, count=20):
    """An event as loggers of whole dictionaries write it."""
    values = [Summary.Value(tag=f"layer{i}/norm", simple_value=step / (i + 1)) for i in range(count)]
    return event(*values, step=step, time=1.7e9 + step)


@pytest.mark.slow
def test_many_scalars_do_not_go_through_protobuf_one_by_one(log, parsed):
    tags = [f"layer{i}/norm" for i in range(20)]
    assert len(read(log, *[scalar(tags[i % 20], i // 20, i) for i in range(20_000)]).points) == 20_000
    assert len(parsed) < 600


@pytest.mark.slow
def test_nor_do_events_of_many_values(log, parsed):
    assert len(read(log, *map(several, range(1000))).points) == 20_000
    assert len(parsed) < 200


def test_what_one_run_proved_holds_for_the_next(log, parsed):
    expected = [read(log, *map(several, range(start, start + 3))).points for start in range(100, 110, 3)][-1]
    parsed.clear()
    assert read(log, *map(several, range(109, 112))).points == expected
    assert len(parsed) == 1  # the version of the file


@pytest.mark.long
def test_values_that_are_no_plain_floats_are_tried_ever_more_seldom(log, parsed):
    counts = [tensor(f"count{i}", dtype="DT_INT64", int64_val=[i]) for i in range(3)]
    for step in range(500):
        assert len(read(log, event(*counts, step=100 + step % 20)).points) == 3
    assert len(parsed) < 2 * 500 + 100


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    numbers=st.lists(NUMBERS, min_size=1, max_size=12),
    step=STEPS,
    form=st.sampled_from(KINDS[:5]),
    time=st.sampled_from([0.0, 0.25, 1.7e9, -1.0, math.nan]),
)
def test_a_layout_reads_what_protobuf_reads(numbers, step, form, time):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tensorboard_layouts, "_events_by_length", {})
        made = [event(*(form(f"tag{i}", x) for i, x in enumerate(numbers)), step=step, time=time)]
        [record] = [one[12:-4] for one in made]
        layout = tensorboard_layouts.find_layout(record)
        known = tensorboard_layouts.recognise(record)
    expected = values(record)
    if layout is not None:
        rows = np.frombuffer(record * 2, np.uint8).reshape(2, -1)
        steps, times, columns = layout.read(rows)
        assert steps.tolist() == [expected.step] * 2
        assert repr(times.tolist()) == repr([expected.time] * 2)
        assert repr(columns.tolist()) == repr([list(expected.values)] * 2)
        assert known == (layout, expected.tags)
        assert repr(layout.read_one(record)) == repr((expected.step, expected.time, list(expected.values)))


@pytest.mark.slow
def test_memory_is_bounded(log, parsed, monkeypatch):
    monkeypatch.setattr(tensorboard_layouts, "_MAX_SKELETONS", 10)
    records = [scalar(f"tag{i:03}", step, i) for i in range(100) for step in range(100)]
    assert len(read(log, *records).points) == 10_000
    kept = [layout for known in tensorboard_layouts._events_by_length.values() for layout in known.layouts]
    assert sum(len(layout.proved) for layout in kept) <= 10
