"""What every source keeps to, held for texts, tables and documents of no known format."""

import json
import random
import shutil

import pytest

from sentinel.sources.base import flush
from tests.sources.copying import WAYS
from tests.sources.reader import Reader
from tests.sources.runs import contents, play

pytestmark = pytest.mark.slow

STEPS = [(step, {"loss": 4.0 - step / 8, "lr": 2.0**-step}) for step in range(1, 13)]
OTHER_STEPS = [(step, {"loss": 9.0 + step / 8, "lr": 0.5}) for step in range(1, 9)]


class TextWriter:
    """Prints an own form of line, among others."""

    name = "nohup.out"

    def start(self, directory):
        self.path = directory / self.name
        self.path.write_text("Loading the data of 3 cities\n")

    def log(self, step, values):
        with self.path.open("a") as file:
            shown = " ".join(f"{name}-> {value!r}" for name, value in values.items())
            file.write(f"EPOCH[{step}/12] {shown} (in 0.5 s)\nsaved the model\n")


class TableWriter:
    """Writes a table below a banner, with bars between its cells."""

    name = "history.txt"

    def start(self, directory):
        self.path = directory / self.name
        self.path.write_text("A small model\nstep | loss | lr\n")

    def log(self, step, values):
        with self.path.open("a") as file:
            file.write(" | ".join(map(repr, (step, *values.values()))) + "\n")


class DocumentWriter:
    """Saves lists by name, below the name of a client, anew at each step."""

    name = "history.json"

    def start(self, directory):
        self.path = directory / self.name
        self.lists = {"step": [], "loss": [], "lr": []}

    def log(self, step, values):
        for name, value in {"step": step, **values}.items():
            self.lists[name].append(value)
        self.path.write_text(json.dumps({"client": {"fold": self.lists}}))


@pytest.fixture(params=[TextWriter, TableWriter, DocumentWriter])
def writer(request, tmp_path):
    directory = tmp_path / "run"
    directory.mkdir()
    writer = request.param()
    writer.start(directory)
    return writer


def write(writer, steps):
    for step, values in steps:
        writer.log(step, values)
    return writer.path.parent


def points(steps):
    return [(name, step, str(value)) for step, values in steps for name, value in values.items()]


def metrics(found):
    """The points that are metrics, by their last word: a console's step and duration are beside them."""
    last = [(tag.split("/")[-1], step, value) for tag, step, value in found]
    return [point for point in last if point[0] in ("loss", "lr")]


def test_a_growing_log_gives_exactly_what_was_written(writer):
    reader = Reader(writer.path.parent)
    for count, (step, values) in enumerate(STEPS, 1):
        writer.log(step, values)
        found = metrics(reader.poll().points)
        assert found == points(STEPS)[: len(found)]
        assert count < 4 or len(found) == 2 * count
    assert not reader.read_issues
    assert not reader.restarts


@pytest.mark.parametrize("seed", range(3))
def test_pieces_give_the_same(writer, seed):
    dice = random.Random(seed)
    reader = Reader(writer.path.parent)
    for step, values in STEPS:
        writer.log(step, values)
        if dice.random() < 0.5:
            reader.poll(dice.randint(1, 5), dice.randint(0, 3))
    assert metrics(reader.poll(limit=3).points) == points(STEPS)
    assert not reader.restarts


@pytest.mark.long
def test_a_torn_tail_waits(writer, tmp_path):
    data = contents(write(writer, STEPS))
    size = sum(map(len, data.values()))
    for cut in range(0, size, 1 + size // 150):
        copy = tmp_path / str(cut)
        copy.mkdir()
        play(copy, data, 0, cut)
        reader = Reader(copy).poll()
        found = metrics(reader.points)
        assert found == points(STEPS)[: len(found)]
        play(copy, data, cut, size)
        assert metrics(reader.poll().points) == points(STEPS)
        assert not reader.restarts


def test_the_last_line_counts_when_the_log_is_over(writer):
    directory = write(writer, STEPS)
    data = writer.path.read_bytes().removesuffix(b"saved the model\n").removesuffix(b"\n")
    writer.path.write_bytes(data)
    reader = Reader(directory).poll()
    (run,) = reader.runs.values()
    rest = flush(run.source, json.loads(reader.cursors[run.id]))
    found = [
        (c.tags[t], s, str(v)) for c in rest for t, s, v in zip(c.tag, c.step, c.value.tolist(), strict=True)
    ]
    assert metrics([*reader.points, *found]) == points(STEPS)


def test_a_log_that_another_training_replaced_is_read_again(writer, tmp_path):
    reader = Reader(write(writer, STEPS)).poll()
    writer.path.unlink()
    writer.start(writer.path.parent)
    write(writer, OTHER_STEPS)
    assert metrics(reader.poll().points) == points(STEPS) + points(OTHER_STEPS)
    assert reader.restarts == 1


@pytest.mark.parametrize("renew", WAYS)
def test_a_copy_that_is_renewed_goes_on(writer, renew, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    reader = Reader(copy)
    for step, values in STEPS:
        writer.log(step, values)
        renew(writer.path.parent, copy)
        reader.poll()
    assert metrics(reader.points) == points(STEPS)
    assert not reader.restarts


def test_a_file_that_grows_back_goes_on(writer):
    directory = write(writer, STEPS)
    data = contents(directory)
    reader = Reader(directory).poll()
    writer.path.write_bytes(b"")
    size = sum(map(len, data.values()))
    for begin, end in ((0, size // 3), (size // 3, size)):
        reader.poll()
        play(directory, data, begin, end)
    assert metrics(reader.poll().points) == points(STEPS)
    assert not reader.restarts


def test_a_run_that_is_removed_costs_one_complaint(writer):
    reader = Reader(write(writer, STEPS)).poll()
    shutil.rmtree(writer.path.parent)
    assert metrics(reader.poll().poll().points) == points(STEPS)
    assert len(reader.read_issues) <= 1
