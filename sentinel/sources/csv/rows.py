"""Lines of a CSV file as numbers: a header that names the columns, and rows of cells.

A row is a line. One with more or fewer cells than the header, with stray quotes, without any number, or with
a step that is none, is broken and left out; a header that comes again, as when a training is resumed, is not.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from sentinel.sources.reading.records import EPOCH_KEYS, NUMBER, STEP_KEYS, TIME_KEYS, named

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLANKS = " \t"
"""What may stand around a cell."""

MOST_COLUMNS = 1 << 14
"""How many columns of a file are read: as many as a spreadsheet has."""

_LONGEST_SETTINGS = 4096  # bytes
_FEW_CELLS, _FEW_ROWS = 500, 16  # which are read as fast one by one; polars has its price for each column
_BYTES_A_CELL = 8


@dataclass(frozen=True)
class Header:
    """The names of the columns, and what a first line ``#{...}`` says (Stable-Baselines' Monitor)."""

    names: list[str]
    separator: str
    size: int  # bytes up to the first row
    settings: Mapping[str, Any] = field(default_factory=dict)
    left_out: int = 0  # columns behind those that are read

    def memory(self) -> dict[str, Any]:
        """All of it, JSON-able."""
        return {name: getattr(self, name) for name in ("names", "separator", "size", "settings", "left_out")}

    @cached_property
    def step(self) -> int | None:
        """The column that counts the steps."""
        return self._column(STEP_KEYS)

    @cached_property
    def epoch(self) -> int | None:
        """The column that counts the epochs."""
        return self._column(EPOCH_KEYS)

    @cached_property
    def time(self) -> int | None:
        """The column with the time, or with the seconds since a start that the settings tell."""
        return self._column(("t",) if "t_start" in self.settings else TIME_KEYS)

    def _column(self, keys: Sequence[str]) -> int | None:
        name = named(self.names, keys)
        return None if name is None else self.names.index(name)


@dataclass(frozen=True)
class Rows:
    """The rows of some lines. ``values`` is rows x columns, NaN also where nothing was ``logged``."""

    values: NDArray[np.float64]
    logged: NDArray[np.bool_]
    gaps: bool  # whether there is a cell that was not logged
    times: Mapping[int, str]  # the cells of the time column that are text, by row
    broken: Mapping[int, str] = field(default_factory=dict)  # what is wrong, by line, from 0
    next_header: Header | None = None  # in the line after those that were read
    lines: int = 0  # read, with such a header
    cut: bool = False  # whether there may be more


def read_header(data: bytes) -> Header | None:
    """The header at the beginning of a file; None if it is not there as a whole."""
    start = len(_BYTE_ORDER_MARK) if data.startswith(_BYTE_ORDER_MARK) else 0
    settings: dict[str, Any] = {}
    if data.startswith(b"#", start):
        end = data.find(b"\n", start)
        settings = _settings(data[start + 1 : end])
        start = end + 1 if settings else start + 1
    end = data.find(b"\n", start)
    while end >= 0 and data.count(b'"', start, end) % 2:  # in a quoted name
        end = data.find(b"\n", end + 1)
    if end < 0:
        return None
    text = data[start:end].decode(errors="replace")
    separator = max(",\t;", key=text.count)
    names = _cells(text, separator)
    left_out = max(0, len(names) - MOST_COLUMNS)
    return Header(names[:MOST_COLUMNS], separator, end + 1, settings, left_out) if names else None


def read_rows(data: bytes, most: int, header: Header) -> Rows:
    """The rows of the whole lines that follow the header, of which it reads at most so many."""
    if header.left_out:
        data = b"\n".join(_narrow(line, header.separator.encode()) for line in data.split(b"\n"))
    rows = min(most, 1 + len(data) // (_BYTES_A_CELL * len(header.names)))
    few = rows < _FEW_ROWS or rows * len(header.names) < _FEW_CELLS
    return (None if few else _read_at_once(data, most, header)) or _read_each(data, most, header)


def _narrow(line: bytes, separator: bytes) -> bytes:
    """The first cells of a line; all of a line with quotes, which is then said to be too long."""
    if b'"' in line:
        return line
    return separator.join(line.split(separator, MOST_COLUMNS)[:MOST_COLUMNS])


def _read_at_once(data: bytes, most: int, header: Header) -> Rows | None:
    """Lines that are rows beyond doubt; None where some may not be."""
    from sentinel.sources.csv.table import read_table  # with polars, which is slow to import

    return read_table(data, most, header)


def size_of(lines: int, data: bytes) -> int:
    """In bytes, of the first of the lines; seen from the end, since mostly few lines follow."""
    end = len(data)
    for _ in range(data.count(b"\n") - lines + 1):
        end = data.rfind(b"\n", 0, end)
    return end + 1


def _read_each(data: bytes, most: int, header: Header) -> Rows:
    """Line by line."""
    kept: list[list[str]] = []
    broken: dict[int, str] = {}
    next_header = None
    count = 0
    for count, line in enumerate(data.split(b"\n", most)[:-1], 1):
        text = line.decode(errors="replace")
        cells = _cells(text, header.separator)
        if not text.strip(BLANKS + "\r") or cells == header.names:
            continue
        number = any(map(NUMBER.fullmatch, cells))
        if not number and named(cells, (*STEP_KEYS, *EPOCH_KEYS)):
            next_header = replace(header, names=cells, size=len(line) + 1)
            break
        if len(cells) != len(header.names):
            broken[count - 1] = f"has {len(cells)} cells where the header has {len(header.names)}"
        elif not number:
            broken[count - 1] = "has no number"
        elif header.step is not None and not (
            cells[header.step] == "" or NUMBER.fullmatch(cells[header.step])
        ):
            broken[count - 1] = "has a step that is no number"
        else:
            kept.append(cells)
    numbers = [[float(cell) if NUMBER.fullmatch(cell) else None for cell in cells] for cells in kept]
    values = np.array(numbers, np.float64).reshape(-1, len(header.names))
    logged = np.array([[number is not None for number in row] for row in numbers], np.bool_)
    texts: Mapping[int, str] = {}
    if (time := header.time) is not None:
        texts = {i: row[time] for i, row in enumerate(kept) if row[time] and numbers[i][time] is None}
    logged = logged.reshape(values.shape)
    cut = count == most or next_header is not None
    return Rows(values, logged, not logged.all(), texts, broken, next_header, count, cut)


def _cells(text: str, separator: str) -> list[str]:
    """The cells of a line, without the blanks around them; none if quotes are where they may not be."""
    text = text.rstrip("\r\n")
    if '"' not in text:
        return [cell.strip(BLANKS) for cell in text.split(separator)]
    if not _quoted_line(separator).fullmatch(text):
        return []
    try:
        return [cell.strip(BLANKS) for cell in next(csv.reader([text], delimiter=separator))]
    except csv.Error:  # so long a cell
        return []


@cache
def _quoted_line(separator: str) -> re.Pattern[str]:
    cell = rf'(?:"(?:[^"]|"")*+"|[^"{separator}]*+)'
    return re.compile(rf"{cell}(?:{separator}{cell})*+")


def _settings(line: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(line) if len(line) < _LONGEST_SETTINGS else None
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
