"""Reads many lines of a CSV file at once, with polars."""

import numpy as np
import polars as pl
from msgspec.structs import replace

from sentinel.sources.csv.header import BLANKS, CsvRows, Header
from sentinel.sources.readers.growing import whole_rows


def read_table(data: bytes, most: int, header: Header) -> CsvRows | None:
    """Read lines that are surely rows; None if some may be broken."""
    frame = _plain_cells(data, most + 1, header)  # which tells whether there are more
    if frame is not None:
        rows = replace(_csv_rows(frame.head(most), header), cut=frame.height > most)
        counted = header.step is None or rows.logged[:, header.step].all()
        if not rows.gaps or (counted and rows.logged.any(axis=1).all()):
            return rows
    return None


def _plain_cells(data: bytes, most: int, header: Header) -> pl.DataFrame | None:
    """Return the cells of lines without quotes, as many as in the header; None if a line may differ."""
    frame = _split(data, most, header, pl.Float64())
    if frame is None or (header.time is None and not any(frame.null_count().row(0))):
        return frame  # nothing but numbers, so nothing was quoted or is missing
    if b'"' in data:
        return None
    if b" " in data or b"\r" in data or (b"\t" in data and header.separator != "\t"):
        data = data.replace(b"\r\n", b"\n")
        frame = _split(data, most, header, pl.String())
    if frame is not None and frame[:, -1].null_count():  # a cell that is empty or not there
        lines = data.split(b"\n", frame.height)[:-1]
        separators = sum(line.count(header.separator.encode()) for line in lines)
        return frame if separators == frame.height * (len(header.names) - 1) else None
    return frame


def _split(data: bytes, most: int, header: Header, kind: pl.DataType) -> pl.DataFrame | None:
    """Return the cells as columns, times as text; None if a line has more cells than the header."""
    kinds = [pl.String() if i == header.time else kind for i in range(len(header.names))]
    table = pl.scan_csv(
        data,
        has_header=False,
        schema={str(i): kind for i, kind in enumerate(kinds)},
        separator=header.separator,
        quote_char=None,
        ignore_errors=True,  # text becomes null
    )
    try:
        return whole_rows(table.collect(engine="streaming"), data, most)
    except pl.exceptions.PolarsError:
        return None


def _csv_rows(frame: pl.DataFrame, header: Header) -> CsvRows:
    times: dict[int, str] = {}
    if header.time is not None:
        cells = frame[:, header.time].str.strip_chars(BLANKS)
        text = (cells.cast(pl.Float64, strict=False).is_null() & (cells != "")).fill_null(value=False)
        times = dict(zip(text.arg_true().to_list(), cells.filter(text).to_list(), strict=True))
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    if texts:
        frame = frame.with_columns(pl.col(texts).str.strip_chars(BLANKS).cast(pl.Float64, strict=False))
    gaps = any(frame.null_count().row(0))
    if gaps:
        logged = frame.select(pl.all().is_not_null()).to_numpy()
    else:
        logged = np.broadcast_to(np.True_, frame.shape)  # which takes no time
    return CsvRows(frame.to_numpy(), logged, gaps, times, lines=frame.height)
