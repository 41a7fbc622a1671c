"""What every source keeps to, whatever its format."""

import functools
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.sources.discovery import discover
from sentinel.sources.registry import formats
from tests.sources.reader import Reader
from tests.sources.runs import (
    DOCUMENTS,
    SENSELESS,
    STEPS,
    contents,
    held,
    ordered,
    play,
    points,
    suite_of,
    write,
)
from tests.sources.writers import ONLINE, WRITERS


@pytest.mark.slow
def test_every_format_has_a_writer(tmp_path):
    for name, writer in WRITERS.items():
        write(writer(), tmp_path / name, STEPS)
    assert {run.format for run in discover([tmp_path]).runs} == set(formats())


def test_what_makes_no_sense_is_named_rightly():
    named = {name for reasons in SENSELESS.values() for name in reasons}
    assert named <= {*WRITERS, ONLINE}


@pytest.fixture
def suite(source):
    return suite_of(source)


@pytest.mark.slow
def test_a_growing_run_gives_exactly_what_was_written(suite, writer, reader, tmp_path):
    suite.assert_follows(writer, reader, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_pieces_give_the_same(suite, writer, reader, tmp_path, seed):
    suite.assert_reads_in_pieces(writer, reader, tmp_path, seed)


@pytest.mark.long
def test_a_torn_tail_waits(suite, torn, tmp_path):
    suite.assert_waits_for_a_torn_tail(torn, tmp_path)


@pytest.mark.slow
def test_a_restarted_training_goes_on(suite, writer, reader, tmp_path):
    suite.assert_goes_on_after_a_restart(writer, reader, tmp_path)


@pytest.mark.long
def test_ten_thousand_tags(source, writer, reader, tmp_path):
    steps = [(step, {f"layer{i:04}/grad_norm": float(i) for i in range(10_000)}) for step in range(2)]
    write(writer, tmp_path, steps)
    assert ordered(source, reader.poll(limit=100_000).points) == ordered(source, points(steps))


@pytest.mark.slow
def test_numbers_that_are_not_finite(suite, writer, reader, tmp_path):
    suite.assert_reads_numbers_that_are_not_finite(writer, reader, tmp_path)


def test_odd_names(suite, writer, reader, tmp_path):
    suite.assert_reads_odd_names(writer, reader, tmp_path)


def test_a_file_that_is_still_empty(suite, logged):
    suite.assert_waits_for_an_empty_file(logged)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that not even root can read")
def test_a_file_that_cannot_be_read_is_complained_about_once(suite, logged, unreadable):
    reader = Reader(logged).poll()
    suite.assert_complains_once(reader, unreadable())


@pytest.mark.slow
def test_a_broken_record_is_skipped(suite, source, logged, broken):
    if source in DOCUMENTS:
        reader = Reader(logged).poll()
        assert not reader.points
        suite.assert_complains_of(reader, broken)
    else:
        suite.assert_skips_a_broken_record(logged, broken)


@functools.cache
def twice(name):
    """What a writer leaves of a training whose steps came twice."""
    with tempfile.TemporaryDirectory() as scratch:
        return contents(write(WRITERS[name](), Path(scratch, "logged"), STEPS * 2))


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("name", held("logged", "torn"))
def test_chunking_changes_nothing(name, data):
    whole = twice(name)
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, "copy")
        copy.mkdir()
        reader = Reader(copy)
        size = sum(map(len, whole.values()))
        cuts = data.draw(st.lists(st.integers(0, size), max_size=5))
        for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), size], strict=True):
            play(copy, whole, start, end)
            reader.poll(data.draw(st.integers(1, 9), "limit"), data.draw(st.integers(0, 3), "polls"))
        assert ordered(name, reader.poll(limit=5).points) == ordered(name, points(STEPS * 2))
        assert not reader.read_issues


@pytest.mark.slow
def test_nothing_is_written(suite, logged):
    suite.assert_writes_nothing(logged)


def test_a_run_can_be_sent_to_another_process(suite, logged):
    suite.assert_can_be_sent(logged)
