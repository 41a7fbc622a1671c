"""Recognises logs that are known under another path: moved, renamed, copied, or a part of a rotated log.

A log is known by its content: the first bytes of one of its files and those last read. What is found under a
new path while the old one is gone is the same run, with its state, its incidents and what was sent of them. A
part of a rotated log beside its successor is no run of its own. A copy beside its original is of the same
training, so that its incidents are not told again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from sentinel.common.paths import is_directory, is_file
from sentinel.runs.copied_logs import was_written_at_once
from sentinel.runs.log import RunLog, StoredRun
from sentinel.runs.metadata import RunMetadata
from sentinel.runs.state import is_gone
from sentinel.runs.state_codec import unpacked
from sentinel.sources.base import Run
from sentinel.sources.location import Location, Url
from sentinel.sources.readers.growing import Mark, head_of, holds, marks_in
from sentinel.storage.store import RunRow, Store

_MAX_LOG_FILES = 100  # of a directory
_MIN_POINTS_OF_COPY = 20  # of a log, before another one may be a copy of it


class Relation(Enum):
    """What a newly found log is to a known one."""

    MOVED = auto()
    PART = auto()
    COPY = auto()


class _KnownLog(msgspec.Struct, frozen=True):
    """A known log, and how far each of its files was read."""

    id: str
    path: Location
    format: str
    metadata: RunMetadata
    marks: Sequence[Mark]


class KnownLogs(msgspec.Struct, frozen=True):
    """The known logs, by the first bytes of their files."""

    _by_head: Mapping[str, list[_KnownLog]] = msgspec.field(default_factory=dict)

    @staticmethod
    def of(logs: Iterable[RunLog], rows: Iterable[RunRow], store: Store) -> "KnownLogs":
        """Return the logs under watch, and those of further rows of the store that are gone."""
        present = [
            _KnownLog(log.run.id, log.run.path, log.run.format, log.metadata, marks_in(log.cursor))
            for log in logs
        ]
        by_head: dict[str, list[_KnownLog]] = {}
        for known_log in (*present, *_gone(rows, store)):
            heads = {mark["head"] for mark in (*known_log.marks, *known_log.metadata.parts)}
            for head in heads:
                by_head.setdefault(head, []).append(known_log)
        return KnownLogs(by_head)

    def relation(self, run: Run) -> tuple[Relation, str] | None:
        """Return what a new log is to a known one, and the id of that; None if it is none of them."""
        files = _log_files(run.path) if isinstance(run.path, Path) and self._by_head else []
        for path in files:
            for other in self._by_head.get(head_of(path), ()):
                relation = _relation(run, path, other)
                if relation is not None:
                    return relation, other.id
        return None


def _relation(run: Run, path: Path, other: _KnownLog) -> Relation | None:
    """Return what a new run with this file is to a known one; None if it is another one."""
    if run.format != other.format or not isinstance(other.path, Path):
        return None
    is_same = any(holds(path, mark) for mark in other.marks)
    if is_gone(other.path):
        return Relation.MOVED if is_same else None
    if path == run.path and path.parent == other.path.parent:
        was_read = any(holds(path, mark) for mark in other.metadata.parts)
        is_rotated = is_same and not any(holds(other.path, mark) for mark in other.marks)
        if was_read or is_rotated:
            return Relation.PART
    if is_same and other.metadata.points >= _MIN_POINTS_OF_COPY:
        with suppress(OSError):
            return Relation.COPY if was_written_at_once(path, keeps_time=True) else None
    return None


def _gone(rows: Iterable[RunRow], store: Store) -> Iterator[_KnownLog]:
    """Yield what the store knows of logs that are gone."""
    for row in rows:
        path = Path(row.path)
        is_there = Url.parse(row.path) is not None or not is_gone(path)
        state = None if is_there else store.run_state(row.id)
        if state is not None:
            with suppress(ValueError):  # of another version
                content: dict[str, Any] = unpacked(state)
                metadata = StoredRun.from_state(content).metadata
                yield _KnownLog(row.id, path, row.format, metadata, marks_in(content.get("cursor", {})))


def _log_files(path: Path) -> list[Path]:
    with suppress(OSError):
        files = (
            (log_file for log_file in path.iterdir() if is_file(log_file))
            if is_directory(path)
            else iter([path])
        )
        return [*islice(files, _MAX_LOG_FILES)]
    return []
