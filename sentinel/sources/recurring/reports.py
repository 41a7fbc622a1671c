"""The report of a classification, as scikit-learn prints it: a row a class, then the means of all."""

from collections.abc import Mapping

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.readers.words import phase

_NAMES = ("precision", "recall", "f1-score")
_HEADER = lazy_pattern(rf"\s{{1,80}}{r' {1,20}'.join(_NAMES)} {{1,20}}support\s{{0,9}}")
_ROW = lazy_pattern(
    r"\s{0,80}(?P<of>\S(?:.{0,80}?\S)??)\s{2,80}"
    r"(?P<numbers>\d\.\d{1,9}(?:\s{2,9}\d\.\d{1,9}){0,2})\s{2,20}\d{1,12}\s{0,9}"
)
_MEANS = {f"{mean} avg": f"{mean} " for mean in ("micro", "macro", "weighted", "samples")}
_MEASURED = lazy_pattern(r"\d\.\d")
_MAX_ABOVE = 160
"""Characters of the line above a report that are kept."""


class Reports:
    """The report that is being printed, given the memory of the lines before (``{}`` for none)."""

    def __init__(self, memory: Mapping[str, str]) -> None:
        self._above = memory.get("above", "")
        self._part = memory.get("part", "")  # of the data, of which the report is; empty outside of one

    def memory(self) -> dict[str, str]:
        """Return what the next lines need to know of it; JSON-able."""
        return {"above": self._above, "part": self._part}

    def read(self, line: str) -> str | None:
        """Return a row that tells of all classes with its names; None for the header and the row of a class.
        Any other line ends the report and is returned as it is.
        """
        if _HEADER.fullmatch(line):
            self._part = _part_of(self._above)
            return None
        row = _ROW.fullmatch(line) if self._part else None
        if row is None:
            if line and not line.isspace():
                self._above = line[-_MAX_ABOVE:]
                self._part = ""
            return line
        numbers = row["numbers"].split()
        if row["of"] == "accuracy":
            return f"{self._part} accuracy: {numbers[0]}"
        if row["of"] not in _MEANS:
            return None
        named = zip(_NAMES, numbers, strict=False)
        return " | ".join([f"{self._part} {_MEANS[row['of']]}{name}: {number}" for name, number in named])


def _part_of(above: str) -> str:
    """Return the part of the data that the line above a report names, if it is a heading and no metric.

    Of held-out data are most reports that a training prints.
    """
    is_heading = _MEASURED.search(above) is None
    return "train" if is_heading and phase(above).lower() in ("train", "training") else "eval"
