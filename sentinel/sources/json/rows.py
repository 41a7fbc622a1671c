"""JSON lines that all hold numbers of the same names, in the same order: read at once.

Cut at its commas, such a file is a table whose every column begins with the same text, `"loss": ` say.
Where that text is there in every row, and what follows is a number, the lines are proved to be what
their first one is, and no line needs to be looked at by itself.
"""

import re
from functools import lru_cache

import orjson
import polars as pl

from sentinel.sources.reading.growing import size_of
from sentinel.sources.reading.tables import whole_rows

_LINE = {"line": pl.String()}
_IN_NO_LINE = "\x01"  # JSON writes it another way
_CELL = re.compile(rb'(?P<before>\{? ?"[^"\\]*": ?)[^ }]+(?P<after>\}?)\r?')


def read_rows(data: bytes, limit: int) -> tuple[pl.DataFrame, int] | None:
    """About ``limit`` numbers of whole lines as columns of float64, and the size of these lines in bytes.

    None where one of the lines may differ from the first.
    """
    cells = [_CELL.fullmatch(cell) for cell in data[: data.find(b"\n")].split(b",")]
    numbers = _numbers(tuple(cell.group("before", "after") for cell in cells if cell))
    if None in cells or numbers is None:
        return None
    most = max(1, limit // len(numbers))
    # To ask for so many rows would cost a quarter more than to leave out the rest.
    lines = pl.scan_csv(data, has_header=False, schema=_LINE, separator=_IN_NO_LINE, quote_char=None)
    table = lines.select(pl.col(*_LINE).str.split_exact(",", len(numbers) - 1)).unnest(*_LINE)
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
def _numbers(cells: tuple[tuple[bytes, bytes], ...]) -> list[pl.Expr] | None:
    """The number in each cell of a line, under its name, given what stands before and after it there.

    In a cell that is not like that it is null. None where such cells are no object.
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
