"""What neptune-exporter saves of Neptune's runs: Parquet files such as ``RUN_part_0.parquet``.

The parts of one run are one run and one stream. The exporter gives them their names when all of them are
whole, part 0 last. It writes some metrics after the others, so the points are ordered by their times. Metrics
of the machine count steps of their own and are left out.

The columns are those of `neptune_exporter/model.py` (``SCHEMA``).
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.base import Chunk, Cursor, Line, PollResult, ReadIssue, Run
from sentinel.sources.readers.files import open_log, stamp
from sentinel.sources.readers.growing import nothing_new, unreadable
from sentinel.sources.readers.plain import MAX_STEP, flat, plain_times

if TYPE_CHECKING:
    import polars as pl

FORMAT = "neptune"

_FIRST_PART = lazy_pattern(r"(?P<run>.+)_part_0\.parquet", re.DOTALL)
_PART = lazy_pattern(r"_part_(\d{1,9})\.parquet")
_MAGIC = b"PAR1"  # at both ends of a Parquet file; before the last one stands the length of the footer
_TRAILER_BYTES = len(_MAGIC) + 4  # that length, and the last magic
_MAX_FOOTER_BYTES = 1 << 24  # of a footer that are read, at most
_EXPORT_COLUMNS = (b"run_id", b"attribute_path", b"attribute_type", b"float_value")
_MAX_PARQUET_BYTES = 1 << 29  # of all parts of a run
_MAX_PARQUET_ROWS = 10_000_000
"""A run with more is not read. This bounds the memory of a poll."""

_METRIC_TYPE = "float_series"
_TEXT_TYPE = "string_series"
_PRINTED = ("stdout", "stderr")  # last parts of the names of texts
_VALUES = ("float_value", "int_value", "bool_value", "string_value")
_SETTING_TYPES = ("float", "int", "bool", "string")
_NO_SETTINGS = "^(sys|monitoring|runtime|source_code)/"
_OF_THE_MACHINE = "^(monitoring|runtime)/"


def find(directory: Path, names: Sequence[str]) -> Iterator[Run]:
    """Yield the exported runs among the names of one directory."""
    for name in names:
        if _FIRST_PART.fullmatch(name) and _is_export(directory / name):
            yield Run(directory / name, FORMAT, NeptuneExport(directory / name))


class NeptuneExport(msgspec.Struct, frozen=True):
    """One exported run. ``path`` is that of its part 0."""

    path: Path

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return the points that were exported since ``cursor``; see `sentinel.sources.base.Source`."""
        try:
            parts = self._parts()
            stamps = [stamp(part) for part in parts]
            if not parts or (stamps == cursor.get("stamps") and not cursor.get("more")):
                return nothing_new(cursor)
            if stamps == cursor.get("unsound"):
                return PollResult(cursor)
            if sum(size for _, _, size, _ in stamps) > _MAX_PARQUET_BYTES:
                return _refused(self.path, {**cursor, "stamps": stamps}, f"{_MAX_PARQUET_BYTES >> 20} MiB")
            contents = [_bytes(part) for part in parts]
            if stamps != [stamp(part) for part in parts]:  # an export writes them right now
                return nothing_new(cursor)
            if not all(map(_is_whole, contents)):
                return PollResult({**cursor, "stamps": stamps})
            return _read_export(self.path, contents, {**cursor, "stamps": stamps}, limit)
        except FileNotFoundError:
            return nothing_new(cursor)
        except OSError as error:
            return unreadable(self.path, cursor, error)

    def _parts(self) -> list[Path]:
        run = self.path.name.removesuffix("_part_0.parquet")
        with os.scandir(self.path.parent) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(run)]
        numbers = {int(part[1]): name for name in names if (part := _PART.fullmatch(name.removeprefix(run)))}
        return [self.path.with_name(numbers[number]) for number in sorted(numbers)]


def _read_export(path: Path, parts: Sequence[bytes], cursor: Mapping[str, Any], limit: int) -> PollResult:
    """Return the batch of ``parts``, which are in memory: polars would map a file and die when it shrinks."""
    import polars as pl  # slow to import, and few runs need it

    try:
        table = pl.scan_parquet(list(parts))
        if table.select(pl.len()).collect().item() > _MAX_PARQUET_ROWS:
            return _refused(path, cursor, f"{_MAX_PARQUET_ROWS:,} rows")
        rows = _rows_in_order(table)
        settings = _exported_settings(table)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = OSError(None, f"no sound export of Neptune: {type(error).__name__}")
        return unreadable(path, {**cursor, "unsound": cursor["stamps"]}, reason)
    begin: int = cursor.get("rows", 0)
    restarted: bool = cursor.get("restarted", False)
    if begin and _steps_fingerprint(rows.head(begin)) != cursor["read"]:
        begin = 0
        restarted = True
    part = rows.slice(begin, limit)
    end = begin + part.height
    metrics = part.filter(pl.col("attribute_type") == _METRIC_TYPE)
    state = {
        "stamps": cursor["stamps"],
        "rows": end,
        "read": _steps_fingerprint(rows.head(end)),
        "restarted": restarted and not metrics.height,
        "more": end < rows.height,
    }
    chunks = [_export_chunk(path.name, metrics, restarted)] if metrics.height else []
    printed = part.filter(pl.col("attribute_type") == _TEXT_TYPE).select("time", "string_value").iter_rows()
    lines = [Line(time, line) for time, text in printed for line in (text or "").splitlines() if line.strip()]
    return PollResult(state, chunks, more=state["more"], config=settings if not begin else {}, lines=lines)


def _refused(path: Path, cursor: Mapping[str, Any], limit: str) -> PollResult:
    problem = f"has more than {limit} and is not read"
    return PollResult({**cursor, "refused": problem}, read_issues=[ReadIssue(path, "", problem)])


def _rows_in_order(table: "pl.LazyFrame") -> "pl.DataFrame":
    """Return the rows with points and printed lines, by time. A null in a metric stands for NaN."""
    import polars as pl

    name = pl.col("attribute_path")
    kind = pl.col("attribute_type")
    is_metric = (kind == _METRIC_TYPE) & ~name.str.contains(_OF_THE_MACHINE)
    is_printed = (kind == _TEXT_TYPE) & name.str.split("/").list.last().is_in(_PRINTED)
    step = pl.col("step").cast(pl.Float64).fill_null(0.0).floor()
    return (
        table.filter(is_metric | is_printed)
        .select(
            "attribute_path",
            "attribute_type",
            "string_value",
            step.clip(-MAX_STEP, MAX_STEP).cast(pl.Int64).alias("step"),
            (pl.col("timestamp").dt.epoch("ms") / 1000.0).fill_null(float("nan")).alias("time"),
            pl.col("float_value").fill_null(float("nan")).alias("value"),
        )
        .sort("time", "step", maintain_order=True)
        .collect()
    )


def _exported_settings(table: "pl.LazyFrame") -> Mapping[str, Any]:
    import polars as pl

    is_setting = pl.col("attribute_type").is_in(_SETTING_TYPES)
    is_own = ~pl.col("attribute_path").str.contains(_NO_SETTINGS)
    rows = table.filter(is_setting & is_own).select("attribute_path", *_VALUES).collect().iter_rows()
    return flat({name: next((v for v in values if v is not None), None) for name, *values in rows})


def _export_chunk(stream: str, rows: "pl.DataFrame", restarted: bool) -> Chunk:
    names = rows["attribute_path"].to_list()
    tags = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return Chunk(
        stream,
        list(tags),
        np.array([tags[name] for name in names], np.uint32),
        rows["step"].to_numpy(),
        plain_times(rows["time"].to_numpy()),
        rows["value"].to_numpy(),
        restarted,
    )


def _steps_fingerprint(rows: "pl.DataFrame") -> str:
    """Return a fingerprint of the steps and values, which another run would not have."""
    columns = (rows[name].to_numpy() for name in ("step", "time", "value"))
    return hashlib.blake2b(b"".join(column.tobytes() for column in columns), digest_size=8).hexdigest()


def _is_export(path: Path) -> bool:
    """Return whether the Parquet footer is whole and has the columns of an export."""
    try:
        with open_log(path) as file:
            begin = file.read(len(_MAGIC))
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TRAILER_BYTES))
            end = file.read()
            if not _is_whole(begin + end):
                return False
            length = min(int.from_bytes(end[:4], "little"), _MAX_FOOTER_BYTES, size - _TRAILER_BYTES)
            file.seek(size - _TRAILER_BYTES - length)
            footer = file.read(length)
    except OSError:
        return False
    return all(column in footer for column in _EXPORT_COLUMNS)


def _is_whole(data: bytes) -> bool:
    """Return whether the bytes of a Parquet file, or its first and last ones, are not torn."""
    return data[: len(_MAGIC)] == _MAGIC == data[-len(_MAGIC) :] and len(data) > _TRAILER_BYTES


def _bytes(path: Path) -> bytes:
    with open_log(path) as file:
        return file.read()
