"""Reads lines of a CSV file as rows of numbers.

A row is one line. A line is broken, and left out, if it has more or fewer cells than the header, stray
quotes, no number, or a step that is no number. A header that comes again, as after a resume, is not broken.
"""

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from sentinel.sources.csv.header import BLANKS, MAX_COLUMNS, CsvRows, Header, cells_of
from sentinel.sources.readers.records import EPOCH_KEYS, NUMBER, STEP_KEYS, named
from sentinel.sources.readers.splits import held_out

# read one by one, because polars costs some time for each column
_FEW_CELLS = 500
_FEW_ROWS = 16
_BYTES_A_CELL = 8


def read_rows(data: bytes, most: int, header: Header) -> CsvRows:
    """Read the rows of at most ``most`` complete lines after the header."""
    if header.left_out:
        data = b"\n".join(_narrow(line, header.separator.encode()) for line in data.split(b"\n"))
    rows = min(most, 1 + len(data) // (_BYTES_A_CELL * len(header.names)))
    few = rows < _FEW_ROWS or rows * len(header.names) < _FEW_CELLS or header.part is not None
    if not few:
        from sentinel.sources.csv.table import read_table  # with polars, which is slow to import

        if table := read_table(data, most, header):
            return table
    return _read_each(data, most, header)


def _narrow(line: bytes, separator: bytes) -> bytes:
    """Return the first cells of a line. A line with quotes stays whole, and is then reported as too long."""
    if b'"' in line:
        return line
    return separator.join(line.split(separator, MAX_COLUMNS)[:MAX_COLUMNS])


def _read_each(data: bytes, most: int, header: Header) -> CsvRows:
    """Read rows line by line."""
    rows_of_text: list[list[str]] = []
    broken: dict[int, str] = {}
    next_header = None
    count = 0
    for count, line in enumerate(data.split(b"\n", most)[:-1], 1):
        text = line.decode(errors="replace")
        cells = cells_of(text, header.separator)
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
            rows_of_text.append(cells)
    numbers = [[float(cell) if NUMBER.fullmatch(cell) else None for cell in cells] for cells in rows_of_text]
    values = np.array(numbers, np.float64).reshape(-1, len(header.names))
    logged = np.array([[number is not None for number in row] for row in numbers], np.bool_)
    texts: Mapping[int, str] = {}
    if (time := header.time) is not None:
        texts = {i: row[time] for i, row in enumerate(rows_of_text) if row[time] and numbers[i][time] is None}
    parts: dict[int, str] = {}
    if (column := header.part) is not None:
        parts = {i: part for i, row in enumerate(rows_of_text) if (part := held_out(row[column]))}
    logged = logged.reshape(values.shape)
    cut = count == most or next_header is not None
    return CsvRows(values, logged, not logged.all(), texts, parts, broken, next_header, count, cut)
