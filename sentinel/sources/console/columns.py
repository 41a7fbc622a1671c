"""Tables whose columns only blanks separate, as fastai, skorch and spaCy print them, row by row."""

import re
from collections.abc import Mapping
from typing import Any

from sentinel.sources.console.pairs import is_metric
from sentinel.sources.console.printed import NUMBER, Record, number
from sentinel.sources.console.shapes import has_word

_GAP = re.compile(r" {2,}")
_LEAST_COLUMNS = 3
_AXES = {"epoch": "epoch", "e": "epoch", "step": "step", "#": "step", "iteration": "step"}
"""Names of the first column, and of the step wherever it stands, in lower case. spaCy's are "E" and "#"."""

_NUMBER = re.compile(NUMBER, re.IGNORECASE)


class Columns:
    """The table that is being printed, given the memory of the lines before (``{}`` for none)."""

    def __init__(self, memory: Mapping[str, Any]) -> None:
        self.names: list[str] = memory.get("names", [])

    def memory(self) -> dict[str, Any]:
        """What the next lines need to know of it; JSON-able."""
        return {"names": self.names}

    def begin(self, line: str) -> bool:
        """Whether the line, without blanks around it, is the header of a table."""
        names = _GAP.split(line) if line[:1].lower() in ("e", "s", "i") else []
        if len(names) < _LEAST_COLUMNS or names[0].lower() not in _AXES:
            return False
        if not any(map(is_metric, names)) or any(map(_NUMBER.fullmatch, names)) or not has_word(line.lower()):
            return False
        self.names = [_AXES.get(name.lower(), name) for name in names]
        return True

    def row(self, line: str) -> Record:
        """The numbers in the next row of the table; none if the line is no row of it."""
        cells = _GAP.split(line) if self.names and line[:1].isdigit() else []
        if len(cells) != len(self.names) or not cells or not cells[0].isdecimal():
            return {}
        pairs = zip(self.names, cells, strict=True)
        return {name: value for name, cell in pairs if (value := number(cell)) is not None}
