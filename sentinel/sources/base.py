"""The contract between a log format and the rest of sentinel.

The module of a format defines ``FORMAT``, its name in reports, and ``find(directory, names)``, which returns
the runs of its format among the files of one directory. The ``Source`` of a run is then polled, each time
with the cursor that the last poll gave.

Every source keeps these rules, and the conformance suite tests them:

- A poll reads only what is new, in the order of the file, and at most about ``limit`` points.
- A torn last record means: wait. A later poll reads it again when it is whole, and ``rest`` when nothing
  more comes (`Flushable`).
- A broken record means: complain, skip it, go on.
- If a file shrank or differs, the source reads it from its start (``Chunk.restarted``). If a longer copy
  replaced the file, the source goes on where it was.
- A source never writes, executes or unpickles anything.
"""

import errno
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec
import numpy as np
from msgspec.structs import force_setattr, replace
from numpy.typing import NDArray

from sentinel.sources.identity import NO_LABEL, Label
from sentinel.sources.location import Location

Cursor = Mapping[str, Any]
"""Where a source stopped reading, as JSON-able data that only the source understands; ``{}`` at the start."""


class Chunk(msgspec.Struct, frozen=True):
    """Consecutive points of one stream.

    A *stream* holds the points of one writer: a process that appends to a file or to a chain of files. Points
    and steps have an order within a stream and none across streams. A stream in another directory than the
    run's own is called ``DIRECTORY/NAME``; it is written side by side with those of the run.

    The arrays have one entry for each point, or a row for each step and a column for each tag (`of_rows`). A
    chunk without points brings only settings.
    """

    stream: str
    tags: Sequence[str]
    tag: NDArray[np.uint32]  # index into tags
    step: NDArray[np.int64]
    time: NDArray[np.float64]  # seconds since the epoch; NaN where the log has no time
    value: NDArray[np.float64]  # NaN and infinities as logged
    restarted: bool = False  # the file began anew: as another training, or as the next part of a rotated log
    config: Mapping[str, Any] = msgspec.field(default_factory=dict)  # flat settings that precede these points
    label: str = ""  # of a file of several trainings: which one it is of, and with which word all tags begin
    unit: str = ""  # what its steps count, such as ``episode``, where the log names it

    def __post_init__(self) -> None:
        """Intern the tags: the runs of a fleet log the same ones, and hold each of them once."""
        force_setattr(self, "tags", [*map(sys.intern, self.tags)])

    @classmethod
    def of_rows(
        cls,
        stream: str,
        tags: Sequence[str],
        step: NDArray[np.int64],
        time: NDArray[np.float64],
        values: NDArray[np.float64],
        restarted: bool,
        unit: str = "",
    ) -> "Chunk":
        """Return a chunk of rows that each log all ``tags``.

        ``step`` and ``time`` have one entry for each row, and ``values`` has the shape rows x tags. Only
        ``values`` takes memory until the chunk is made ``flat``.
        """
        tag = np.arange(len(tags), dtype=np.uint32)
        tag, steps, times = np.broadcast_arrays(tag, step[:, None], time[:, None])
        return cls(stream, tags, tag, steps, times, values, restarted, unit=unit)

    @property
    def flat(self) -> "Chunk":
        """The same chunk with one entry for each point."""
        if self.value.ndim == 1:
            return self
        arrays = {name: getattr(self, name).ravel() for name in ("tag", "step", "time", "value")}
        return replace(self, **arrays)


def order_by_tag(tag: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the order that brings points of the same tag together and leaves them as they were otherwise.

    NumPy sorts 16 bits eight times as fast as 32, and few logs have more than 65,536 tags.
    """
    few = tag.max(initial=0) <= 0xFFFF
    return np.argsort(tag.astype(np.uint16) if few else tag, kind="stable")


def of_each_tag(tag: NDArray[np.uint32]) -> Iterator[slice]:
    """Return where the points of each tag are, once they are in the order of `order_by_tag`."""
    ends = np.flatnonzero(tag[1:] != tag[:-1]) + 1
    return (slice(*pair) for pair in pairwise([0, *ends.tolist(), len(tag)])) if len(tag) else iter(())


class ReadIssue(msgspec.Struct, frozen=True):
    """What could not be read in a log, for a person: the file, the place, the problem and what to do."""

    path: Location
    location: str  # "byte 1234", "line 17"; empty for the whole file
    problem: str

    def __str__(self) -> str:
        return f"{self.path}{f' at {self.location}' if self.location else ''}: {self.problem}"


class Line(msgspec.Struct, frozen=True):
    """A line that the training printed. ``time`` is NaN if the log does not tell it.

    ``step`` is the last step before the line, if the log holds both steps and lines.
    """

    time: float
    text: str
    step: int | None = None


class EndKind(StrEnum):
    """How a run ended, where its log says so."""

    FINISHED = "finished"
    CRASHED = "crashed"
    PREEMPTED = "preempted"


class Ending(msgspec.Struct, frozen=True):
    """That a run ended, and how one knows: "exit code 1 in the exit record".

    It is ``inferred`` where neither the log nor a server states it, so that the run may still go on. It is
    known because its process ``exited`` where this machine told so.
    """

    outcome: EndKind
    evidence: str
    inferred: bool = False
    exited: bool = False


class PollResult(msgspec.Struct, frozen=True):
    """The result of one poll. ``more`` is true if the limit ended the poll, and not the end of the log.

    ``config`` holds settings of the whole run. They count for streams that begin with this poll or later.
    Settings whose place in a stream is known belong to its chunks. ``ending`` is the last statement about the
    end of the run that this poll read. If a later poll brings points, the run goes on after all.
    ``label`` has what this poll read of the name that a tracker gave the run.
    """

    cursor: Cursor
    chunks: Sequence[Chunk] = ()
    read_issues: Sequence[ReadIssue] = ()
    more: bool = False
    config: Mapping[str, Any] = msgspec.field(default_factory=dict)  # run settings found in this poll, flat
    ending: Ending | None = None
    lines: Sequence[Line] = ()
    label: Label = NO_LABEL


def stopped(cursor: Cursor) -> str | None:
    """Return why nothing can be read from ``cursor`` on, and what to do; None if reading goes on.

    The reason is that the file is no log or cannot be read. A file that is gone gives no reason.
    """
    reason = cursor.get("unreadable")
    if isinstance(reason, str) and reason != os.strerror(errno.ENOENT):
        return f"the log cannot be read ({reason})"
    return cursor.get("refused") or None


class Source(Protocol):
    """Reads one run."""

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Read what was appended since ``cursor``; if nothing was, give an empty batch with the same cursor.

        Never raises an error because of what a log contains. An unreadable file becomes one complaint.
        """
        ...


@runtime_checkable
class Flushable(Protocol):
    """A source of logs that may end with what only their end makes sure: a last line without a line break."""

    def flush(self, cursor: Cursor) -> Sequence[Chunk]:
        """Return the points that are left at ``cursor``, where a poll came to the end, if the log is over.

        The cursor stays good for a log that goes on after all.
        """
        ...


def flush(source: Source, cursor: Cursor) -> Sequence[Chunk]:
    """Return the points, one entry each, that are left at ``cursor`` if the log is over; see `Flushable`."""
    return [chunk.flat for chunk in source.flush(cursor)] if isinstance(source, Flushable) else []


class Samples(msgspec.Struct, frozen=True):
    """Texts and images that were logged nearest to some steps: an event file for each step.

    ``problems`` says where none were looked for, and why.
    """

    events: Mapping[int, bytes]
    problems: Sequence[str]


@runtime_checkable
class Illustrated(Protocol):
    """A source whose log holds texts and images."""

    def samples(self, steps: Sequence[int]) -> Samples:
        """Return those nearest to each of the steps."""
        ...


class Run(msgspec.Struct, frozen=True):
    """A run that was found. ``path`` is its directory, file or address, and unique together with ``format``.

    A run in a database has the path of the database, followed by the name of the run there. ``copy`` is the
    path of a copy on this machine, if there is one. If the run is only a part of another run, ``part_of`` is
    the path of that run. ``part`` names the part of the training that it logs, such as `validation`, if the
    run's place tells that and its tags do not.
    ``also`` are directories outside of it that may hold streams of the run, whether they are there or not.
    ``has_parallel_streams`` says that all streams are written side by side, so each has as many attempts as
    the run: a stream holds one metric, or what one of several processes logs.
    ``is_one_of_several`` says that it holds one curve of a training that logs others elsewhere.
    """

    path: Location
    format: str
    source: Source
    copy: Path | None = None
    part_of: Path | None = None
    part: str = ""
    also: tuple[Path, ...] = ()
    has_parallel_streams: bool = False
    is_one_of_several: bool = False

    @property
    def local(self) -> Path | None:
        """The path on this machine; None for a run that is only behind an address."""
        return self.path if isinstance(self.path, Path) else self.copy

    @property
    def id(self) -> str:
        """A name that stays the same over restarts of sentinel, and is the same for watch and replay."""
        return f"{self.format}:{self.path}"
