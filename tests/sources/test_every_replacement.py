"""Whatever its format, a training that began anew in the place of another is read from its start."""

import os
import shutil

import pytest

from tests.sources.reader import Reader
from tests.sources.runs import OTHER_STEPS, STEPS, contents, files, points, write

ALIKE = STEPS[:6] + [(step, {"train/loss": 8.0, "lr": 1.0}) for step in range(6, 20)]
"""A training that begins as the other did, and is already further when it is looked at."""

AS_LONG = [(step, {**values, "train/loss": 4.0 + values["train/loss"]}) for step, values in STEPS]
"""A training whose log has just as many bytes."""


def replace(directory, other):
    """Put another run in a run's place: a file under the name of one, else the whole directory."""
    old = files(directory)
    new = files(other)
    if len(old) == len(new) == 1:
        new[0].replace(old[0])
    else:
        shutil.rmtree(directory)
        other.rename(directory)


def write_anew(directory, other):
    """Have the files hold what another run's files hold; those of a single name keep theirs."""
    old = files(directory)
    new = contents(other)
    if len(old) == len(new) == 1:
        new = {old[0].relative_to(directory): content for content in new.values()}
    for path in old:
        if path.relative_to(directory) not in new:
            path.unlink()
    for name, content in new.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
        time = (directory / name).stat().st_mtime_ns + 1_000_000_000  # clocks of file systems are coarse
        os.utime(directory / name, ns=(time, time))


@pytest.mark.slow
@pytest.mark.parametrize("first_half_read", [True, False])
def test_a_replaced_run_is_read_again(writer, logged, tmp_path, first_half_read):
    reader = Reader(logged)
    if first_half_read:
        reader.poll(limit=4, polls=2)
    else:
        reader.poll()
    before = len(reader.points)
    replace(logged, write(writer, tmp_path / "other", OTHER_STEPS))
    assert reader.poll().points[before:] == points(OTHER_STEPS)
    assert reader.restarts == 1


@pytest.mark.parametrize("seen", [True, False], ids=["seen", "unseen"])
def test_a_run_that_was_removed_and_begun_anew_is_read(writer, logged, seen):
    reader = Reader(logged).poll()
    shutil.rmtree(logged)
    if seen:
        reader.poll()
    write(writer, logged, OTHER_STEPS)
    assert reader.poll().points == points(STEPS) + points(OTHER_STEPS)
    assert len(reader.read_issues) <= seen


def test_a_run_that_is_replaced_file_by_file_begins_anew_once(writer, logged, tmp_path):
    steps = [(step, {"train/loss": 8.0, "lr": 1.0}) for step in range(4)]
    other = contents(write(writer, tmp_path / "other", steps))
    reader = Reader(logged).poll()
    for path in reversed(files(logged)):
        path.unlink()
        reader.poll()
    for name, content in other.items():
        (logged / name).parent.mkdir(exist_ok=True)
        (logged / name).write_bytes(content)
        reader.poll()
    assert sorted(reader.points) == sorted(points(STEPS) + points(steps))
    assert reader.restarts <= 1


@pytest.mark.slow
@pytest.mark.parametrize("steps", [OTHER_STEPS, OTHER_STEPS * 9, ALIKE, AS_LONG])
def test_a_file_that_was_written_anew_is_read_again(writer, logged, tmp_path, steps):
    reader = Reader(logged).poll()
    write_anew(logged, write(writer, tmp_path / "other", steps))
    assert reader.poll().points == points(STEPS) + points(steps)
    assert reader.restarts == 1


@pytest.mark.slow
def test_a_file_that_was_emptied_and_holds_another_run_is_read_again(writer, logged, tmp_path):
    reader = Reader(logged).poll()
    for path in files(logged):
        path.write_bytes(b"")
    assert reader.poll().points == points(STEPS)
    write_anew(logged, write(writer, tmp_path / "other", OTHER_STEPS))
    assert reader.poll().points == points(STEPS) + points(OTHER_STEPS)
    assert reader.restarts == 1


@pytest.mark.parametrize("put", [os.mkfifo, os.mkdir])
def test_what_takes_the_place_of_a_log_is_not_waited_for(logged, put):
    reader = Reader(logged).poll()
    for path in files(logged):
        path.unlink()
        put(path)
    assert reader.poll().poll().points == points(STEPS)
    assert len(reader.read_issues) <= 2
