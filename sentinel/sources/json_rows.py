"""JSON lines that all hold numbers of the same names, in the same order: read at once.

Cut at its commas, such a file is a table whose every column begins with the same text, `"loss": ` say.
Where that text is there in every row, and what follows is a number, the lines are proved to be what
their first one is, and no line needs to be looked at by itself.
"""

import re

import orjson
import polars as pl

from sentinel.sources.csv_rows import size_of, whole_rows

_LEAST = 4096  # numbers; to read fewer line by line is as fast
_BYTES_A_NUMBER = 16
_CELL = re.compile(rb'(?P<before>\{? ?"[^"\\]*": ?)[^ }]+(?P<after>\}?)\r?')


def read_rows(data: bytes, limit: int) -> tuple[pl.DataFrame, int] | None:
    """About ``limit`` numbers of whole lines as columns of float64, and the size of these lines in bytes.

    None where one of the lines may differ from the first.
    """
    first = data[: data.find(b"\n")]
    cells = [cell for cell in map(_CELL.fullmatch, first.split(b",")) if cell]
    if min(limit, len(data) // _BYTES_A_NUMBER) < _LEAST or len(cells) <= first.count(b","):
        return None
    try:
        names = list(orjson.loads(first))
    except orjson.JSONDecodeError:
        return None
    if len(names) < len(cells):  # one of them comes twice
        return None
    most = max(1, limit // len(names))
    table = pl.scan_csv(
        data,
        has_header=False,
        schema=dict.fromkeys(names, pl.String()),
        quote_char=None,
        n_rows=most + 1,
    )
    numbers = [_number(name, cell) for name, cell in zip(names, cells, strict=True)]
    try:
        frame = whole_rows(table.select(numbers).collect(engine="streaming"), data, most)
    except pl.exceptions.PolarsError:
        return None
    if not frame.height or any(frame.null_count().row(0)):
        return None
    return frame, size_of(frame.height, data) if frame.height == most else data.rfind(b"\n") + 1


def _number(name: str, cell: re.Match[bytes]) -> pl.Expr:
    """What a column's cells hold; null for one that is not like ``cell``."""
    number = pl.col(name).str.strip_prefix(cell["before"].decode())
    if after := cell["after"].decode():
        number = pl.when(number.str.ends_with(after)).then(number.str.strip_suffix(after))
    return number.cast(pl.Float64, strict=False)
