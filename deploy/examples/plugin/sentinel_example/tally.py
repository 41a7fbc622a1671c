"""A format of lines with checksums, in files that end in `.tally`.

A line is the checksum of the rest, the step, and tags with their values, apart by tabs. Tags are quoted as in
an address, so that they may hold anything:

    8d0a9b4c	3	train/loss=0.25	lr=0.001
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np

from sentinel.sources.base import Chunk, Cursor, PollResult, ReadIssue, Run
from sentinel.sources.readers.growing import nothing_new, read_lines, unreadable
from sentinel.sources.readers.problems import skipped

FORMAT = "tally"
is_appended_text = True

MAX_LINE_BYTES = 1 << 20
"""A longer line is skipped in pieces."""

BYTES_PER_POINT = 24
"""A guess of how far to read for some points; a wrong one only costs time."""

SUFFIX = ".tally"


class Point(NamedTuple):
    """One value that was logged."""

    tag: str
    step: int
    value: float


def find(directory: Path, names: Sequence[str]) -> Iterator[Run]:
    """Yield the logs among the names of one directory."""
    for name in names:
        if name.endswith(SUFFIX):
            yield Run(directory / name, FORMAT, Tally(directory / name))


@dataclass(frozen=True)
class Tally:
    """One file."""

    path: Path

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return the points of the lines that were completed since ``cursor``."""
        try:
            read = read_lines(self.path, cursor.get("mark", {}), limit * BYTES_PER_POINT, MAX_LINE_BYTES)
        except OSError as error:
            return unreadable(self.path, cursor, error)
        if read is None:
            return nothing_new(cursor)
        lines = 0 if read.restarted else int(cursor.get("lines", 0))
        broken = 0 if read.restarted else int(cursor.get("broken", 0))
        points: list[Point] = []
        issues: list[ReadIssue] = []
        end = read.data.rfind(b"\n") + 1
        if not end and read.more:
            end = len(read.data)  # a line without an end
        for line in read.data[:end].splitlines():
            lines += 1
            try:
                points += parse(line)
            except ValueError as error:
                broken += 1
                if problem := skipped(str(error), broken):
                    issues.append(ReadIssue(self.path, f"line {lines}", problem))
        mark = read.mark(end, waiting=not read.more)
        chunks = [chunk_of(self.path.name, points, read.restarted)] if points or read.restarted else []
        return PollResult({"mark": mark, "lines": lines, "broken": broken}, chunks, issues, read.more)


def parse(line: bytes) -> list[Point]:
    """Return the points of a line. Raises ValueError for one that is broken."""
    checksum, _, rest = line.partition(b"\t")
    if f"{zlib.crc32(rest):08x}".encode() != checksum:
        raise ValueError("does not have the checksum that it names")
    step, *fields = rest.decode().split("\t")
    pairs = (field.rpartition("=") for field in fields)
    return [Point(unquote(tag), int(step), float(value)) for tag, _, value in pairs]


def chunk_of(stream: str, points: Sequence[Point], restarted: bool) -> Chunk:
    """Return points as a chunk."""
    tags = [*dict.fromkeys(point.tag for point in points)]
    index = {tag: number for number, tag in enumerate(tags)}
    return Chunk(
        stream,
        tags,
        np.array([index[point.tag] for point in points], np.uint32),
        np.array([point.step for point in points], np.int64),
        np.full(len(points), np.nan),  # a line tells no time
        np.array([point.value for point in points], np.float64),
        restarted,
    )
