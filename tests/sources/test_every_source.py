"""What every source keeps to, whatever its format."""

import functools
import math
import pickle
import random
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
    PLAIN_NAMES,
    SENSELESS,
    STEPS,
    TEXTS,
    contents,
    files,
    held,
    ordered,
    play,
    points,
    write,
)
from tests.sources.writers import ONLINE, WRITERS

ODD_NAMES = [
    "spaces in a name",
    "a/b//c/",
    "Größe 損失 😀",
    "\x1b[31mred\x1b[0m",
    "right\u202eleft",
    "two\nlines",
    '"quoted" \\ {braces}',
    "long" * 300,
]


@pytest.mark.slow
def test_every_format_has_a_writer(tmp_path):
    for name, writer in WRITERS.items():
        write(writer(), tmp_path / name, STEPS)
    assert {run.format for run in discover([tmp_path]).runs} == set(formats())


def test_what_makes_no_sense_is_named_rightly():
    named = {name for reasons in SENSELESS.values() for name in reasons}
    assert named <= {*WRITERS, ONLINE}


@pytest.mark.slow
def test_a_growing_run_gives_exactly_what_was_written(source, writer, reader, tmp_path):
    writer.start(tmp_path)
    for count, (step, values) in enumerate(STEPS, 1):
        writer.log(step, values)
        seen = 0 if count == 1 and source in TEXTS else count
        assert ordered(source, reader.poll().points) == ordered(source, points(STEPS[:seen]))
    writer.close()
    assert ordered(source, reader.poll().points) == ordered(source, points(STEPS))
    assert not reader.read_issues
    assert not reader.restarts


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_pieces_give_the_same(source, writer, reader, tmp_path, seed):
    dice = random.Random(seed)
    writer.start(tmp_path)
    for step, values in STEPS:
        writer.log(step, values)
        if dice.random() < 0.5:
            reader.poll(dice.randint(1, 5), dice.randint(0, 3))
    writer.close()
    assert ordered(source, reader.poll(limit=3).points) == ordered(source, points(STEPS))
    assert not reader.read_issues
    assert not reader.restarts


@pytest.mark.long
def test_a_torn_tail_waits(source, torn, tmp_path):
    data = contents(torn)
    expected = ordered(source, points(STEPS))
    size = sum(map(len, data.values()))
    for cut in range(0, size, 1 + size // 300):
        copy = tmp_path / str(cut)
        copy.mkdir()
        play(copy, data, 0, cut)
        reader = Reader(copy).poll()
        assert ordered(source, reader.points) == expected[: len(reader.points)]
        play(copy, data, cut, size)
        assert ordered(source, reader.poll().points) == expected
        assert not reader.read_issues
        assert not reader.restarts


@pytest.mark.slow
def test_a_restarted_training_goes_on(source, writer, reader, tmp_path):
    write(writer, tmp_path, STEPS)
    reader.poll()
    write(writer, tmp_path, STEPS[4:])
    assert ordered(source, reader.poll().points) == ordered(source, points(STEPS + STEPS[4:]))
    again = Reader(reader.path, reader.clock).poll()
    assert ordered(source, again.points) == ordered(source, reader.points)
    assert not reader.read_issues


@pytest.mark.long
def test_ten_thousand_tags(source, writer, reader, tmp_path):
    steps = [(step, {f"layer{i:04}/grad_norm": float(i) for i in range(10_000)}) for step in range(2)]
    write(writer, tmp_path, steps)
    assert ordered(source, reader.poll(limit=100_000).points) == ordered(source, points(steps))


@pytest.mark.slow
def test_numbers_that_are_not_finite(source, writer, reader, tmp_path):
    steps = [(step, {"a": math.nan, "b": math.inf, "c": -math.inf, "d": 1.0}) for step in range(2)]
    write(writer, tmp_path, steps)
    assert ordered(source, reader.poll().points) == ordered(source, points(steps))


def test_odd_names(source, writer, reader, tmp_path):
    names = ["spaces in a name", "a/b/c", "a.b: c-d"] if source in PLAIN_NAMES else ODD_NAMES
    steps = [(step, dict.fromkeys(names, 0.5)) for step in range(3)]
    write(writer, tmp_path, steps)
    assert ordered(source, reader.poll().points) == ordered(source, points(steps))


def test_a_file_that_is_still_empty(logged):
    data = contents(logged)
    for path in files(logged):
        path.unlink()
        path.touch()
    reader = Reader(logged).poll()
    assert not reader.points
    play(logged, data, 0, sum(map(len, data.values())))
    assert reader.poll().points == points(STEPS)
    assert not reader.read_issues


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that not even root can read")
def test_a_file_that_cannot_be_read_is_complained_about_once(logged, unreadable):
    reader = Reader(logged).poll()
    path = unreadable()
    for _ in range(3):
        reader.poll()
    assert len(reader.read_issues) == 1
    assert reader.read_issues[0].startswith(f"{path}: ")
    assert reader.points == points(STEPS)


@pytest.mark.slow
def test_a_broken_record_is_skipped(source, logged, broken):
    reader = Reader(logged).poll()
    if source in DOCUMENTS:
        assert not reader.points
    else:
        assert reader.points[0] == points(STEPS)[0]
        assert reader.points[-1] == points(STEPS)[-1]
        assert len(reader.points) < len(points(STEPS))
    assert bool(reader.read_issues) != (source in TEXTS)
    assert all(c.startswith(f"{broken} at ") for c in reader.read_issues)


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
def test_nothing_is_written(logged):
    def seen():
        places = [logged, *logged.rglob("*")]
        return [(p, p.stat().st_mtime_ns, p.stat().st_ctime_ns, p.stat().st_size) for p in places]

    before = seen()
    Reader(logged).poll(limit=3)
    assert seen() == before


def test_a_run_can_be_sent_to_another_process(logged):
    runs = discover([logged]).runs
    sent = pickle.loads(pickle.dumps(runs))
    assert sent == runs != []
    assert [run.source.poll({}, 1000) for run in sent]
