"""What PyTorch's flight recorder wrote, read from recordings of a real training of four ranks with gloo."""

import os
import pickle
import shutil
from pathlib import Path

import pytest

from sentinel.processes import flight_recorder
from sentinel.processes.flight_recorder import last_collectives
from sentinel.processes.ranks import Rank
from sentinel.processes.table import process

RECORDINGS = Path(__file__).parent / "recordings"
SAID = (
    "PyTorch's flight recorder, default_pg: "
    "rank 0 began collective 3, gloo:all_reduce, in backward (train.py:14); "
    "rank 2 began collective 2, gloo:all_gather, in gather (train.py:18); "
    "ranks 1 and 3 began collective 2, gloo:all_reduce, in backward (train.py:14)"
)


@pytest.fixture
def mine():
    return process(os.getpid()) or pytest.skip("no /proc")


@pytest.fixture
def ranks(mine):
    return [Rank(mine._replace(started=0), number, 4) for number in range(4)]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A directory with the recordings, and no others."""
    monkeypatch.setattr(flight_recorder, "_DUMP_DIRECTORY", tmp_path / "none")
    monkeypatch.setattr(flight_recorder.pwd, "getpwuid", {}.__getitem__)
    for file in RECORDINGS.glob("comm_lib*"):
        shutil.copyfile(file, tmp_path / file.name)
    return tmp_path


def test_it_says_how_far_each_rank_got(place, ranks):
    assert last_collectives(ranks, place / "run.jsonl") == SAID


def test_ranks_that_agree_are_said_in_one(place, ranks):
    assert last_collectives([ranks[1], ranks[3]], place) == (
        "PyTorch's flight recorder, default_pg: "
        "ranks 1 and 3 began collective 2, gloo:all_reduce, in backward (train.py:14)"
    )


def test_what_an_earlier_training_wrote_is_not_read(place, ranks):
    for file in place.iterdir():
        os.utime(file, (0, 0))
    assert last_collectives(ranks, place) == ""


def test_what_somebody_else_wrote_is_not_read(place, ranks):
    others = [rank._replace(process=rank.process._replace(user=rank.process.user + 1)) for rank in ranks]
    assert last_collectives(others, place) == ""


def test_links_pipes_and_large_files_are_not_read(place, ranks, monkeypatch):
    one, two, three, four = sorted(place.iterdir())
    one.rename(place / "elsewhere")
    one.symlink_to(place / "elsewhere")
    two.unlink()
    os.mkfifo(two)
    three.unlink()
    assert last_collectives(ranks, place) == "", "one rank alone cannot be compared"
    monkeypatch.setattr(flight_recorder, "_MAX_DUMP_BYTES", 100)
    shutil.copyfile(four, three)
    assert last_collectives(ranks, place) == ""


@pytest.mark.parametrize(
    "content",
    [b"", b"\x80\x02", pickle.dumps(os.getcwd), pickle.dumps({"entries": [1]}), pickle.dumps([])],
    ids=["empty", "torn", "a function", "another form", "no recording"],
)
def test_what_is_no_recording_says_nothing(place, ranks, content):
    for file in place.iterdir():
        file.write_bytes(content)
    assert last_collectives(ranks, place) == ""


def test_names_are_cleaned(place, ranks):
    entry = {"process_group": ("0", "evil\x1b[2J"), "collective_seq_id": 1, "profiling_name": "x\ny" * 99}
    for file in place.iterdir():
        file.write_bytes(pickle.dumps({"entries": [entry]}))
    text = last_collectives(ranks, place)
    assert text.isprintable()
    assert len(text) < 200
