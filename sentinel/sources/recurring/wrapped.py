"""Dictionaries that are printed over several lines."""

from collections.abc import Mapping
from typing import Any

from sentinel.sources.readers.templates import MAX_LINE

MAX_WRAPPED = 64
"""Lines of a wrapped dictionary."""


class Wrapped:
    """The lines of the dictionary that is being printed, given the state before (``{}`` for none)."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._lines: list[str] = list(state.get("wrapped", []))
        self._depth: int = state.get("depth", 0)

    def dump(self) -> dict[str, Any]:
        """Return all that the next lines need to know, JSON-able."""
        return {"wrapped": self._lines, "depth": self._depth}

    def read(self, line: str) -> list[str]:
        """Return what is whole with a line: itself, the dictionary that it ends as one line, or nothing.

        What is too long to be a dictionary comes as the lines that it was.
        """
        if not self._lines and "{" not in line:
            return [line]
        self._depth += line.count("{") - line.count("}")
        if self._depth <= 0 and not self._lines:
            self._depth = 0
            return [line]
        is_short = len(self._lines) < MAX_WRAPPED and sum(map(len, self._lines)) + len(line) < MAX_LINE
        self._lines.append(line.strip())
        if self._depth <= 0:
            return [" ".join(self.end())]
        return [] if is_short else self.end()

    def end(self) -> list[str]:
        """Return the lines of a dictionary that does not end."""
        lines = self._lines
        self._lines = []
        self._depth = 0
        return lines
