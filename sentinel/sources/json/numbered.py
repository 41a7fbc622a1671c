"""One JSON document of numbers for each epoch or step, such as AllenNLP's ``metrics_epoch_0.json``.

The documents of a directory whose names differ in their number alone are a stream of one log. A document that
is older than the one before it is left over from an earlier training, which wrote more of them.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.base import Chunk, Cursor, PollResult, ReadIssue
from sentinel.sources.json.documents import BrokenError, fingerprint, load
from sentinel.sources.readers.files import stamp
from sentinel.sources.readers.growing import nothing_new, unreadable
from sentinel.sources.readers.plain import flattened
from sentinel.sources.readers.records import Records, named
from sentinel.sources.readers.sniffing import COUNTS, is_log, remembered
from sentinel.sources.readers.splits import of_file, part_of_file

LEAST = 2
"""Documents that are a log; one alone may be the result of an evaluation."""

_NUMBER = lazy_pattern(
    r"(?P<counter>epoch|step|iter(?:ation)?)s?[-_ ]?(?P<number>\d{1,12})\.json\Z", re.IGNORECASE
)
"""The end of a document's name."""

_AT_ONCE = 10 * 10**9
"""Nanoseconds in which a copy writes the documents in any order."""


def are_numbered_log(directory: Path, names: Sequence[str]) -> bool:
    """Return whether some of the names in a directory are those of documents that are a log."""
    return any(_begins_log(directory / in_order[0]) for in_order in _in_order(names).values())


def _in_order(names: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return the names that differ in their number alone, in its order, by what stands before it."""
    kinds: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        if match := _NUMBER.search(name):
            kinds.setdefault(name[: match.start("number")], []).append((int(match["number"]), name))
    return {
        kind: [name for _, name in sorted(numbered)]
        for kind, numbered in kinds.items()
        if len(numbered) >= LEAST
    }


@remembered
def _begins_log(path: Path) -> bool:
    try:
        entry = _entry(path)
    except (OSError, BrokenError):
        return False
    stem = _NUMBER.sub("", path.name).strip("-_. ").lower()
    return entry is not None and is_log(stem, entry)


class NumberedDocuments(msgspec.Struct, frozen=True):
    """The numbered documents of one directory."""

    directory: Path

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return the documents that were added since ``cursor``; see `sentinel.sources.base.Source`."""
        try:
            kinds = _in_order([path.name for path in self.directory.iterdir()])
        except OSError as error:
            return unreadable(self.directory, cursor, error)
        try:
            results = {
                kind: _poll_kind(kind, [self.directory / name for name in names], cursor.get(kind, {}), limit)
                for kind, names in kinds.items()
                if kind in cursor or _begins_log(self.directory / names[0])
            }
        except _UnreadableError as error:
            return unreadable(error.path, cursor, error.cause)
        return PollResult(
            {**nothing_new(cursor).cursor, **{kind: result.cursor for kind, result in results.items()}},
            [chunk for result in results.values() for chunk in result.chunks],
            [complaint for result in results.values() for complaint in result.read_issues],
            any(result.more for result in results.values()),
        )


def _poll_kind(kind: str, paths: Sequence[Path], cursor: Cursor, limit: int) -> PollResult:
    """Return what the documents of one kind hold that was not read yet.

    The cursor holds the names and fingerprints of the first document and of the last one that was read.
    Raises _UnreadableError.
    """
    try:
        written = [path.lstat().st_mtime_ns for path in paths]
        paths = paths[: _of_last_training(written)]
        state = [len(paths), *max(map(stamp, paths), key=lambda each: each[-1])]
    except OSError:
        return PollResult(cursor)  # one of them just went; the next poll lists those that are there
    if state == cursor.get("state"):
        return PollResult(cursor)
    reading = _Reading(cursor)
    if not reading.finds_its_place(paths):
        return PollResult(cursor)
    more = reading.go_on(paths, limit)
    return PollResult(
        {**reading.memory(), "state": None if more else state}, reading.chunks(kind), reading.complaints, more
    )


class _UnreadableError(Exception):
    def __init__(self, path: Path, cause: OSError) -> None:
        super().__init__(str(cause))
        self.path = path
        self.cause = cause


class _Reading:
    """One poll of documents, from where a cursor stands."""

    def __init__(self, cursor: Cursor) -> None:
        self._first: Sequence[str] = cursor.get("first", ("", ""))
        self._last: Sequence[str] = cursor.get("last", ("", ""))
        self._known: Sequence[str] = cursor.get("broken", ())
        self._count: int = cursor.get("count", 0)
        self._restarted: bool = cursor.get("restarted", False)
        self._records = Records(cursor.get("records", {}))
        self.complaints: list[ReadIssue] = []

    def memory(self) -> dict[str, Any]:
        """Return the next cursor, but for the state of the documents."""
        return {
            "first": [*self._first],
            "last": [*self._last],
            "broken": [*self._known, *(str(complaint) for complaint in self.complaints)],
            "count": self._count,
            "restarted": self._restarted and not self._records,
            "records": self._records.memory(),
        }

    def chunks(self, kind: str) -> list[Chunk]:
        """Return the points of this poll."""
        return [self._records.chunk(kind.rstrip("-_ "), self._restarted)] if self._records else []

    def finds_its_place(self, paths: Sequence[Path]) -> bool:
        """Return whether one can go on; not while a copy writes anew what was read.

        If the document that was read last is another one now, or went with the first one, the training began
        anew. All is read again as well if a copy brought documents before it that were not there.
        """
        if not self._last[0]:
            return True
        names = [path.name for path in paths]
        name, mark = self._last if self._last[0] in names else self._first
        entry = self._entry(paths[names.index(name)]) if name in names else None
        if entry is None:
            return False
        is_last = name == self._last[0]
        is_same = fingerprint(entry) == mark and not (is_last and names.index(name) >= self._count)
        if not is_same:
            self._begin_anew()
        return is_last or not is_same

    def _begin_anew(self) -> None:
        self._first = self._last = ("", "")
        self._count = 0
        self._records = Records({})
        self._restarted = True

    def go_on(self, paths: Sequence[Path], limit: int) -> bool:
        """Read about ``limit`` points of further documents. Return whether more follow."""
        names = [path.name for path in paths]
        further = paths[names.index(self._last[0]) + 1 :] if self._last[0] else paths
        for at, path in enumerate(further):
            entry = self._entry(path)
            if entry is None:
                return False
            self._count += 1
            self._records.add(entry, self._count)
            self._last = path.name, fingerprint(entry)
            self._first = self._first if self._first[0] else self._last
            if len(self._records) >= limit:
                return at + 1 < len(further)
        return False

    def _entry(self, path: Path) -> Mapping[str, Any] | None:
        """Return what a document holds; nothing if it is broken, and None while it is being saved."""
        try:
            return _entry(path)
        except OSError as error:
            raise _UnreadableError(path, error) from None
        except BrokenError as error:
            if str(error.complaint) not in self._known:
                self.complaints.append(error.complaint)
            return {}


def _entry(path: Path) -> Mapping[str, Any] | None:
    """Return what a document holds, with its number if it counts nothing itself; None while it is saved.

    Raises OSError and BrokenError.
    """
    document = load(path)
    match = _NUMBER.search(path.name)
    if document is None or match is None:
        return None
    part = part_of_file(path.stem)
    numbers = flattened(document) if isinstance(document, dict) else {}
    entry = {of_file(name, part): value for name, value in numbers.items()}
    if named(entry, COUNTS) is not None:
        return entry
    return {"epoch" if match["counter"].lower() == "epoch" else "step": int(match["number"]), **entry}


def _of_last_training(times: Sequence[int]) -> int:
    """Return how many of the documents with these times of their last change the last training wrote."""
    falls = (count for count, (earlier, later) in enumerate(pairwise(times), 1) if later < earlier - _AT_ONCE)
    return next(falls, len(times))
