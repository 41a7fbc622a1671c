"""Reads many JSON lines at once, if all hold numbers of the same names in the same order.

Cut at its commas, such a file is a table. Every cell of a column begins with the same text, such as `"loss":
`. If every row has that text and a number follows it, all lines are surely of the same form as the first, and
none must be parsed by itself.
"""

from functools import lru_cache

import orjson
import polars as pl

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.readers.growing import size_of, whole_rows

_LINE_SCHEMA = {"line": pl.String()}
_IN_NO_LINE = "\x01"  # JSON escapes it
_CELL = lazy_pattern(rb'(?P<before>\{? ?"[^"\\]*": ?)[^ }]+(?P<after>\}?)\r?')


def read_rows(data: bytes, limit: int) -> tuple[pl.DataFrame, int] | None:
    """Read complete lines with about ``limit`` numbers; None if a line may differ from the first.

    Gives columns of float64, and the size of the lines in bytes.
    """
    cells = [_CELL.fullmatch(cell) for cell in data[: data.find(b"\n")].split(b",")]
    numbers = _cell_numbers(tuple(cell.group("before", "after") for cell in cells if cell))
    if None in cells or numbers is None:
        return None
    most = max(1, limit // len(numbers))
    # Asking polars for fewer rows would take a quarter longer than dropping the rest.
    lines = pl.scan_csv(data, has_header=False, schema=_LINE_SCHEMA, separator=_IN_NO_LINE, quote_char=None)
    table = lines.select(pl.col(*_LINE_SCHEMA).str.split_exact(",", len(numbers) - 1)).unnest(*_LINE_SCHEMA)
    try:
        frame = table.select(numbers).collect(engine="streaming")
    except pl.exceptions.PolarsError:
        return None
    frame = whole_rows(frame, data, most + 1)
    if not frame.height or any(frame.null_count().row(0)):
        return None
    size = size_of(most, data) if frame.height > most else data.rfind(b"\n") + 1
    return frame.head(most), size


@lru_cache(maxsize=256)
def _cell_numbers(cells: tuple[tuple[bytes, bytes], ...]) -> list[pl.Expr] | None:
    """Return one expression for the number in each cell of a line, given the text before and after it.

    The number is null in a cell with other text. None if the cells do not form an object.
    """
    braces = [(before[:1] == b"{", after == b"}") for before, after in cells]
    if braces != [(i == 0, i == len(cells) - 1) for i in range(len(cells))]:
        return None
    try:
        names = [orjson.loads(before.strip(b"{ :")) for before, _ in cells]
    except orjson.JSONDecodeError:
        return None
    numbers = []
    for i, (name, (before, after)) in enumerate(zip(names, cells, strict=True)):
        number = pl.col(f"field_{i}").str.strip_prefix(before.decode())
        if after:
            number = pl.when(number.str.ends_with("}")).then(number.str.strip_suffix("}"))
        numbers.append(number.cast(pl.Float64, strict=False).alias(name))
    return numbers if len({*names}) == len(names) else None
