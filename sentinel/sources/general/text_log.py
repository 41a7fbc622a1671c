"""A text or a table of no known format, read line by line while it grows.

The last line counts only when its line break is there, because "loss: 2.1" may yet become "loss: 2.15". When
the log is over, it counts as it is, and so do lines that came too seldom to be a record before.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from sentinel.sources.base import Chunk, Cursor, PollResult, ReadIssue
from sentinel.sources.console.line_forms import LineForm
from sentinel.sources.console.passages import MAX_LINE
from sentinel.sources.csv.delimited import Table
from sentinel.sources.readers.growing import nothing_new, read_lines, read_rest, unreadable
from sentinel.sources.readers.measured_rows import Row, Streams
from sentinel.sources.readers.redrawn_lines import end_of_lines
from sentinel.sources.readers.splits import of_file, part_of_text
from sentinel.sources.recurring.lines import RecurringLines

MIN_READ = 1 << 16
"""Bytes of a poll."""

MAX_READ = 1 << 22
"""Bytes of a poll."""

MAX_PIECE = 1 << 16
"""Bytes that are read before the points are counted."""

_BYTES_A_POINT = 32  # a guess of how far to read for some points; a wrong one only costs time


class TextLog(msgspec.Struct, frozen=True):
    """One file: rows of a table if ``is_table``, else lines, some of the ``forms`` that a person named."""

    path: Path
    is_table: bool = False
    forms: tuple[LineForm, ...] = ()

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return what was written since ``cursor``; see `sentinel.sources.base.Source`."""
        size = min(MAX_READ, max(MIN_READ, limit * _BYTES_A_POINT))
        try:
            piece = read_lines(self.path, cursor.get("mark", {}), size, MAX_LINE)
        except OSError as error:
            return unreadable(self.path, cursor, error)
        if piece is None:
            return nothing_new(cursor)
        streams = Streams(self.path.name, cursor.get("streams", {}), piece.restarted)
        cursor = {} if piece.restarted else cursor
        reader = self._reader(cursor)
        rows, consumed, is_overlong = _parse(reader, piece.data, limit, cursor.get("overlong", False))
        more = consumed > 0 and (piece.more or consumed < end_of_lines(piece.data))
        problems: list[ReadIssue] = []
        if is_overlong and not cursor.get("overlong"):
            problem = f"a line is longer than {MAX_LINE >> 20} MiB and was skipped"
            problems.append(ReadIssue(self.path, f"byte {piece.offset}", problem))
        chunks = streams.chunks(self._of_its_part(rows))
        state = {
            "mark": piece.mark(consumed, waiting=not more),
            "reader": reader.dump(),
            "streams": streams.memory(),
            "overlong": is_overlong,
        }
        result = PollResult(state, chunks, problems, more)
        if isinstance(reader, RecurringLines):
            return replace(result, config=reader.settings, lines=reader.printed)
        return result

    def flush(self, cursor: Cursor) -> Sequence[Chunk]:
        """Return the points of a last line without a line break, and of rare lines; see `Flushable`."""
        try:
            piece = read_rest(self.path, cursor.get("mark", {}), MAX_LINE)
        except OSError:
            return ()
        streams = Streams(self.path.name, cursor.get("streams", {}), False)
        rows = self._reader(cursor).end(piece.data if piece else b"")
        return streams.chunks(self._of_its_part(rows), is_end=True)

    def _of_its_part(self, rows: Iterable[Row]) -> Iterable[Row]:
        """Return rows whose metrics are of the part of the data that the name of the text says."""
        part = part_of_text(self.path.stem)
        if not part:
            return rows
        return (row._replace(names=tuple(of_file(name, part) for name in row.names)) for row in rows)

    def _reader(self, cursor: Cursor) -> RecurringLines | Table:
        state: Mapping[str, Any] = cursor.get("reader", {})
        if self.is_table:
            return Table(self.path.stem, state)
        return RecurringLines(self.path.stem, state, self.forms)


def _parse(
    reader: RecurringLines | Table, data: bytes, limit: int, is_overlong: bool
) -> tuple[list[Row], int, bool]:
    """Read whole lines until there are ``limit`` points. Gives the rows, the number of bytes consumed, and
    whether the next bytes belong to a line that is skipped.
    """
    rows: list[Row] = []
    points = 0
    start = 0
    end = end_of_lines(data)
    if is_overlong and end:
        start = data.find(b"\n") + 1 or end
        is_overlong = False
    piece = min(MAX_PIECE, max(1, limit * _BYTES_A_POINT))
    while start < end and points < limit:
        stop = data.find(b"\n", start + piece - 1, end) + 1 or end
        new_rows = reader.read(data[start:stop])
        points += sum(len(row.names) for row in new_rows)
        rows += new_rows
        start = stop
    if not end and (is_overlong or len(data) >= MAX_LINE):
        return rows, len(data), True
    return rows, start, is_overlong
