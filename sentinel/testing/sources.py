"""What every source of a file format keeps to, whoever wrote it, as tests for pytest."""

import json
import math
import pickle
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Protocol

import msgspec
import numpy as np
import pytest

from sentinel.sources.base import PollResult, Run, flush
from sentinel.sources.discovery import discover
from sentinel.sources.location import Location
from sentinel.sources.readers.plain import LATEST
from sentinel.sources.registry import formats

Steps = Sequence[tuple[int, Mapping[str, float]]]
"""What a training logs: steps, each with the values of some tags."""

Point = tuple[str, int, str]
"""Tag, step and value; the value as text, so that NaN equals NaN."""

STEPS: Steps = [(step, {"train/loss": 4.0 - step / 4, "lr": 2.0**-step}) for step in range(8)]

NAMES = (
    "spaces in a name",
    "a/b//c/",
    "Größe 損失 😀",
    "\x1b[31mred\x1b[0m",
    "right\u202eleft",
    "two\nlines",
    '"quoted" \\ {braces}',
    "long" * 300,
)
"""Tags that a format of any names can hold."""

BROKEN = b'"}{"}{"}{"'
"""Bytes that make no sense in any format."""

MAX_POLLS = 10_000
"""Polls of one run after which a test takes it that polling never ends."""

MAX_CUTS = 300
"""Places at which a log is cut in the test of a torn tail."""

SECONDS_BETWEEN_POLLS = 15.0

_UNREADABLE = Path("/proc/self/mem")
"""A file that not even root can read."""


class Writer(Protocol):
    """Writes one run into a directory the way a training library does; what was logged is on disk."""

    def start(self, directory: Path) -> None:
        """Begin, or go on after a restart."""
        ...

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log some values at a step."""
        ...

    def close(self) -> None:
        """End the run."""
        ...


class Clock(Protocol):
    """A clock that stands still until it is moved."""

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        ...


class Reader:
    """Reads the runs at a place as the pipeline does, poll by poll, and keeps what it has read.

    Cursors are turned to JSON and back between polls, as a restart does. A server is asked a quarter of a
    minute after the other, on ``clock``.
    """

    def __init__(self, path: Location, clock: Clock | None = None) -> None:
        self.path = path
        self.clock = clock
        self.points: list[Point] = []
        self.times: list[float] = []
        self.read_issues: list[str] = []
        self.restarts = 0
        self.batch = PollResult({})
        self.runs: dict[str, Run] = {}
        self.cursors: dict[str, str] = {}

    def poll(self, limit: int = 1000, polls: int = MAX_POLLS) -> "Reader":
        """Read what is new in all runs, with at most so many polls of each."""
        if self.clock is not None:
            self.clock.advance(SECONDS_BETWEEN_POLLS)
        self.runs.update((run.id, run) for run in discover([self.path]).runs)
        for run in self.runs.values():
            for _ in range(polls):
                cursor = json.loads(self.cursors.get(run.id, "{}"))
                self.batch = run.source.poll(cursor, limit)
                self.cursors[run.id] = json.dumps(self.batch.cursor, allow_nan=False)
                self._take(self.batch)
                if not self.batch.more:
                    break
            else:
                assert polls < MAX_POLLS, "polling never ends"
        return self

    def flush(self) -> "Reader":
        """Read what only the end of the logs makes sure."""
        for run in self.runs.values():
            for chunk in flush(run.source, json.loads(self.cursors[run.id])):
                self._take(PollResult({}, [chunk]))
        return self

    def _take(self, batch: PollResult) -> None:
        msgspec.msgpack.encode(batch.cursor)  # is how a watch keeps it
        self.read_issues += map(str, batch.read_issues)
        for chunk in (chunk.flat for chunk in batch.chunks):
            self.restarts += chunk.restarted
            assert len(chunk.tag) == len(chunk.step) == len(chunk.time) == len(chunk.value)
            assert chunk.step.dtype == np.int64
            assert (np.isnan(chunk.time) | ((chunk.time >= 0) & (chunk.time < LATEST))).all()
            "".join(chunk.tags).encode()  # raises for what no file or database can keep
            tags = [chunk.tags[i] for i in chunk.tag]
            self.points += zip(tags, chunk.step.tolist(), map(str, chunk.value.tolist()), strict=True)
            self.times += chunk.time.tolist()


class SourceConformance:
    """The tests of one format whose logs are files. A subclass names it and makes its writer.

    What a format cannot have, the subclass says by the other members.
    """

    format: ClassVar[str]
    """The ``FORMAT`` of the source."""

    names: ClassVar[Sequence[str]] = NAMES
    """Tags that the format can hold."""

    steps_until_found: ClassVar[int] = 1
    """Steps after which discovery takes the file for a log."""

    has_an_order: ClassVar[bool] = True
    """Whether the points come as they were logged; otherwise there is an order only within each tag."""

    can_be_torn: ClassVar[bool] = True
    """Whether a reader can meet the first bytes of a log without those that follow."""

    can_be_broken: ClassVar[bool] = True
    """Whether bytes in the middle of a log can be broken, and its other records be read."""

    complains: ClassVar[bool] = True
    """Whether it complains of broken bytes; in a format of free text they may be text."""

    def writer(self) -> Writer:
        """Return a new writer of the format."""
        raise NotImplementedError

    def ordered(self, points: Sequence[Point]) -> Sequence[Point]:
        """Return points in the order in which they must come."""
        return points if self.has_an_order else sorted(points, key=lambda point: point[0])

    # Tests

    def test_its_runs_are_found(self, tmp_path: Path) -> None:
        assert self.format in formats(), "no entry point names it"
        write(self.writer(), tmp_path, STEPS)
        assert {run.format for run in discover([tmp_path]).runs} == {self.format}

    def test_a_growing_run_gives_exactly_what_was_written(self, tmp_path: Path) -> None:
        self.assert_follows(self.writer(), Reader(tmp_path), tmp_path)

    @pytest.mark.parametrize("seed", range(3))
    def test_pieces_give_the_same(self, tmp_path: Path, seed: int) -> None:
        self.assert_reads_in_pieces(self.writer(), Reader(tmp_path), tmp_path, seed)

    def test_a_torn_tail_waits(self, tmp_path: Path) -> None:
        if not self.can_be_torn:
            pytest.skip("a log of this format is whole or not there")
        self.assert_waits_for_a_torn_tail(write(self.writer(), tmp_path / "logged", STEPS), tmp_path)

    @pytest.mark.parametrize("seed", range(10))
    def test_chunking_changes_nothing(self, tmp_path: Path, seed: int) -> None:
        if not self.can_be_torn:
            pytest.skip("a log of this format is whole or not there")
        log_files = contents(write(self.writer(), tmp_path / "logged", [*STEPS, *STEPS]))
        size = sum(map(len, log_files.values()))
        dice = random.Random(seed)  # noqa: S311  it only has to be the same every time
        cuts = sorted(dice.randint(0, size) for _ in range(5))
        copy = tmp_path / "copy"
        copy.mkdir()
        reader = Reader(copy)
        for begin, end in zip([0, *cuts], [*cuts, size], strict=True):
            play(copy, log_files, begin, end)
            reader.poll(dice.randint(1, 9), dice.randint(0, 3))
        assert self.ordered(reader.poll(limit=5).points) == self.ordered(points([*STEPS, *STEPS]))
        assert not reader.read_issues

    def test_a_restarted_training_goes_on(self, tmp_path: Path) -> None:
        self.assert_goes_on_after_a_restart(self.writer(), Reader(tmp_path), tmp_path)

    def test_numbers_that_are_not_finite(self, tmp_path: Path) -> None:
        self.assert_reads_numbers_that_are_not_finite(self.writer(), Reader(tmp_path), tmp_path)

    def test_odd_names(self, tmp_path: Path) -> None:
        self.assert_reads_odd_names(self.writer(), Reader(tmp_path), tmp_path)

    def test_a_file_that_is_still_empty(self, tmp_path: Path) -> None:
        self.assert_waits_for_an_empty_file(write(self.writer(), tmp_path / "logged", STEPS))

    def test_a_broken_record_is_skipped(self, tmp_path: Path) -> None:
        if not self.can_be_broken:
            pytest.skip("a log of this format is read as a whole or not at all")
        directory = write(self.writer(), tmp_path / "logged", STEPS)
        self.assert_skips_a_broken_record(directory, break_largest_file(directory))

    def test_a_file_that_cannot_be_read_is_complained_about_once(self, tmp_path: Path) -> None:
        if not _UNREADABLE.exists():
            pytest.skip("needs a file that not even root can read")
        directory = write(self.writer(), tmp_path / "logged", STEPS)
        reader = Reader(directory).poll()
        path = largest(directory)
        path.unlink()
        path.symlink_to(_UNREADABLE)
        self.assert_complains_once(reader, path)

    def test_nothing_is_written(self, tmp_path: Path) -> None:
        self.assert_writes_nothing(write(self.writer(), tmp_path / "logged", STEPS))

    def test_a_run_can_be_sent_to_another_process(self, tmp_path: Path) -> None:
        self.assert_can_be_sent(write(self.writer(), tmp_path / "logged", STEPS))

    # What the tests hold, of any writer and any reader

    def assert_follows(self, writer: Writer, reader: Reader, directory: Path) -> None:
        """Check that each step is there at the poll that follows it, and nothing else."""
        writer.start(directory)
        for count, (step, values) in enumerate(STEPS, 1):
            writer.log(step, values)
            visible = count if count >= self.steps_until_found else 0
            assert self.ordered(reader.poll().points) == self.ordered(points(STEPS[:visible]))
        writer.close()
        assert self.ordered(reader.poll().points) == self.ordered(points(STEPS))
        assert not reader.read_issues
        assert not reader.restarts

    def assert_reads_in_pieces(self, writer: Writer, reader: Reader, directory: Path, seed: int) -> None:
        """Check that polls at odd times, with odd limits, give the same points."""
        dice = random.Random(seed)  # noqa: S311  it only has to be the same every time
        writer.start(directory)
        for step, values in STEPS:
            writer.log(step, values)
            if dice.random() < 0.5:
                reader.poll(dice.randint(1, 5), dice.randint(0, 3))
        writer.close()
        assert self.ordered(reader.poll(limit=3).points) == self.ordered(points(STEPS))
        assert not reader.read_issues
        assert not reader.restarts

    def assert_waits_for_a_torn_tail(self, directory: Path, scratch: Path) -> None:
        """Check that the points before any cut are right, and that the rest comes with the bytes."""
        log_files = contents(directory)
        expected = self.ordered(points(STEPS))
        size = sum(map(len, log_files.values()))
        for cut in range(0, size, 1 + size // MAX_CUTS):
            copy = scratch / str(cut)
            copy.mkdir()
            play(copy, log_files, 0, cut)
            reader = Reader(copy).poll()
            assert self.ordered(reader.points) == expected[: len(reader.points)]
            play(copy, log_files, cut, size)
            assert self.ordered(reader.poll().points) == expected
            assert not reader.read_issues
            assert not reader.restarts

    def assert_goes_on_after_a_restart(self, writer: Writer, reader: Reader, directory: Path) -> None:
        """Check that steps count twice which a training logs again after a restart."""
        write(writer, directory, STEPS)
        reader.poll()
        write(writer, directory, STEPS[4:])
        assert self.ordered(reader.poll().points) == self.ordered(points([*STEPS, *STEPS[4:]]))
        again = Reader(reader.path, reader.clock).poll()
        assert self.ordered(again.points) == self.ordered(reader.points)
        assert not reader.read_issues

    def assert_reads_numbers_that_are_not_finite(
        self, writer: Writer, reader: Reader, directory: Path
    ) -> None:
        """Check that NaN and the infinities come as they were logged."""
        values = {"a": math.nan, "b": math.inf, "c": -math.inf, "d": 1.0}
        self._assert_reads([(step, values) for step in range(2)], writer, reader, directory)

    def assert_reads_odd_names(self, writer: Writer, reader: Reader, directory: Path) -> None:
        """Check that tags come as they were logged."""
        values = dict.fromkeys(self.names, 0.5)
        self._assert_reads([(step, values) for step in range(3)], writer, reader, directory)

    def _assert_reads(self, steps: Steps, writer: Writer, reader: Reader, directory: Path) -> None:
        write(writer, directory, steps)
        assert self.ordered(reader.poll().points) == self.ordered(points(steps))

    def assert_waits_for_an_empty_file(self, directory: Path) -> None:
        """Check that a file that was only created gives nothing yet, and no complaint."""
        log_files = contents(directory)
        for path in files(directory):
            path.unlink()
            path.touch()
        reader = Reader(directory).poll()
        assert not reader.points
        play(directory, log_files, 0, sum(map(len, log_files.values())))
        assert reader.poll().points == points(STEPS)
        assert not reader.read_issues

    def assert_skips_a_broken_record(self, directory: Path, path: Path) -> None:
        """Check that all but the broken bytes is read, and that a person learns where they are."""
        reader = Reader(directory).poll()
        assert reader.points[0] == points(STEPS)[0]
        assert reader.points[-1] == points(STEPS)[-1]
        assert len(reader.points) < len(points(STEPS))
        self.assert_complains_of(reader, path)

    def assert_complains_of(self, reader: Reader, path: Path) -> None:
        """Check that what the reader says of a broken file names the file and the place."""
        assert bool(reader.read_issues) == self.complains
        assert all(issue.startswith(f"{path} at ") for issue in reader.read_issues)

    def assert_complains_once(self, reader: Reader, path: Path) -> None:
        """Check that a file that cannot be read any more is one complaint and costs no point."""
        for _ in range(3):
            reader.poll()
        assert len(reader.read_issues) == 1
        assert reader.read_issues[0].startswith(f"{path}: ")
        assert reader.points == points(STEPS)

    def assert_writes_nothing(self, directory: Path) -> None:
        """Check that no file changes when it is read, and that none is added."""
        before = _status(directory)
        Reader(directory).poll(limit=3)
        assert _status(directory) == before

    def assert_can_be_sent(self, directory: Path) -> None:
        """Check that a run can be pickled, because other processes read runs, too."""
        runs = discover([directory]).runs
        copies = pickle.loads(pickle.dumps(runs))  # noqa: S301
        assert copies == runs != []
        assert [run.source.poll({}, 1000) for run in copies]


def write(writer: Writer, directory: Path, steps: Steps) -> Path:
    """Have a writer log some steps into a directory."""
    directory.mkdir(exist_ok=True)
    writer.start(directory)
    for step, values in steps:
        writer.log(step, values)
    writer.close()
    return directory


def points(steps: Steps) -> list[Point]:
    """Return what a source must give of some steps."""
    return [(tag, step, str(float(value))) for step, values in steps for tag, value in values.items()]


def files(directory: Path) -> list[Path]:
    """Return the files below a directory."""
    return sorted(path for path in directory.rglob("*") if path.is_file())


def largest(directory: Path) -> Path:
    """Return the largest file below a directory."""
    return max(files(directory), key=lambda path: path.stat().st_size)


def break_largest_file(directory: Path) -> Path:
    """Overwrite some bytes in the middle of the largest file, and return it."""
    path = largest(directory)
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(content[:middle] + BROKEN + content[middle + len(BROKEN) :])
    return path


def contents(directory: Path) -> dict[Path, bytes]:
    """Return the bytes of the files below a directory."""
    return {path.relative_to(directory): path.read_bytes() for path in files(directory)}


def play(directory: Path, log_files: Mapping[Path, bytes], begin: int, end: int) -> None:
    """Append what lies between two places of the files' bytes, one file behind the other."""
    for name, content in log_files.items():
        if part := content[max(begin, 0) : max(end, 0)]:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            with (directory / name).open("ab") as file:
                file.write(part)
        begin -= len(content)
        end -= len(content)


def _status(directory: Path) -> list[tuple[Path, int, int, int]]:
    statuses = ((path, path.stat()) for path in [directory, *directory.rglob("*")])
    return [(path, s.st_mtime_ns, s.st_ctime_ns, s.st_size) for path, s in statuses]
