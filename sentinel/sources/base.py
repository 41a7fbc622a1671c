"""The contract between a log format and the rest: what a source yields and how it goes on.

A source module defines ``FORMAT`` (its name in reports) and ``find(directory, names)``, which looks
at the file names of one directory and returns the runs of its format that lie there. A run's
``Source`` is then polled with the cursor of the last poll.

Rules every source keeps (the conformance suite holds them):

- it reads only what is new and at most about ``limit`` points, in the order of the file;
- a torn last record means *wait*: it is read again when it is whole;
- a broken record means *complain, skip, go on*;
- a file that shrank or differs means *start this file again* (``Chunk.restarted``); one that was replaced
  by a longer copy of itself means *go on*;
- nothing is written, executed or unpickled.
"""

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sentinel.sources.places import Place

Cursor = Mapping[str, Any]
"""Where a source stopped; JSON-able, opaque to everybody else, ``{}`` at the start."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive points of one stream.

    A *stream* is one writer's sequence of points (a process that appends to a file or a chain of
    files); order and steps mean something within a stream and nothing across streams.
    The arrays have one entry a point, or a row for each step and a column for each tag (`of_rows`); a
    chunk without any only brings settings.
    """

    stream: str
    tags: Sequence[str]
    tag: NDArray[np.uint32]  # index into tags
    step: NDArray[np.int64]
    time: NDArray[np.float64]  # seconds since the epoch; NaN where the log has no time
    value: NDArray[np.float64]  # NaN and infinities as logged
    restarted: bool = False  # the file began anew: as another training, or as the next part of a rotated log
    config: Mapping[str, Any] = field(default_factory=dict)  # flat run settings that precede these points

    @classmethod
    def of_rows(
        cls,
        stream: str,
        tags: Sequence[str],
        step: NDArray[np.int64],
        time: NDArray[np.float64],
        values: NDArray[np.float64],
        restarted: bool,
    ) -> "Chunk":
        """Of rows that each log all ``tags``: a step and a time a row, ``values`` are rows x tags.

        Until it is made ``flat``, only ``values`` take memory.
        """
        tag = np.arange(len(tags), dtype=np.uint32)
        tag, steps, times = np.broadcast_arrays(tag, step[:, None], time[:, None])
        return cls(stream, tags, tag, steps, times, values, restarted)

    @property
    def flat(self) -> "Chunk":
        """The same with one entry a point."""
        if self.value.ndim == 1:
            return self
        arrays = {name: getattr(self, name).ravel() for name in ("tag", "step", "time", "value")}
        return replace(self, **arrays)


@dataclass(frozen=True)
class Complaint:
    """Something in a log that could not be read, for a person: file, place, what and the mend."""

    path: Place
    place: str  # "byte 1234", "line 17"; empty for the whole file
    problem: str

    def __str__(self) -> str:
        return f"{self.path}{f' at {self.place}' if self.place else ''}: {self.problem}"


@dataclass(frozen=True)
class Line:
    """A line that the training printed. ``time`` is NaN where the log has none.

    ``step`` is the last one that the log has before it, where the log holds the lines, too.
    """

    time: float
    text: str
    step: int | None = None


class Outcome(StrEnum):
    """How a run ended, where its log says so."""

    FINISHED = "finished"
    CRASHED = "crashed"
    PREEMPTED = "preempted"


@dataclass(frozen=True)
class Ending:
    """That a run ended, and how one knows: "exit code 1 in the exit record".

    It is ``inferred`` where neither the log nor a server states it, so that the run may still go on.
    """

    outcome: Outcome
    evidence: str
    inferred: bool = False


@dataclass(frozen=True)
class Batch:
    """What one poll yielded. ``more`` says that the limit ended it, not the log's end.

    ``config`` holds what the run says of itself as a whole: streams that begin with this poll or later are
    judged by it. Settings whose place in a stream is known belong into its chunks. ``ending`` is the last
    word of what was read in this poll on the run's end; points that follow in a later poll mean that it
    goes on after all.
    """

    cursor: Cursor
    chunks: Sequence[Chunk] = ()
    complaints: Sequence[Complaint] = ()
    more: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)  # run settings found in this poll, flat
    ending: Ending | None = None
    lines: Sequence[Line] = ()


def stopped(cursor: Cursor) -> str | None:
    """Why nothing can be read from ``cursor`` on, with the mend: of a file that is no log, or is unreadable.

    A file that is gone is another matter. It is None again once something could be read.
    """
    reason = cursor.get("unreadable")
    if isinstance(reason, str) and reason != os.strerror(errno.ENOENT):
        return f"the log cannot be read ({reason})"
    return cursor.get("refused") or None


class Source(Protocol):
    """Reads one run."""

    def poll(self, cursor: Cursor, limit: int) -> Batch:
        """What was appended since ``cursor``; an empty batch with the same cursor if nothing was.

        Never raises for what a log contains; an unreadable file becomes a complaint, said once.
        """
        ...


@dataclass(frozen=True)
class Run:
    """A run that was found: ``path`` is its directory, file or address, unique together with ``format``.

    The path of one of many runs in a database is the database's, followed by the run's name there.
    ``copy`` is the path of a copy on this machine, if there is one. ``part_of`` is the path of the run that
    this one is only a part of, if that is a run. ``part`` names the part of the training that it logs, such
    as `validation`, where its place says so and its tags do not.
    """

    path: Place
    format: str
    source: Source
    copy: Path | None = None
    part_of: Path | None = None
    part: str = ""

    @property
    def local(self) -> Path | None:
        """The path on this machine; None for a run that is only behind an address."""
        return self.path if isinstance(self.path, Path) else self.copy

    @property
    def id(self) -> str:
        """Stable over restarts of sentinel and the same for watch and replay."""
        return f"{self.format}:{self.path}"
