"""Blocks with two columns, ``| name | value |``, whose rows tell together of one step."""

from collections.abc import Mapping
from typing import Any

from sentinel.sources.readers.printed_numbers import number, without_deviation

MAX_BLOCK = 512
"""Rows of a block."""

_EDGES = "|\u2502\u2503"


class Blocks:
    """The rows of the block that is being printed, given the state before (``{}`` for none)."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._rows: list[list[Any]] = [list(row) for row in state.get("block", [])]

    def dump(self) -> dict[str, Any]:
        """Return all that the next lines need to know, JSON-able."""
        return {"block": self._rows}

    def takes(self, line: str) -> bool:
        """Take the row of a block. False if the line is none."""
        stripped = line.strip()
        if stripped[0] not in _EDGES or stripped[-1] not in _EDGES or len(stripped) > 200:
            return False
        cells = stripped.strip(_EDGES).replace("\u2502", "|").replace("\u2503", "|").split("|")
        if len(cells) != 2 or len(self._rows) >= MAX_BLOCK:
            return False
        name = cells[0].rstrip()
        self._rows.append([name, without_deviation(cells[1].strip())])
        return True

    def end(self) -> tuple[str, list[str]]:
        """Return the block as one line: its words, with a zero byte for each number, and the numbers."""
        rows = self._rows
        self._rows = []
        group = ""
        words: list[str] = []
        numbers: list[str] = []
        for name, value in rows:
            plain = name.strip()
            if not value:
                group = plain.rstrip("/")
                continue
            if number(value) is None:
                continue
            is_below = bool(group) and name.startswith("   ")
            words.append(f"{group}/{plain}" if is_below else plain)
            numbers.append(value)
        return "\0".join([f"| {word}: " for word in words] + [""]), numbers
