"""A log that grew, and a copy of one."""

import math
import os
import shutil

import pytest

from sentinel.runs import copied_logs
from sentinel.runs.copied_logs import birth, is_copy, silence_of
from sentinel.runs.metadata import RunMetadata
from sentinel.runs.state import RunState, run_status

LATER = 60.0


@pytest.fixture
def copy(tmp_path):
    """A log that was written at once; tests of it need a file system that tells births."""
    original = tmp_path / "original.csv"
    original.write_text("step,loss\n" + "".join(f"{n},1.0\n" for n in range(99)))
    made = tmp_path / "run" / "log.csv"
    made.parent.mkdir()
    shutil.copyfile(original, made)
    if birth(made) is None:
        pytest.skip("this file system does not tell when a file was made")
    return made


def test_a_copy_without_times_is_not_running(copy):
    now = copy.stat().st_mtime + LATER
    facts = RunMetadata(points=99)
    silent = silence_of(copy, facts, now)
    assert silent == math.inf
    status = run_status(None, silent, 600.0)
    assert (status.state, "is a copy" in status.evidence) == (RunState.SILENT, True)
    timed = RunMetadata(points=99, last_time=now - 5)
    assert silence_of(copy, timed, now) == pytest.approx(LATER), "its own times count"
    assert silence_of(copy.parent, timed, now, whole=False) == math.inf, "they are not all known"
    assert silence_of(copy.parent, facts, now) < math.inf, "its log may lie in a directory below"


@pytest.mark.parametrize("seconds", [-300.0, 300.0], ids=["with the time of its original", "that grew"])
def test_a_file_that_was_written_at_another_time_than_it_was_made_is_no_such_copy(copy, seconds):
    written = copy.stat().st_mtime + seconds
    os.utime(copy, (written, written))
    assert not is_copy(copy)
    assert silence_of(copy, RunMetadata(points=99), written + LATER) == pytest.approx(LATER)


def test_a_run_that_has_just_begun_is_no_copy(copy):
    written = copy.stat().st_mtime
    assert silence_of(copy, RunMetadata(points=9), written + LATER) == pytest.approx(LATER)
    assert silence_of(copy, RunMetadata(points=99), written + 5) == pytest.approx(5)


def test_one_file_of_a_directory_that_grew_is_enough(copy):
    (copy.parent / "config.json").touch()
    assert is_copy(copy.parent)
    os.utime(copy, (0, copy.stat().st_mtime + 300))
    assert not is_copy(copy.parent)


def test_what_cannot_be_told_is_no_copy(copy, monkeypatch):
    assert birth(copy.parent / "gone") is None
    assert not is_copy(copy.parent / "gone")
    monkeypatch.setattr(copied_logs, "birth", lambda _: None)
    assert not is_copy(copy)
