"""Tables with a column for each metric, row by row: fastai, skorch, spaCy and YOLO separate them by blanks.

Loops of one's own often put bars between the columns.

DeepXDE prints a list of all parts of a loss into a cell, of which the sum is the loss.

YOLO draws a row as the title of a progress bar, of which the full one counts. Below it stands the evaluation
of the epoch, as a table of classes, of which the row of all counts.
"""

import re
from collections.abc import Mapping
from typing import Any

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.console.pairs import is_metric
from sentinel.sources.console.printed import NUMBER, Record, number
from sentinel.sources.console.shapes import has_word
from sentinel.sources.readers.printed_numbers import without_deviation

_COLUMN_GAP = lazy_pattern(r" {2,}")
_BARS = "|\u2502\u2503"
_BAR_CHARACTER = lazy_pattern(f"[{_BARS}]")
_MIN_COLUMNS = 3
_AXIS_COLUMNS = {"epoch": "epoch", "e": "epoch", "step": "step", "#": "step", "iteration": "step"}
"""Names of the first column, and of the step wherever it stands, in lower case. spaCy's are "E" and "#"."""

_CELL_NUMBER = lazy_pattern(NUMBER, re.IGNORECASE)
_OF_TRAINING = "gpu_mem"  # in YOLO's tables, of which older ones call a loss "box"
_CLASS = "Class"
_ALL = "all"
_FULL = lazy_pattern(r":(?:\s{1,9}100%.*|$)")
_AROUND = lazy_pattern(r"(?<!\w)\w*\(|\)")  # what stands around the names in "Box(P  R  mAP50  mAP50-95)"
_SPREAD = lazy_pattern(r"\s?\((?:mean|avg|average)\s?(?:±|\+/-)\s?(?:std|sd)\)", re.IGNORECASE)
"""What stands behind the name of a column with cells such as "0.81 ± 0.39"."""


class Columns:
    """The table that is being printed, given the memory of the lines before (``{}`` for none)."""

    def __init__(self, memory: Mapping[str, Any]) -> None:
        self.names: list[str] = memory.get("names", [])
        self._evaluated: list[str] = memory.get("evaluated", [])  # the columns of the table of classes
        self._epoch: float | None = memory.get("epoch")  # of the last row, while it waits for that table

    def memory(self) -> dict[str, Any]:
        """Return what the next lines need to know of it; JSON-able."""
        return {"names": self.names, "evaluated": self._evaluated, "epoch": self._epoch}

    def begin(self, line: str) -> bool:
        """Return whether the line, without blanks around it, is the header of a table."""
        if self.names and line.startswith(_CLASS):
            self._evaluated = _AROUND.sub("", _FULL.sub("", line)).split()
            return True
        names = _cells(line) if line.lstrip(_BARS + " ")[:1].lower() in ("e", "s", "i") else []
        if len(names) < _MIN_COLUMNS or names[0].lower() not in _AXIS_COLUMNS:
            return False
        if not any(is_metric(name) or name.lower() == _OF_TRAINING for name in names):
            return False
        if any(map(_CELL_NUMBER.fullmatch, names)) or not has_word(line.lower()):
            return False
        self.names = [_AXIS_COLUMNS.get(name.lower(), _SPREAD.sub("", name)) for name in names]
        return True

    def row(self, line: str) -> Record:
        """Return the numbers in the next row of the table; none if the line is no row of it."""
        if line.startswith(_ALL):
            return self._evaluation(line.split())
        begins = self.names and line.lstrip(_BARS + " ")[:1].isdigit()
        cells = _cells(_FULL.sub("", line)) if begins else []
        count = cells[0].partition("/")[0] if cells else ""
        if len(cells) != len(self.names) or not count.isdecimal():
            return {}
        pairs = zip(self.names, (count, *cells[1:]), strict=True)
        record: Record = {name: value for name, cell in pairs if (value := _value(name, cell)) is not None}
        self._epoch = float(count) if self.names[0] == "epoch" else None
        return record

    def _evaluation(self, cells: list[str]) -> Record:
        """Return the row of all classes, once for each epoch: at its end, a training evaluates again."""
        if self._epoch is None or len(cells) != len(self._evaluated):
            return {}
        # Of the same name, the first one counts.
        cell_by_name = dict(zip(reversed(self._evaluated), reversed(cells), strict=True))
        pairs = ((name, number(cell)) for name, cell in cell_by_name.items() if name not in self.names)
        record: Record = {name: value for name, value in pairs if value is not None}
        record["epoch"] = self._epoch
        self._epoch = None
        return record


def _value(name: str, cell: str) -> float | None:
    """Return the number of a cell: of a list the sum of the parts of a loss, or else the only one."""
    cell = without_deviation(cell)
    if cell.endswith("%") and (percent := number(cell[:-1])) is not None:
        return percent / 100
    if not (cell.startswith("[") and cell.endswith("]")):
        return number(cell)
    parts = [part for text in cell[1:-1].split(",") if (part := number(text.strip())) is not None]
    is_whole = len(parts) == cell.count(",") + 1 and (len(parts) == 1 or "loss" in name.lower())
    return sum(parts) if is_whole else None


def _cells(line: str) -> list[str]:
    """Return the cells of a row, which bars separate, or else blanks."""
    separator = _BAR_CHARACTER if any(bar in line for bar in _BARS) else _COLUMN_GAP
    return [cell.strip(" ") for cell in separator.split(line.strip(_BARS + " "))]
