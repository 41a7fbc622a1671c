"""Summaries of an evaluation whose numbers stand apart from their names: those of COCO and of Detectron2, and
tables with more than two columns.

    Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.395

    copypaste: Task: bbox
    copypaste: AP,AP50,AP75
    copypaste: 39.5,58.9,42.1

    |  aAcc |  mIoU |  mAcc |
    | 80.25 | 40.50 | 50.75 |
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.readers.printed_numbers import number

_PRECISION = lazy_pattern(
    r"Average Precision {1,4}\(AP\) @\[ IoU=(?P<overlap>0\.50:0\.95|0\.50|0\.75) {1,8}\| area= {0,8}all \|"
    r" maxDets= {0,4}\d{1,6} ?\] ?= ?(?P<value>[\d.]{1,12})"
)
_TASK = lazy_pattern(r"IoU metric: (\w{1,20})$")
_COPYPASTE = lazy_pattern(r"(?<!\w)copypaste: (?P<text>\S.{0,400})$")
_NAME = lazy_pattern(r"[A-Za-z][\w@.-]{0,40}")
_OVERLAPS: Mapping[str, str] = {"0.50:0.95": "", "0.50": "_50", "0.75": "_75"}

MIN_COLUMNS = 3
"""Columns of such a table; one with two is a block of names and values."""

MAX_COLUMNS = 32
"""Columns of such a table."""


class Summaries:
    """What the lines above said that the next ones summarise, given the state of those before."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._task: str = state.get("task", "bbox")
        self._names: list[str] = list(state.get("names", []))  # of Detectron2's numbers
        self._columns: list[str] = list(state.get("columns", []))

    def dump(self) -> dict[str, Any]:
        """Return all that the next lines need to know, JSON-able."""
        return {"task": self._task, "names": self._names, "columns": self._columns}

    def read(self, line: str) -> str:
        """Return the line with its numbers behind their names, if it is of a summary."""
        if "|" in line and line.strip()[:1] == "|" == line.strip()[-1:]:
            return self._row(line)
        if (precision := _PRECISION.search(line)) is not None:
            return f"{self._task}_mAP{_OVERLAPS[precision['overlap']]}: {precision['value']}"
        if (task := _TASK.search(line)) is not None:
            self._task = task[1]
        elif (pasted := _COPYPASTE.search(line)) is not None:
            return self._pasted(line, pasted["text"])
        return line

    def _pasted(self, line: str, text: str) -> str:
        if text.startswith("Task: "):
            self._task = text.removeprefix("Task: ")
            return line
        cells = text.split(",")
        if all(map(_NAME.fullmatch, cells)):
            self._names = cells
            return line
        return _pairs(self._names, cells, self._task) or line

    def _row(self, line: str) -> str:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not MIN_COLUMNS <= len(cells) <= MAX_COLUMNS:
            return line
        if all(map(_NAME.fullmatch, cells)):
            self._columns = cells
            return line
        return _pairs(self._columns, cells) or line


def _pairs(names: Sequence[str], cells: Sequence[str], task: str = "") -> str:
    """Return names and numbers as a line; nothing if they do not belong together."""
    if len(names) != len(cells) or any(number(cell) is None for cell in cells):
        return ""
    of_task = [f"{task}_{name}" if task and name.startswith("AP") else name for name in names]
    return ", ".join([f"{name}: {cell}" for name, cell in zip(of_task, cells, strict=True)])
