"""Event files as files: damage, torn tails, limits, which of them are one stream or one run."""

import os

import pytest
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboardX import SummaryWriter

from sentinel.sources.discovery import discover
from sentinel.sources.tensorboard import event_files as tensorboard
from sentinel.sources.tensorboard.event_files import EventFiles, find
from tests.sources.reader import Reader
from tests.sources.tensorboard.writer import NAME, VERSION, event, header, read, scalar
from tests.tools.fuzz_tensorboard import fuzz_tensorboard


@pytest.fixture
def log(tmp_path):
    return tmp_path / NAME


def test_broken_records_are_complained_about_once_and_skipped(log):
    good = scalar("a", 1, 1.0)
    bad = good[:-8] + b"?" + good[-7:]
    reader = read(log, good, bad, good, b"?" * 9, good)
    for _ in range(2):
        with log.open("ab") as file:
            file.write(good)
        reader.poll()
    assert reader.points == [("a", 1, "1.0")] * 5
    second = len(VERSION + good)
    fourth = len(VERSION + good + bad + good)
    assert reader.read_issues == [
        f"{log} at byte {second}: record does not match its checksum and was skipped",
        f"{log} at byte {fourth}: record length does not match its checksum; "
        "reading goes on at the next sound record header",
    ]


@pytest.mark.slow
def test_a_file_of_something_else_is_complained_about_once(log):
    log.write_bytes(b"<html>not found</html>" * 10_000)
    reader = Reader(log.parent).poll(limit=10).poll()
    with log.open("ab") as file:
        file.write(b"<html>" * 10_000)
    assert reader.poll().read_issues == [
        f"{log} at byte 0: record length does not match its checksum; "
        "reading goes on at the next sound record header"
    ]


def test_a_claim_of_an_exabyte_takes_no_memory(log):
    reader = read(log, scalar("a", 1, 1.0), header(1 << 60), scalar("a", 2, 1.0))
    assert reader.points == [("a", 1, "1.0"), ("a", 2, "1.0")]
    assert f"claims to be {1 << 60} bytes long" in reader.read_issues[0]


def test_records_longer_than_a_read(log, monkeypatch):
    large = Summary.Value(tag="sample", image=Summary.Image(encoded_image_string=bytes(200_000)))
    number = Summary.Value(tag="a", simple_value=1.0)
    log.write_bytes(VERSION + scalar("a", 1, 1.0) + event(large, number, step=2) + scalar("a", 3, 1.0))
    assert [step for _, step, _ in Reader(log.parent).poll(limit=10).points] == [1, 2, 3]
    monkeypatch.setattr(tensorboard, "MAX_RECORD", 100_000)
    with log.open("ab") as file:
        file.write(event(large, step=4) + scalar("a", 5, 1.0))
    reader = Reader(log.parent).poll(limit=10)
    assert [step for _, step, _ in reader.points] == [1, 3, 5]
    [complaint] = reader.read_issues
    place = len(VERSION + scalar("a", 1, 1.0))
    assert complaint.startswith(f"{log} at byte {place}: record is 0 MiB long and was skipped")


def test_a_torn_tail_is_not_read_again_and_again(log, monkeypatch):
    reads = []
    real = tensorboard.split
    reader = read(log, scalar("a", 1, 1.0), header(5000) + b"some of it")
    monkeypatch.setattr(tensorboard, "split", lambda *args: reads.append(args) or real(*args))
    reader.poll().poll()
    assert not reads


@pytest.mark.slow
@pytest.mark.parametrize("limit", [20, 33, 100])
@pytest.mark.parametrize("each", [1, 20])
def test_a_poll_keeps_to_its_limit(log, limit, each):
    values = [Summary.Value(tag=f"tag{i}", simple_value=i) for i in range(each)]
    log.write_bytes(VERSION + b"".join(event(*values, step=step) for step in range(300)))
    cursor = {}
    sizes = []
    more = True
    while more:
        batch = EventFiles(log.parent).poll(cursor, limit)
        sizes += [sum(len(chunk.value) for chunk in batch.chunks)]
        cursor = batch.cursor
        more = batch.more
    assert sum(sizes) == 300 * each
    assert max(sizes) <= limit
    assert nothing_new(log.parent, cursor)


@pytest.mark.parametrize("limit", [1, 7])
def test_an_event_of_more_values_than_the_limit_is_read_whole(log, limit):
    values = [Summary.Value(tag=f"tag{i}", simple_value=i) for i in range(20)]
    log.write_bytes(VERSION + event(*values, step=1) + b"?" * 30 + event(*values, step=2))
    reader = Reader(log.parent).poll(limit)
    assert [step for _, step, _ in reader.points] == [1] * 20 + [2] * 20
    assert len(reader.read_issues) == 1


def nothing_new(directory, cursor):
    batch = EventFiles(directory).poll(cursor, 10)
    return batch.cursor == cursor and not (batch.chunks or batch.read_issues or batch.more)


def write(directory, name, *steps):
    (directory / name).write_bytes(VERSION + b"".join(scalar("a", step, 1.0) for step in steps))


def streams(directory, limit=1000):
    found = {}
    cursor = {}
    more = True
    while more:
        batch = EventFiles(directory).poll(cursor, limit)
        for chunk in batch.chunks:
            found.setdefault(chunk.stream, []).extend(chunk.step.tolist())
        cursor = batch.cursor
        more = batch.more
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
        "events.out.tfevents",
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


@pytest.mark.long
def test_damaged_files():
    assert fuzz_tensorboard(150, seed=0)


def test_settings_that_stand_alone_below_a_run_are_no_run(tmp_path):
    with SummaryWriter(str(tmp_path / "run")) as writer:
        writer.add_scalar("loss", 1.0, 1)
        writer.add_hparams({"lr": 0.1}, {"best": 1.0})
    (settings,) = (path for path in (tmp_path / "run").iterdir() if path.is_dir())
    assert [run.path for run in discover([tmp_path]).runs] == [tmp_path / "run"]
    assert [run.path for run in discover([settings]).runs] == [settings]

    with SummaryWriter(str(settings)) as writer:
        writer.add_scalar("loss", 1.0, 1)
    assert [run.path for run in discover([tmp_path]).runs] == [tmp_path / "run", settings]


def test_a_file_whose_name_is_no_text_is_skipped(tmp_path):
    write(tmp_path, "events.out.tfevents.1.a", 0)
    write(tmp_path, os.fsdecode(b"caf\xe9.tfevents.1.b"), 1)
    assert Reader(tmp_path).poll().points == [("a", 0, "1.0")]
