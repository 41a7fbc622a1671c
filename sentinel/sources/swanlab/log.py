"""SwanLab's runs on disk, whether swanlab sent them to a server or not.

A ``run-*.swanlab`` file is one run and one stream. Before SwanLab 0.8 it is called ``backup.swanlab``.
swanlab appends to it all that it would send: the metrics, the console output and finally how the run ended.
It buffers 8 KiB, so its log is some hundred points behind the training.

Metrics of the machine, such as the load of the GPU, count steps of their own and are left out.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.base import Chunk, Cursor, Ending, Line, PollResult, ReadIssue, Run
from sentinel.sources.identity import Label
from sentinel.sources.readers.growing import Read, nothing_new, unreadable
from sentinel.sources.readers.leveldb import FileHeader, Log, read_log
from sentinel.sources.readers.problems import summed
from sentinel.sources.swanlab.messages import JSON_VERSION, PROTOBUF_VERSION, Scalar, parse

FORMAT = "swanlab"

_SWANLAB_HEADER = FileHeader("SwanLab", b":SWL\xd6\xe1", [JSON_VERSION, PROTOBUF_VERSION])
_SWANLAB_NAME = lazy_pattern(r"run-.+\.swanlab|backup\.swanlab", re.DOTALL)
_RUN_DIRECTORY = lazy_pattern(r"run-\d{8}_\d{6}-.+")
_INTERNAL = ("console", "debug", "logs", "media")  # directories of a run that repeat its log, or hold files
_OF_THE_MACHINE = "__swanlab__."  # beginning of names
_BYTES_A_POINT = 80  # a guess of how far to read for some points; a wrong one only costs time


def find(directory: Path, names: Sequence[str]) -> Iterator[Run]:
    """Yield the runs in this directory. A run that has the directory for itself has its path."""
    is_own = _RUN_DIRECTORY.fullmatch(directory.name)
    for name in filter(_SWANLAB_NAME.fullmatch, names):
        yield Run(directory if is_own else directory / name, FORMAT, SwanLabFile(directory / name))


def is_internal(directory: str) -> bool:
    """Return whether a directory of a run holds only what its log holds as well, or no numbers."""
    above, _, name = directory.rpartition("/")
    return name in _INTERNAL and _RUN_DIRECTORY.fullmatch(above.rpartition("/")[2]) is not None


class SwanLabFile(msgspec.Struct, frozen=True):
    """One ``.swanlab`` file."""

    path: Path

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return what was logged since ``cursor``; see `sentinel.sources.base.Source`."""
        try:
            news = read_log(self.path, cursor.get("mark", {}), limit * _BYTES_A_POINT)
        except OSError as error:
            return unreadable(self.path, cursor, error)
        if news is None:
            return nothing_new(cursor)
        piece, log = news
        return _batch(self.path, {"restarted": True} if piece.restarted else cursor, piece, log, limit)


def _batch(path: Path, cursor: Cursor, piece: Read, log: Log, limit: int) -> PollResult:
    """Return the content of the first records, up to ``limit`` points."""
    version: int | None = cursor.get("version")
    restarted: bool = cursor.get("restarted", False)
    if piece.offset == 0:
        try:
            version = _SWANLAB_HEADER.version(piece.data)
        except ValueError as error:
            mark = piece.mark(len(piece.data), waiting=True)
            return PollResult(
                {"mark": mark, "refused": str(error)}, read_issues=[ReadIssue(path, "", str(error))]
            )
    if version is None:  # the header is torn, or the file was refused before
        return PollResult(
            {**cursor, "mark": piece.mark(len(piece.data) if piece.offset else 0, waiting=True)}
        )
    messages = _Messages()
    messages.read(log, version, limit)
    scalars = messages.scalars
    consumed = messages.end if len(scalars) >= limit else log.consumed
    more = piece.more or consumed < log.consumed
    problems = [problem for problem in log.problems if problem.offset < consumed]
    problems += summed(np.array(messages.foreign), "record is no message of SwanLab's and was skipped")
    complaints = [
        ReadIssue(path, f"byte {piece.offset + problem.offset}", problem.text) for problem in problems
    ]
    state = {
        "mark": piece.mark(consumed, waiting=not more),
        "version": version,
        "restarted": restarted and not scalars,
    }
    chunks = [_scalars_chunk(path.name, scalars, restarted)] if scalars else []
    return PollResult(
        state, chunks, complaints, more, ending=messages.ending, lines=messages.lines, label=messages.label
    )


class _Messages(msgspec.Struct):
    """What the first records of a piece of a log hold."""

    scalars: list[Scalar] = msgspec.field(default_factory=list)
    lines: list[Line] = msgspec.field(default_factory=list)
    foreign: list[int] = msgspec.field(default_factory=list)  # about where records begin that are no messages
    ending: Ending | None = None
    label: Label = msgspec.field(default_factory=Label)
    end: int = 0  # behind the last record

    def read(self, log: Log, version: int, limit: int) -> None:
        """Read records until there are so many points."""
        for record, end in zip(log.records, log.ends, strict=True):
            try:
                content = parse(record, version)
            except ValueError:
                self.foreign.append(self.end)
                content = None
            match content:
                case Scalar() if not content.key.startswith(_OF_THE_MACHINE):
                    self.scalars.append(content)
                case Line():
                    self.lines.append(content)
                case Ending():
                    self.ending = content
                case Label():
                    self.label = self.label.updated(content)
            self.end = end
            if len(self.scalars) >= limit:
                return


def _scalars_chunk(stream: str, scalars: Sequence[Scalar], restarted: bool) -> Chunk:
    keys, steps, times, values = zip(*scalars, strict=True)
    tags = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return Chunk(
        stream,
        list(tags),
        np.array([tags[key] for key in keys], np.uint32),
        np.array(steps, np.int64),
        np.array(times, np.float64),
        np.array(values, np.float64),
        restarted,
    )
