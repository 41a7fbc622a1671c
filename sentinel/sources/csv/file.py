"""One CSV file, read while it grows: the rows below its header as points.

Several loggers rewrite the file when a new metric appears, so that all rows have a cell for it. Fingerprints
show which rows were read before, and these are not read twice. If a row differs, the training began anew. If
the file became shorter but does not differ, somebody is still writing it.
"""

import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from sentinel.sources.base import Chunk, Cursor, PollResult, ReadIssue
from sentinel.sources.csv.header import INDEX_NAMES, CsvRows, Header, read_header
from sentinel.sources.csv.points import CsvAxis, RowFingerprints, points
from sentinel.sources.csv.rows import read_rows
from sentinel.sources.readers.files import open_log, stamp
from sentinel.sources.readers.growing import (
    Read,
    nothing_new,
    read_lines,
    read_rest,
    read_text,
    size_of,
    unreadable,
)
from sentinel.sources.readers.problems import skipped
from sentinel.sources.readers.splits import ONLY_A_PART, of_file, part_of_file
from sentinel.sources.readers.words import says_metric

MAX_LINE = 4 << 20
"""Bytes. A file with a longer line is no log."""

_BYTES_A_POINT = 20  # a guess of how far to read for some points; a wrong one only costs time
_MIN_READ = 1 << 16
_MAX_READ = 24 << 20  # bytes; this bounds the memory of a poll
_TAIL_BYTES = 64


def _with_exported_names(path: Path, header: Header | None) -> Header | None:
    """Return the header with the tags that an export hides.

    TensorBoard puts the tag into the file name, and so do people whose `loss.csv` has a column "value", or
    the columns "train" and "val". In `val_log.csv` a loss is that of the validation.
    W&B puts the name of the run before the tag. In W&B's export of several runs the names of the runs stay,
    because the columns are different series.
    """
    if header is None:
        return None
    names = header.names
    if (
        names[-1].lower() == "value"
        and len(names) == (header.step is not None) + (header.time is not None) + 1
    ):
        names = [*names[:-1], path.stem.rpartition("-tag-")[2]]
    elif len(names) == 2 and names[0] in INDEX_NAMES and names[1].isdecimal():
        names = [names[0], path.stem]
    elif names[0] == "Step" and len({name.partition(" - ")[0] for name in names[1:]}) == 1:
        names = [name.partition(" - ")[2] or name for name in names]
    elif says_metric(path.stem):
        names = [f"{path.stem} {name}" if ONLY_A_PART.fullmatch(name) else name for name in names]
    part = part_of_file(path.stem)
    names = [of_file(name, part) for name in names]
    return replace(header, names=names)


class CsvLog(msgspec.Struct, frozen=True):
    """One file. ``columns`` are the names of its columns, if it has no header that names them."""

    path: Path
    columns: Sequence[str] | None = None

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return the points of the rows completed since ``cursor``; see `sentinel.sources.base.Source`."""
        try:
            return self._poll(cursor, limit)
        except OSError as error:
            return unreadable(self.path, cursor, error)

    def flush(self, cursor: Cursor) -> Sequence[Chunk]:
        """Return the points of a last row without a line break; see `sentinel.sources.base.Flushable`."""
        try:
            return _Reader(self.path, cursor.get("reader", {}), self.columns).flush()
        except OSError:
            return ()

    def _poll(self, cursor: Cursor, limit: int) -> PollResult:
        reader = _Reader(self.path, cursor.get("reader", {}), self.columns)
        piece = reader.read(limit)
        if piece is None:
            return nothing_new(cursor)
        if piece.restarted or not reader.goes_on():
            now = stamp(self.path)
            if now != cursor.get("examined"):
                again = reader.reread()
                differs = not again.agrees(reader)
                if differs or again.rows < reader.rows:
                    return PollResult({**cursor, "examined": now, "differs": differs}, more=differs)
            elif cursor["differs"]:  # it also differed at the last poll, so nobody is writing it now
                again = _Reader(self.path, {"restarted": True}, self.columns)
            else:
                return PollResult(cursor)
            reader = again
            piece = again.read(limit)
        more = reader.parse(piece, limit) if piece else False
        state = {"reader": reader.state(), "refused": reader.refused}
        return PollResult(state, reader.chunks, reader.read_issues, more, reader.config)


class _Reader:
    """Reads a file from a state on; ``{}`` is the start of the file."""

    def __init__(self, path: Path, state: Mapping[str, Any], columns: Sequence[str] | None) -> None:
        self.chunks: list[Chunk] = []
        self.read_issues: list[ReadIssue] = []
        self.config: Mapping[str, Any] = {}
        self._path = path
        self._columns = columns
        self._mark: Mapping[str, Any] = state.get("mark", {})
        self._header = Header(**state["header"]) if state.get("header") else None
        self._top = bytes.fromhex(state.get("top", ""))  # fingerprint of the header that the file begins with
        self._top_bytes: int = state.get("top_bytes", 0)
        self._tail = bytes.fromhex(state.get("tail", ""))  # what was read last
        self._axis = CsvAxis(**state.get("axis", {}))
        self.seen = RowFingerprints(**state.get("seen", {}))
        self.refused: str = state.get("refused", "")  # why it is not read on
        self._lines: int = state.get("lines", 0)
        self._broken: int = state.get("broken", 0)  # lines
        self._restarted: bool = state.get("restarted", False)  # no point was read since then

    def state(self) -> dict[str, Any]:
        """Return the state from which another reader can go on; JSON-able."""
        return {
            "mark": self._mark,
            "header": self._header and self._header.memory(),
            "top": self._top.hex(),
            "top_bytes": self._top_bytes,
            "tail": self._tail.hex(),
            "axis": asdict(self._axis),
            "seen": {**asdict(self.seen), "after": dict(self.seen.after)},
            "refused": self.refused,
            "lines": self._lines,
            "broken": self._broken,
            "restarted": self._restarted,
        }

    @property
    def rows(self) -> int:
        """How many rows were read."""
        return self.seen.count

    def read(self, limit: int) -> Read | None:
        """Read about ``limit`` new points, but at least one line, unless that is overlong."""
        wanted_bytes = limit * _BYTES_A_POINT if self._header else 0  # what is read with a header is copied
        size = min(_MAX_READ, max(_MIN_READ, wanted_bytes))
        piece = read_lines(self._path, self._mark, size, MAX_LINE)
        if piece and piece.more and self._header is None and read_header(piece.data) is None:
            return read_text(self._path, self._mark, MAX_LINE)
        return piece

    def flush(self) -> Sequence[Chunk]:
        """Return the points of a last row without a line break. The reader reads nothing after that."""
        piece = read_rest(self._path, self._mark, MAX_LINE) if self._header else None
        if piece is not None:
            self.parse(replace(piece, data=piece.data + b"\n"), MAX_LINE)
        return self.chunks

    def goes_on(self) -> bool:
        """Return whether the file still has the same header and the same bytes up to the mark."""
        if self._header is None:
            return True
        with open_log(self._path) as file:
            top = file.read(self._top_bytes)
            file.seek(self._mark["offset"] - len(self._tail))
            return _rows_fingerprint(top) == self._top and file.read(len(self._tail)) == self._tail

    def reread(self) -> "_Reader":
        """Return a reader that has read the file from its start, up to this reader's row count."""
        again = _Reader(self._path, {"restarted": self._restarted}, self._columns)
        more = True
        while more and again.rows < self.rows and (piece := again.read(MAX_LINE)):
            more = again.parse(piece, MAX_LINE, self.rows - again.rows)
            again.chunks.clear()
        again._broken = self._broken
        again._restarted = self._restarted
        again.read_issues.clear()
        return again

    def agrees(self, other: "_Reader") -> bool:
        """Return whether both readers read the same rows, as far as both read."""
        return self.seen.agrees(other.seen)

    def parse(self, piece: Read, limit: int, most_rows: int = sys.maxsize) -> bool:
        """Parse about ``limit`` points of what was read. True if there is more to read."""
        data = piece.data
        start = 0
        end = data.rfind(b"\n") + 1
        if self._header is None:
            new_header = Header([*self._columns], ",", 0) if self._columns else read_header(data)
            self._header = _with_exported_names(self._path, new_header)
            if self._header is None:
                return self._wait_for_growth(piece)
            start = self._header.size
            top = piece.in_file(0, start)
            self._top = _rows_fingerprint(top)
            self._top_bytes = len(top)
            self._lines = data.count(b"\n", 0, start)
            self.config = self._header.settings
            if self._header.left_out:
                column_count = len(self._header.names)
                left_out = self._header.left_out
                columns = f"has {column_count + left_out} columns"
                problem = f"{columns}; only the first {column_count} are read, so log fewer"
                self.read_issues.append(ReadIssue(self._path, "line 1", problem))
            if piece.more and limit * _BYTES_A_POINT > len(data):
                end = start  # the next read brings these rows and many more
        consumed = start
        if end > start:
            points_a_row = max(1, len(self._header.names) - (self._header.step is not None))
            most = min(most_rows, max(1, limit // points_a_row))
            lines = data[start:]
            rows = read_rows(lines, most, self._header)
            consumed = start + size_of(rows.lines, lines) if rows.cut else end
            self._add_rows(rows, self._header)
        elif piece.more and len(data) - start >= MAX_LINE:
            return self._wait_for_growth(piece)
        more = piece.more or consumed < end
        self._tail = (self._tail + piece.in_file(max(0, consumed - _TAIL_BYTES), consumed))[-_TAIL_BYTES:]
        self._mark = piece.mark(consumed, waiting=not more)
        return more

    def _add_rows(self, rows: CsvRows, header: Header) -> None:
        for line, problem in rows.broken.items():
            self._broken += 1
            if words := skipped(problem, self._broken):
                self.read_issues.append(ReadIssue(self._path, f"line {self._lines + line + 1}", words))
        steps = self._axis.steps(header, rows)
        self.seen.add(header, rows, steps)
        chunk = points(header, rows, steps, self._path.name, self._restarted)
        if len(chunk.value):
            self.chunks.append(chunk)
            self._restarted = False
        self._lines += rows.lines
        self._header = rows.next_header or header

    def _wait_for_growth(self, piece: Read) -> bool:
        """Wait until the file has grown, or for good if a line is too long."""
        if len(piece.data) >= MAX_LINE and not self.refused:
            self.refused = f"is longer than {MAX_LINE >> 20} MiB, so that the file is not read on"
            self.read_issues.append(ReadIssue(self._path, f"line {self._lines + 1}", self.refused))
        self._mark = piece.mark(0, waiting=True)
        return False


def _rows_fingerprint(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=8).digest()
