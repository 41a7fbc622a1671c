"""The header of a CSV file, which names its columns, and the rows below it as numbers."""

import csv
import re
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any

import msgspec
import numpy as np
import orjson
from numpy.typing import NDArray

from sentinel.sources.readers.records import (
    BATCH_KEYS,
    EPOCH_KEYS,
    STEP_KEYS,
    TIME_KEYS,
    is_misspelt,
    named,
    rounds_of,
)
from sentinel.sources.readers.splits import PART_KEYS

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

INDEX_NAMES = ("", "Unnamed: 0")
"""Names of the column that pandas writes first."""

BLANKS = " \t"
"""Characters that may surround the content of a cell."""

MAX_COLUMNS = 1 << 14
"""How many columns of a file are read. A spreadsheet has as many."""

_MAX_SETTINGS_BYTES = 4096  # bytes


class Header(msgspec.Struct, frozen=True, dict=True):
    """The names of the columns, and the settings in a first line ``#{...}`` (Stable-Baselines' Monitor)."""

    names: list[str]
    separator: str
    size: int  # bytes up to the first row
    settings: Mapping[str, Any] = msgspec.field(default_factory=dict)
    left_out: int = 0  # columns that are not read

    def memory(self) -> dict[str, Any]:
        """Return all of it, JSON-able."""
        return {name: getattr(self, name) for name in ("names", "separator", "size", "settings", "left_out")}

    @cached_property
    def step(self) -> int | None:
        """The column that counts the steps, which may be the batches of epochs."""
        step = self._column(STEP_KEYS)
        return self._column(BATCH_KEYS) if step is None and self.epoch is not None else step

    @cached_property
    def epoch(self) -> int | None:
        """The column that counts the epochs."""
        return self._column(EPOCH_KEYS)

    @cached_property
    def round(self) -> int | None:
        """The column that counts the epochs or episodes within which the steps may be counted. People write
        the name by hand, so it may be misspelt.
        """
        keys = () if self.step is None else rounds_of(self.names[self.step])
        column = self._column(keys)
        if column is not None or not keys:
            return column
        words = [name.strip().lower() for name in self.names]
        return next((at for at, word in enumerate(words) if is_misspelt(word, EPOCH_KEYS[0])), None)

    @cached_property
    def index(self) -> int | None:
        """The column in which pandas numbers the rows, where nothing else counts."""
        is_alone = self.step is None and self.epoch is None
        return 0 if is_alone and self.names[0] in INDEX_NAMES and len(self.names) > 1 else None

    @cached_property
    def time(self) -> int | None:
        """The column with the time, or with the seconds since the start that the settings name."""
        return self._column(("t",) if "t_start" in self.settings else TIME_KEYS)

    @cached_property
    def part(self) -> int | None:
        """The column that says which rows are of held-out data."""
        return self._column(PART_KEYS)

    def _column(self, keys: Sequence[str]) -> int | None:
        name = named(self.names, keys)
        return None if name is None else self.names.index(name)


class CsvRows(msgspec.Struct, frozen=True):
    """The rows of some lines. ``values`` is rows x columns, with NaN where nothing was ``logged``."""

    values: NDArray[np.float64]
    logged: NDArray[np.bool_]
    gaps: bool  # whether some cell was not logged
    times: Mapping[int, str]  # the cells of the time column that are text, by row
    held_out: Mapping[int, str] = msgspec.field(default_factory=dict)  # the part of the data, by row
    broken: Mapping[int, str] = msgspec.field(default_factory=dict)  # what is wrong, by line, from 0
    next_header: Header | None = None  # in the line after those that were read
    lines: int = 0  # that were read, including a header among them
    cut: bool = False  # whether there may be more


def read_header(data: bytes) -> Header | None:
    """Return the header at the beginning of a file; None if it is not complete."""
    start = len(_BYTE_ORDER_MARK) if data.startswith(_BYTE_ORDER_MARK) else 0
    settings: dict[str, Any] = {}
    if data.startswith(b"#", start):
        end = data.find(b"\n", start)
        settings = _commented_settings(data[start + 1 : end])
        start = end + 1 if settings else start + 1
    end = data.find(b"\n", start)
    while end >= 0 and data.count(b'"', start, end) % 2:  # in a quoted name
        end = data.find(b"\n", end + 1)
    if end < 0:
        return None
    text = data[start:end].decode(errors="replace")
    separator = max(",\t;", key=text.count)
    names = cells_of(text, separator)
    left_out = max(0, len(names) - MAX_COLUMNS)
    return Header(names[:MAX_COLUMNS], separator, end + 1, settings, left_out) if names else None


def cells_of(text: str, separator: str) -> list[str]:
    """Return the cells of a line, without the blanks around them; none if the line has stray quotes."""
    text = text.rstrip("\r\n")
    if '"' not in text:
        return [cell.strip(BLANKS) for cell in text.split(separator)]
    if not _quoted_line(separator).fullmatch(text):
        return []
    try:
        return [cell.strip(BLANKS) for cell in next(csv.reader([text], delimiter=separator))]
    except csv.Error:  # a cell is too long
        return []


@cache
def _quoted_line(separator: str) -> re.Pattern[str]:
    cell = rf'(?:"(?:[^"]|"")*+"|[^"{separator}]*+)'
    return re.compile(rf"{cell}(?:{separator}{cell})*+")


def _commented_settings(line: bytes) -> dict[str, Any]:
    try:
        settings = orjson.loads(line) if len(line) < _MAX_SETTINGS_BYTES else None
    except orjson.JSONDecodeError:
        return {}
    return settings if isinstance(settings, dict) else {}
