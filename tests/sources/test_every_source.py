"""What every source keeps to, whatever its format."""

import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.sources.discovery import formats
from tests.sources.reading import Reader
from tests.sources.writers import DOCUMENTS, PLAIN_NAMES, REWRITTEN, TEXTS, WHOLES, WRITERS

STEPS = [(step, {"train/loss": 4.0 - step / 4, "lr": 2.0**-step}) for step in range(8)]
OTHER_STEPS = [(step, {"train/loss": 8.0}) for step in range(4)]
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
BROKEN = b'"}{"}{"}{"'


def pytest_generate_tests(metafunc):
    if "format_name" in metafunc.fixturenames:
        excluded = WHOLES if "logged" in metafunc.fixturenames else ()
        metafunc.parametrize("format_name", [name for name in formats() if name not in excluded])


@pytest.fixture
def writer(format_name):
    return WRITERS[format_name]()


@pytest.fixture
def logged(writer, tmp_path):
    """The file of a run that logged STEPS; its bytes may be played back anywhere under the same name."""
    return write(writer, tmp_path / "logged", STEPS)


def write(writer, directory, steps):
    directory.mkdir(exist_ok=True)
    before = set(directory.iterdir())
    writer.start(directory)
    for step, values in steps:
        writer.log(step, values)
    writer.close()
    return min(set(directory.iterdir()) - before or before)


def points(steps):
    return [(tag, step, str(float(value))) for step, values in steps for tag, value in values.items()]


def test_every_format_has_a_writer():
    assert set(formats()) <= set(WRITERS)


def test_a_growing_run_gives_exactly_what_was_written(format_name, writer, tmp_path):
    reader = Reader(tmp_path)
    writer.start(tmp_path)
    for count, (step, values) in enumerate(STEPS, 1):
        writer.log(step, values)
        seen = 0 if count == 1 and format_name in TEXTS else count
        assert reader.poll().points == points(STEPS[:seen])
    writer.close()
    assert reader.poll().points == points(STEPS)
    assert not reader.complaints
    assert not reader.restarts


def test_a_torn_tail_waits(logged, tmp_path):
    data = logged.read_bytes()
    for cut in range(len(data)):
        copy = tmp_path / str(cut) / logged.name
        copy.parent.mkdir()
        copy.write_bytes(data[:cut])
        reader = Reader(copy.parent).poll()
        assert reader.points == points(STEPS)[: len(reader.points)]
        with copy.open("ab") as file:
            file.write(data[cut:])
        assert reader.poll().points == points(STEPS)
        assert not reader.complaints
        assert not reader.restarts


def test_a_restarted_training_goes_on(writer, tmp_path):
    reader = Reader(tmp_path)
    write(writer, tmp_path, STEPS)
    reader.poll()
    write(writer, tmp_path, STEPS[4:])
    assert reader.poll().points == points(STEPS + STEPS[4:])
    assert Reader(tmp_path).poll().points == reader.points
    assert not reader.complaints


@pytest.mark.parametrize("first_half_read", [True, False])
def test_a_replaced_file_is_read_again(writer, logged, tmp_path, first_half_read):
    reader = Reader(logged.parent)
    if first_half_read:
        reader.poll(limit=4, polls=2)
    else:
        reader.poll()
    before = len(reader.points)
    write(writer, tmp_path / "other", OTHER_STEPS).replace(logged)
    assert reader.poll().points[before:] == points(OTHER_STEPS)
    assert reader.restarts == 1


@pytest.mark.parametrize("steps", [OTHER_STEPS, OTHER_STEPS * 9], ids=["shorter", "longer"])
def test_a_file_that_was_written_anew_is_read_again(writer, logged, tmp_path, steps):
    reader = Reader(logged.parent).poll()
    logged.write_bytes(write(writer, tmp_path / "other", steps).read_bytes())
    assert reader.poll().points == points(STEPS) + points(steps)
    assert reader.restarts == 1


def test_a_file_that_was_emptied_is_read_again(format_name, logged):
    data = logged.read_bytes()
    reader = Reader(logged.parent).poll()
    logged.write_bytes(b"")
    assert reader.poll().points == points(STEPS)
    logged.write_bytes(data)
    times = 1 if format_name in REWRITTEN else 2
    assert reader.poll().points == times * points(STEPS)
    assert reader.restarts == times - 1


def test_ten_thousand_tags(writer, tmp_path):
    steps = [(step, {f"layer{i}/grad_norm": float(i) for i in range(10_000)}) for step in range(2)]
    write(writer, tmp_path, steps)
    assert Reader(tmp_path).poll(limit=100_000).points == points(steps)


def test_numbers_that_are_not_finite(writer, tmp_path):
    steps = [(step, {"a": math.nan, "b": math.inf, "c": -math.inf, "d": 1.0}) for step in range(2)]
    write(writer, tmp_path, steps)
    assert Reader(tmp_path).poll().points == points(steps)


def test_odd_names(format_name, writer, tmp_path):
    names = ["spaces in a name", "a/b/c", "a.b: c-d"] if format_name in PLAIN_NAMES else ODD_NAMES
    steps = [(step, dict.fromkeys(names, 0.5)) for step in range(3)]
    write(writer, tmp_path, steps)
    assert Reader(tmp_path).poll().points == points(steps)


def test_a_file_that_is_still_empty(logged):
    data = logged.read_bytes()
    logged.unlink()
    logged.touch()
    reader = Reader(logged.parent).poll()
    assert not reader.points
    logged.write_bytes(data)
    assert reader.poll().points == points(STEPS)
    assert not reader.complaints


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that not even root can read")
def test_a_file_that_cannot_be_read_is_complained_about_once(logged, tmp_path):
    reader = Reader(logged.parent).poll()
    logged.rename(tmp_path / "kept")
    logged.symlink_to("/proc/self/mem")
    for _ in range(3):
        reader.poll()
    assert len(reader.complaints) == 1
    assert reader.complaints[0].startswith(f"{logged}: ")
    assert reader.points == points(STEPS)


def test_a_broken_record_is_skipped(format_name, logged):
    data = logged.read_bytes()
    middle = len(data) // 2
    logged.write_bytes(data[:middle] + BROKEN + data[middle + len(BROKEN) :])
    reader = Reader(logged.parent).poll()
    if format_name in DOCUMENTS:
        assert not reader.points
    else:
        assert reader.points[0] == points(STEPS)[0]
        assert reader.points[-1] == points(STEPS)[-1]
        assert len(reader.points) < len(points(STEPS))
    assert bool(reader.complaints) != (format_name in TEXTS)
    assert all(c.startswith(f"{logged} at ") for c in reader.complaints)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("name", [name for name in formats() if name not in WHOLES])
def test_chunking_changes_nothing(name, data):
    with tempfile.TemporaryDirectory() as scratch:
        logged = write(WRITERS[name](), Path(scratch, "logged"), STEPS * 2)
        whole = logged.read_bytes()
        copy = Path(scratch, "copy", logged.name)
        copy.parent.mkdir()
        reader = Reader(copy.parent)
        cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=5))
        for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(whole)], strict=True):
            with copy.open("ab") as file:
                file.write(whole[start:end])
            reader.poll(data.draw(st.integers(1, 9), "limit"), data.draw(st.integers(0, 3), "polls"))
        assert reader.poll(limit=5).points == points(STEPS * 2)
        assert not reader.complaints


def test_nothing_is_written(logged):
    def seen():
        places = [logged.parent, *logged.parent.iterdir()]
        return [(p, p.stat().st_mtime_ns, p.stat().st_ctime_ns, p.stat().st_size) for p in places]

    before = seen()
    Reader(logged.parent).poll(limit=3)
    assert seen() == before
