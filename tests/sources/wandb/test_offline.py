import json
import math
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wandb.proto.wandb_internal_pb2 import (
    ConfigRecord,
    HistoryRecord,
    MetricRecord,
    OutputRawRecord,
    Record,
    RunExitRecord,
)

from sentinel.sources.base import EndKind
from sentinel.sources.discovery import discover
from sentinel.sources.readers.leveldb import split
from sentinel.sources.wandb.offline import WandbFile
from sentinel.sources.wandb.steps import Steps
from tests.sources.reader import Reader
from tests.sources.wandb.log_writer import HEADER, WandbLog, framed

RUNS = Path(__file__).parents[1] / "fixtures" / "wandb"
ENDINGS = {
    "finished": "exit code 0 in the exit record",
    "crashed": "exit code 1 in the exit record",
    "killed": None,
    "old": "exit code 0 in the exit record",
}


def steps(reader, tag):
    return [step for name, step, _ in reader.points if name == tag]


@pytest.fixture
def log(tmp_path):
    return WandbLog(tmp_path / "run-abc.wandb")


@pytest.fixture
def reader(tmp_path):
    return Reader(tmp_path)


def define(name, axis):
    field = "glob_name" if name.endswith("*") else "name"
    return Record(metric=MetricRecord(**{field: name}, step_metric=axis))


def test_a_row_that_follows_the_exit_record_does_not_undo_it(log):
    """wandb writes the row that was not yet committed once the program has ended."""
    log.history({"_step": 0, "loss": 1.0})
    log.write(Record(exit=RunExitRecord(exit_code=0)))
    source = WandbFile(log.path)
    first = source.poll({}, 100)
    log.history({"_step": 1, "loss": 0.5})
    second = source.poll(first.cursor, 100)
    assert [len(chunk.step) for chunk in second.chunks] == [1]
    assert first.ending == second.ending
    assert second.ending.evidence == ENDINGS["finished"]


@pytest.mark.parametrize("kind", ENDINGS)
def test_a_run_that_wandb_wrote(kind):
    batch = WandbFile(RUNS / f"run-{kind}.wandb").poll({}, 100_000)
    assert not batch.read_issues
    assert not batch.more
    series = {}
    for chunk in batch.chunks:
        for tag, step, value in zip(chunk.tag, chunk.step.tolist(), chunk.value.tolist(), strict=True):
            series.setdefault(chunk.tags[tag], []).append((step, str(value)))
    losses = ["nan" if i == 7 else str(2.0**-i) for i in range(12)]
    assert series.pop("train/loss")[:12] == [(10 * i, loss) for i, loss in enumerate(losses)]
    assert series.pop("validation/loss") == [(0, "2.25"), (1, "1.25"), (2, "0.25")]
    assert series.pop("optimizer.group.decay") == [(10 * i, f"{i}.0") for i in range(12)]
    assert set(series) == {"optimizer.lr", "inf", "minus", "epoch"}
    assert {str(math.inf)} == {value for _, value in series["inf"]}
    assert {str(-math.inf)} == {value for _, value in series["minus"]}
    assert all(1.79e9 < time < 1.8e9 for chunk in batch.chunks for time in chunk.time)
    assert batch.chunks[0].config == {
        "lr": 1e-3,
        "model.layers": 2,
        "model.name": "tiny",
        "betas.0": 0.9,
        "betas.1": 0.99,
        "warmup": 10,
    }
    assert {"late.setting": 1} in [chunk.config for chunk in batch.chunks[1:]]
    assert (batch.ending and batch.ending.evidence) == ENDINGS[kind]
    if batch.ending:
        assert batch.ending.outcome == (EndKind.CRASHED if kind == "crashed" else EndKind.FINISHED)
    lines = [line.text for line in batch.lines]
    assert lines[:13] == [*(f"row {i}" for i in range(12)), "100%"]
    if kind == "crashed":
        assert lines[-1] == "RuntimeError: loss is not finite"
        assert batch.lines[-1].time > batch.lines[0].time > 1.79e9


@pytest.mark.slow
@pytest.mark.parametrize("kind", ENDINGS)
def test_pieces_of_a_run_give_the_same(kind):
    whole = Reader(RUNS / f"run-{kind}.wandb").poll()
    assert Reader(RUNS / f"run-{kind}.wandb").poll(limit=1).points == whole.points


def test_a_run_is_known_by_its_own_directory(tmp_path):
    own = tmp_path / "wandb" / "offline-run-20260101_120000-abc"
    own.mkdir(parents=True)
    WandbLog(own / "run-abc.wandb")
    (tmp_path / "wandb" / "latest-run").symlink_to(own, target_is_directory=True)
    WandbLog(tmp_path / "run-one.wandb")
    WandbLog(tmp_path / "run-two.wandb")
    paths = [tmp_path / "run-one.wandb", tmp_path / "run-two.wandb", own]
    assert [run.path for run in discover([tmp_path]).runs] == paths
    assert [run.path for run in discover([own / "run-abc.wandb"]).runs] == [own]


@pytest.mark.parametrize("limit", [1, 1000])
def test_steps(log, reader, limit):
    log.history({"early": 1, "_step": 0, "_timestamp": 5})
    log.history({"loss": 1, "global_step": 100, "_step": 1})
    log.history({"extra": 1, "_step": 2})
    log.history({"loss": 2, "global_step": "NaN", "_step": 3})
    log.history({"loss": 3, "global_step": 300, "_step": 4})
    reader.poll(limit)
    assert [(tag, step) for tag, step, _ in reader.points] == [
        ("early", 0),
        ("loss", 100),
        ("extra", 100),
        ("loss", 100),
        ("global_step", 100),
        ("loss", 300),
    ]
    assert reader.times[0] == 5


@pytest.mark.parametrize("limit", [1, 1000])
@pytest.mark.parametrize("defined", [True, False])
def test_what_is_logged_at_step_0_after_a_training_stands_at_its_last_step(log, reader, limit, defined):
    """Lightning counts anew from 0 for a test, and a training that begins again does so as well."""
    if defined:
        log.write(define("*", "trainer/global_step"))
    records = [
        (0, {"lr-Adam": 0.1}), (0, {"train_loss": 1, "epoch": 0}),
        (50, {"train_loss": 2}), (100, {"train_loss": 3}),
        (0, {"test_loss": 4, "epoch": 0}), (0, {"test_loss": 5, "epoch": 0}),
        (0, {"lr-Adam": 6}), (0, {"train_loss": 7}),
        (50, {"train_loss": 8, "val_loss": 9}), (0, {"best/val_loss": 10}),
    ]  # fmt: skip
    for i, (step, values) in enumerate(records):
        log.history({**values, "trainer/global_step": step, "_step": i})
    reader.poll(limit)
    shown = [(tag, step) for tag, step, _ in reader.points if tag not in ("epoch", "trainer/global_step")]
    assert shown == [
        ("lr-Adam", 0), ("train_loss", 0), ("train_loss", 50), ("train_loss", 100),
        ("test_loss", 100), ("test_loss", 100),
        ("lr-Adam", 0), ("train_loss", 0), ("train_loss", 50), ("val_loss", 50), ("best/val_loss", 50),
    ]  # fmt: skip


@pytest.mark.parametrize("limit", [1, 1000])
def test_defined_axes(log, reader, limit):
    log.history({"eval/loss": 1, "_step": 0})
    for name, axis in [
        ("*", "update"),
        ("eval/*", "eval/round"),
        ("eval/time", "clock"),
        ("a\\.b", "update"),
    ]:
        log.write(define(name, axis))
    for i in range(1, 5):
        log.history({"a.b": i, "loss": 1 / i, "update": 100 * i, "_step": i, "clock": i / 2 + 0.5})
    log.history({"eval/loss": 2, "eval/time": 3, "eval/round": 7, "_step": 5})
    reader.poll(limit)
    assert steps(reader, "loss") == steps(reader, "a.b") == [100, 200, 300, 400]
    assert steps(reader, "eval/loss") == [0, 7]
    assert steps(reader, "eval/time") == [5]  # a clock that shows fractions counts no steps


def test_settings_precede_the_points_that_follow_them(log):
    nested = {"a": {"b": [1, None], "c": {}}, "d": "text"}
    log.write(Record(config=ConfigRecord(update=[{"key": "x", "value_json": json.dumps(nested)}])))
    log.write(Record(config=ConfigRecord(update=[{"key": "_wandb", "value_json": '{"m": 1}'}])))
    log.history({"loss": 1, "_step": 0})
    log.write(Record(config=ConfigRecord(update=[{"nested_key": ["y", "z"], "value_json": "true"}])))
    log.history({"loss": 2, "_step": 1})
    log.write(Record(config=ConfigRecord(update=[{"key": "broken", "value_json": "{"}])))
    log.write(Record(config=ConfigRecord(update=[{"key": "last", "value_json": "1.5"}])))
    chunks = WandbFile(log.path).poll({}, 100).chunks
    assert [(chunk.value.tolist(), dict(chunk.config)) for chunk in chunks] == [
        ([1], {"x.a.b.0": 1, "x.a.b.1": None, "x.d": "text"}),
        ([2], {"y.z": True}),
        ([], {"last": 1.5}),
    ]


def test_console_output_is_put_together(log):
    source = WandbFile(log.path)
    cursor = {}
    lines = []
    for piece in ["one", " 1\rone 2\r", "one 3", "\n\n two\nthr"]:
        log.write(Record(output_raw=OutputRawRecord(output_type=OutputRawRecord.STDOUT, line=piece)))
        log.write(Record(output_raw=OutputRawRecord(output_type=OutputRawRecord.STDERR, line=f"{piece}!\n")))
        batch = source.poll(json.loads(json.dumps(cursor)), 100)
        cursor = batch.cursor
        lines += batch.lines
    assert [line.text for line in lines] == ["one!", "!", "one 3!", "one 3", " two", " two", "thr!"]
    assert all(math.isnan(line.time) for line in lines)


def test_a_long_record_is_read_whole(log, reader):
    log.history({"loss": 1, "_step": 0})
    log.history({"table": random.Random(0).randbytes(300_000).hex(), "loss": 2, "_step": 1})
    log.history({"loss": 3, "_step": 2})
    assert reader.poll(limit=1).points == [("loss", i, f"{i + 1}.0") for i in range(3)]
    assert not reader.read_issues


@pytest.mark.parametrize(
    ("begin", "words"), [(HEADER[:-1] + b"\x03", "version 3"), (b"PK\x03\x04   ", "no W&B log")]
)
def test_a_file_of_another_kind_is_refused_once(log, reader, begin, words):
    log.history({"loss": 1, "_step": 0})
    sound = log.path.read_bytes()
    log.path.write_bytes(begin + sound[len(HEADER) :])
    reader.poll()
    with log.path.open("ab") as file:
        file.write(sound)
    reader.poll()
    assert len(reader.read_issues) == 1
    assert words in reader.read_issues[0]
    log.path.unlink()
    log.path.write_bytes(sound)
    assert reader.poll().points == [("loss", 0, "1.0")]


@pytest.mark.slow
def test_zeros_may_be_bytes_on_their_way(log, tmp_path):
    log.history({"loss": 1, "_step": 0})
    shown = log.size
    log.history({"loss": 2, "_step": 1})
    sound = log.path.read_bytes()
    for known in range(shown):
        log.path.write_bytes(sound[:known] + bytes(shown - known))
        reader = Reader(tmp_path).poll()
        log.path.write_bytes(sound)
        assert reader.poll().points[-2:] == [("loss", 0, "1.0"), ("loss", 1, "2.0")]
        assert not reader.read_issues


def test_a_record_that_is_no_message_is_skipped(log, reader):
    log.history({"loss": 1, "_step": 0})
    place = log.size
    for payload in (b"\x08\x01\x12\x02\x0a\x7f", b"\xff\xff", b""):
        log.append(framed(payload, log.size))
    log.history({"loss": 2, "_step": 1})
    assert reader.poll().points == [("loss", 0, "1.0"), ("loss", 1, "2.0")]
    assert len(reader.read_issues) == 1
    assert f"at byte {place}: record is no message" in reader.read_issues[0]
    assert "2 more" in reader.read_issues[0]
    log.write(Record(history=HistoryRecord()))
    assert len(reader.poll().points) == 2


MESSAGES = split((RUNS / "run-finished.wandb").read_bytes(), len(HEADER), 0, True).records


@pytest.mark.long
@given(data=st.data())
def test_any_message_with_a_sound_checksum(data):
    with tempfile.TemporaryDirectory() as scratch:
        log = WandbLog(Path(scratch, "run-abc.wandb"))
        for message in data.draw(st.lists(st.sampled_from(MESSAGES), max_size=4)):
            changed = bytearray(message)
            for at in data.draw(st.lists(st.integers(0, len(message) - 1), max_size=4)):
                changed[at] = data.draw(st.integers(0, 255))
            log.append(framed(bytes(changed), log.size))
        reader = Reader(Path(scratch)).poll()
        points = list(reader.points)
        log.history({"loss": 1.5})
        assert reader.poll().points[: len(points)] == points
        assert reader.points[-1][::2] == ("loss", "1.5"), "what stands behind it is read"


@pytest.mark.slow
def test_many_axes_cost_what_they_hold(tmp_path, monkeypatch):
    filled = []
    fill = Steps._filled
    monkeypatch.setattr(Steps, "_filled", lambda self, *rest: filled.append(1) or fill(self, *rest))
    log = WandbLog(tmp_path / "run-1.wandb")
    for i in range(50):
        log.write(define(f"m{i}", f"axis{i}"))
        log.history({f"m{i}": 1.0, f"axis{i}": 7 * i, "_step": i})
        log.history({f"m{i}": 2.0, "_step": i})
    steps = [(tag, step) for tag, step, _ in Reader(tmp_path).poll().points if tag.startswith("m")]
    assert steps == [(f"m{i}", 7 * i) for i in range(50) for _ in range(2)]
    assert len(filled) < 50 * 6
