"""Says on which line of a TOML file a value stands, in time linear in the file."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sentinel.common.lazy_pattern import lazy_pattern

Keys = tuple[str | int, ...]
"""The way to a value: keys of tables and positions in arrays."""

_TOML_TOKEN = lazy_pattern(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*+"'
    r"|'[^'\n]*+'"
    r"|#[^\n]*+"
    r"|[\[{]|[\]}]|\n"
    r"|[^\"'#\[\]{}\n]++|.",
    re.DOTALL,
)
"""A string, a comment, a bracket, the end of a line, or what stands between these."""


class _TomlStatement(NamedTuple):
    """A heading, or a key with its value, and the line on which it ends."""

    text: str
    line: int


class Lines:
    """The lines of the values in a TOML file, which must be valid."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Keys, int] = {(): 1}
        self._tables: dict[Keys, int] = {}  # how many tables each array of tables has so far
        heading: Keys = ()
        for statement in _statements(text):
            content = tomllib.loads(statement.text)
            if not content:
                continue
            if statement.text.lstrip().startswith("["):
                heading = self._heading(content, statement.line)
            else:
                self._note_lines(heading, content, statement.line)

    def of(self, keys: Keys) -> int:
        """Return the line on which the value, or the nearest table around it, is complete."""
        while keys not in self._lines:
            keys = keys[:-1]
        return self._lines[keys]

    def _heading(self, content: Any, line: int) -> Keys:
        """Note a heading. Return the way to its table."""
        keys: Keys = ()
        while content:
            [(key, content)] = content.items()
            keys = (*keys, key)
            self._lines.setdefault(keys, line)
            if isinstance(content, list):  # another table of an array of tables
                self._tables[keys] = self._tables.get(keys, 0) + 1
                content = {}
            if keys in self._tables:  # its last table
                keys = (*keys, self._tables[keys] - 1)
                self._lines.setdefault(keys, line)
        return keys

    def _note_lines(self, above: Keys, content: Any, line: int) -> None:
        """Note all that a value holds."""
        pending = [(above, content)]
        while pending:
            keys, value = pending.pop()
            self._lines.setdefault(keys, line)
            if isinstance(value, Mapping):
                pending += [((*keys, key), inner) for key, inner in value.items()]
            elif isinstance(value, list):
                pending += [((*keys, number), inner) for number, inner in enumerate(value)]


def _statements(text: str) -> Iterator[_TomlStatement]:
    begin = 0
    depth = 0
    line = 1
    for token in _TOML_TOKEN.finditer(text):
        piece = token[0]
        if piece in ("[", "{"):
            depth += 1
        elif piece in ("]", "}"):
            depth -= 1
        elif piece == "\n" and not depth:
            yield _TomlStatement(text[begin : token.end()], line)
            begin = token.end()
        line += piece.count("\n")
    yield _TomlStatement(text[begin:], line)
