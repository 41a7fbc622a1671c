"""TensorBoard event files.

A directory with event files is one run. A directory below it is a run of its own, unless it is one in which
``add_hparams`` of torch and tensorboardX leaves the settings of the run.

A directory `validation` beside a directory `train` belongs to that run if one process wrote both (see
`sentinel.sources.tensorboard.held_out`). Its files are streams of their own, because nothing orders the
points of two files, and its tags begin with `validation/`.

A process may write several files one after the other. They are one stream, in the order of the time and the
count in their names. What other processes write into the same directory are other streams. A stream whose
first point is later than all points before it resumes the stream that was read before it.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.base import Chunk, Cursor, PollResult, ReadIssue, Run, Samples
from sentinel.sources.readers.files import is_text
from sentinel.sources.readers.growing import Mark, Read, read_new
from sentinel.sources.readers.problems import Problem
from sentinel.sources.readers.splits import of_part
from sentinel.sources.tensorboard.add_scalars import is_of_one_curve, names_of_curve
from sentinel.sources.tensorboard.events import ScalarPoints, decode
from sentinel.sources.tensorboard.held_out import PARTS, held_out, part_in, possible_parts, training_of
from sentinel.sources.tensorboard.names import is_event_file, order, writer_in
from sentinel.sources.tensorboard.tfrecord import HEADER_BYTES, Frames, split

FORMAT = "tensorboard"

hidden_logs = (".guild", ".summary")
"""Where Guild AI and Sample Factory keep their event files."""

MAX_RECORD = 8 << 20
"""Bytes. A longer record holds images or the like, and is skipped. This bounds the memory of a poll."""

_MIN_READ_BYTES = 1 << 13  # at once
_MAX_READ_BYTES = 1 << 24  # at once
_BYTES_A_RECORD = 64  # a guess of how far to read for some records; a wrong one only costs time

_TOO_LONG = " and was skipped; scalars come in shorter ones. More as long are skipped silently"

_UNIX_TIME = lazy_pattern(r"\d{10}\.\d+")
_MAX_SETTINGS_BYTES = 1 << 16  # bytes; a log that begins with settings grows longer


def find(directory: Path, names: Sequence[str]) -> Iterator[Run]:
    """Yield the run whose event files lie in this directory, if there are some."""
    files = [directory / name for name in names if is_event_file(name)]
    if files:
        above = directory.parent
        nested = _UNIX_TIME.fullmatch(directory.name) or directory.name == above.name
        only_settings = nested and all(
            file.stat().st_size < _MAX_SETTINGS_BYTES and b"_hparams_/experiment" in file.read_bytes()
            for file in files
        )
        part_of = above if only_settings else training_of(directory)
        part = directory.name if directory.name in PARTS else ""
        also = tuple(possible_parts(directory))
        is_curve = is_of_one_curve(directory)
        yield Run(
            directory,
            FORMAT,
            EventFiles(directory, is_curve),
            part_of=part_of,
            part=part,
            also=also,
            is_one_of_several=is_curve,
        )


class EventFiles(msgspec.Struct, frozen=True):
    """The event files of one directory, which may hold one curve of a plot alone."""

    directory: Path
    is_curve: bool = False

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return the scalars that were appended since ``cursor``; see `sentinel.sources.base.Source`."""
        return _EventPoll(self.directory, self.is_curve, cursor, limit).batch()

    def samples(self, steps: Sequence[int]) -> Samples:
        """Return the texts and images nearest to each step; see `sentinel.sources.tensorboard.samples`."""
        from sentinel.sources.tensorboard.samples import samples  # reports alone need it

        files = sorted(path for path in self.directory.iterdir() if is_event_file(path.name))
        return samples(files, steps)


class _EventPoll:
    def __init__(self, directory: Path, is_curve: bool, cursor: Cursor, limit: int) -> None:
        self._directory = directory
        self._is_curve = is_curve
        self._marks: dict[str, Mark] = dict(cursor.get("files", {}))
        self._unreadable: dict[str, str] = dict(cursor.get("unreadable", {}))  # why, by name
        self._left = limit  # points
        self._chunks: list[Chunk] = []
        self._read_issues: list[ReadIssue] = []

    def batch(self) -> PollResult:
        streams = self._streams()
        for directory in held_out(self._directory):
            streams |= self._streams(f"{directory.name}/")
        # A stream may resume those before it, so it is read once they were read to their ends.
        more = any(self._read_stream(stream, names) for stream, names in streams.items())
        state = {"files": self._marks, "unreadable": self._unreadable}
        cursor = {key: entries for key, entries in state.items() if entries}
        return PollResult(cursor, self._chunks, self._read_issues, more)

    def _streams(self, beside: str = "") -> dict[str, list[str]]:
        """Return the file names of each stream, in order; those of a directory ``beside`` hold its name."""
        names: list[str] = []
        with self._reporting(beside), os.scandir(self._path(beside)) as entries:
            files = [entry for entry in entries if is_event_file(entry.name) and is_text(entry.name)]
            names = [entry.name for entry in files if entry.is_file()]
        streams: dict[str, list[str]] = {}
        for name in sorted(names, key=order):
            writer = writer_in(name)
            # The suffix distinguishes the writers of one process.
            stream = writer["process"] + (writer["suffix"] or "") if writer else name
            streams.setdefault(f"{beside}{stream}", []).append(f"{beside}{name}")
        return streams

    def _path(self, name: str) -> Path:
        """Return the path of an own file, or of one beside, whose name holds that of its directory."""
        return self._directory.parent / name if "/" in name else self._directory / name

    def _read_stream(self, stream: str, names: Sequence[str]) -> bool:
        """Read a stream, each file after the one before it was read to its end. True if more follows."""
        for name in names:
            if self._left <= 0:
                return True
            more = False
            with self._reporting(name):
                more = self._read_file(stream, name)
            if more:
                return True
        return False

    def _read_file(self, stream: str, name: str) -> bool:
        """Read a file. True if more follows."""
        path = self._path(name)
        mark = self._marks.get(name, {})
        size = min(max(self._left * _BYTES_A_RECORD, _MIN_READ_BYTES), _MAX_READ_BYTES)
        cut = _cut(path, mark, size, self._left + 1)  # the first record of a file has no point
        if cut is None:
            return False
        piece, frames = cut
        points = decode(frames, self._left)
        problems = [*frames.problems, *points.problems]
        consumed = frames.consumed
        needed = frames.needed
        lost = frames.lost
        if points.records < len(frames.starts):
            consumed = int(frames.starts[points.records])
            needed = 0
            lost = False
            problems = [problem for problem in problems if problem.offset < consumed]
        unread_bytes = piece.size - piece.offset - consumed
        overlong = mark.get("overlong", False) and not piece.restarted
        if MAX_RECORD < needed <= unread_bytes:
            if not overlong:
                problems.append(Problem(consumed, f"record is {needed >> 20} MiB long{_TOO_LONG}"))
            overlong = True
            consumed = consumed + needed
            unread_bytes = unread_bytes - needed
            needed = 0
        more = unread_bytes >= max(needed, HEADER_BYTES)
        restarted = piece.restarted or mark.get("restarted", False)
        tags = points.tags
        if path.parent != self._directory:
            tags = [of_part(tag, part_in(path.parent)) for tag in tags]
        elif self._is_curve:
            tags = names_of_curve(self._directory, tags)
        for part, settings in _pieces_of_points(points):
            columns = (points.tag[part], points.step[part], points.time[part], points.value[part])
            first = restarted and part.stop > part.start
            self._chunks.append(Chunk(stream, tags, *columns, first, settings))
            restarted = restarted and not first
        flags = {"lost": lost, "restarted": restarted, "overlong": overlong}
        self._marks[name] = piece.mark(consumed, waiting=not more) | {k: v for k, v in flags.items() if v}
        self._left -= max(len(points.value), 1)
        for problem in sorted(problems, key=lambda problem: problem.offset):
            self._read_issues.append(ReadIssue(path, f"byte {piece.offset + problem.offset}", problem.text))
        return more

    @contextmanager
    def _reporting(self, name: str) -> Iterator[None]:
        """Turn an OSError into a complaint, unless it was made before."""
        try:
            yield
        except FileNotFoundError:
            return  # it was there a moment ago, so it has nothing new
        except OSError as error:
            reason = error.strerror or str(error)
            if self._unreadable.get(name) != reason:
                problem = f"cannot be read ({reason}); trying again at every poll"
                self._read_issues.append(ReadIssue(self._path(name), "", problem))
            self._unreadable[name] = reason
        else:
            self._unreadable.pop(name, None)


def _pieces_of_points(points: ScalarPoints) -> Iterator[tuple[slice, Mapping[str, Any]]]:
    """Yield the points in pieces, each with the settings that precede it. A piece may have settings alone."""
    begin = 0
    config: dict[str, Any] = {}
    for at, news in [*points.settings, (len(points.value), {})]:
        if at > begin:
            yield slice(begin, at), config
            begin = at
            config = {}
        config = {**config, **news}
    if config:
        yield slice(begin, begin), config


def _cut(path: Path, mark: Mark, size: int, max_points: int) -> tuple[Read, Frames] | None:
    """Return about ``size`` new bytes as records. A longer record is read whole if it is not overlong."""
    piece = read_new(path, mark, size)
    if piece is None:
        return None
    frames = split(piece.data, max_points, bool(mark.get("lost")) and not piece.restarted, not piece.more)
    longest = min(piece.size - piece.offset, MAX_RECORD)
    if frames.consumed == 0 and len(piece.data) < frames.needed <= longest:
        return _cut(path, mark, frames.needed, max_points)
    return piece, frames
