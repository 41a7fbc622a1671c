"""Tables with a row for each metric and a column for each part of the data, as AllenNLP prints one an epoch.

A header `Training |  Validation` says what stands in the columns of the rows below it: `loss | 0.5 | 0.7`.
"""

import re

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.readers.printed_numbers import NUMBER_ALONE

_LOGGED = r"(?:.{0,200} - )?\s{0,80}"
_HEADER = lazy_pattern(
    rf"{_LOGGED}(?P<first>train(?:ing)?)\s{{1,40}}\|\s{{1,40}}(?P<second>valid(?:ation)?|val|dev|test)\s{{0,40}}",
    re.IGNORECASE,
)
_CELL = rf"\s{{0,40}}(?:{NUMBER_ALONE}|N/A|None)\s{{0,40}}"
_ROW = lazy_pattern(
    rf"(?P<before>{_LOGGED})(?P<name>[A-Za-z][\w@./-]{{0,80}})\s{{0,80}}\|(?P<first>{_CELL})\|(?P<second>{_CELL})"
)


class PartTables:
    """The parts of the data in the columns of the table that is being printed, none outside of one."""

    def __init__(self, parts: list[str]) -> None:
        self.parts = parts

    def read(self, line: str) -> str | None:
        """Return a line in which each number of a row has its name; None for a header. Any other line ends
        the table and is returned as it is.
        """
        if header := _HEADER.fullmatch(line):
            self.parts = [header["first"].lower(), header["second"].lower()]
            return None
        if not self.parts:
            return line
        row = _ROW.fullmatch(line)
        if row is None:
            self.parts = []
            return line
        cells = zip(self.parts, (row["first"].strip(), row["second"].strip()), strict=True)
        named = [f"{part}_{row['name']}: {cell}" for part, cell in cells if cell[0] not in "Nn"]
        return row["before"] + " | ".join(named)
