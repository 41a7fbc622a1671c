"""Tables without lines: a header names the columns, and the rows below it hold numbers alone."""

from collections.abc import Mapping
from typing import Any

from sentinel.sources.readers.printed_numbers import number
from sentinel.sources.readers.templates import comma_header, header

MIN_COLUMNS = 3
"""Numbers of a row below a header."""


class ColumnNames:
    """The names that the last headers gave to columns, given the state before (``{}`` for none)."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._spaced: list[str] = list(state.get("header", []))  # of columns with spaces between them
        self._listed: list[str] = list(state.get("columns", []))  # of columns with commas

    def dump(self) -> dict[str, Any]:
        """Return all that the next lines need to know, JSON-able."""
        return {"header": self._spaced, "columns": self._listed}

    def before(self, line: str) -> str | None:
        """Return a row with the names of its columns, and any other line as it is; None for a header."""
        if "   " in line:
            return self._before_spaced(line)
        return self._before_listed(line) if line.count(",") > 1 else line

    def _before_spaced(self, line: str) -> str | None:
        names = header(line)
        if names:
            self._spaced = names
            return None
        if not self._spaced:
            return line
        cells = line.split(maxsplit=len(self._spaced))
        if len(cells) < len(self._spaced):
            return line
        row = [text.rstrip(":") for text in cells[: len(self._spaced)]]
        numeric = sum(number(text.partition("/")[0]) is not None for text in row)
        if numeric < MIN_COLUMNS or numeric < len(row) - 1:
            return line
        return " | ".join([f"{name}: {text}" for name, text in zip(self._spaced, row, strict=True)])

    def _before_listed(self, line: str) -> str | None:
        names = comma_header(line)
        if names:
            self._listed = names
            return None
        cells = line.split(",")
        if len(cells) != len(self._listed) or any(cell.strip() and number(cell) is None for cell in cells):
            return line
        named = zip(self._listed, cells, strict=True)
        return " | ".join([f"{name}: {text.strip()}" for name, text in named if text.strip()])
