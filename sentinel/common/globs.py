"""Globs, matched in time linear in the name, whatever the glob is.

`*` stands for any text, also with slashes, `?` for one character, `[a-z]` for one of a set and `[!a-z]` for
one that is not in it. A bracket that nothing closes stands for itself.
"""

from functools import lru_cache

from sentinel.common.errors import SentinelError

MAX_GLOB = 12_288
"""Characters of a glob that somebody writes: the longest path, with each character in brackets."""

_MAX_GLOBS = 1024  # that are remembered, and as many characters of each

Range = tuple[str, str]
"""The first and the last character of a range."""


class GlobTooLong(SentinelError, ValueError):
    """A glob is longer than any path."""


def bounded(glob: str) -> str:
    """Return the glob. Raises GlobTooLong if it is longer than any path."""
    if len(glob) > MAX_GLOB:
        raise GlobTooLong(f"a pattern may have {MAX_GLOB:,} characters, and this one has {len(glob):,}")
    return glob


def matches(name: str, glob: str) -> bool:
    """Return whether the whole name matches the glob."""
    return _compiled(glob).matches(name)


class _Glob:
    """A glob as a machine whose states are the bits of a number.

    Bit n is set where the first n characters of the glob match what was read of the name. A star is no
    character: its position keeps its bit whatever follows.
    """

    def __init__(self, glob: str) -> None:
        self._stay = 0  # the positions of stars
        self._any = 0  # the characters `?`
        self._literals: dict[str, int] = {}
        self._sets: list[tuple[int, list[Range], bool]] = []
        self._moves: dict[str, int] = {}  # by character of the name, the positions from which it leads on
        size = 0
        position = 0
        while position < len(glob):
            bit = 1 << size
            end = _end_of_set(glob, position) if glob[position] == "[" else 0
            if glob[position] == "*":
                self._stay |= bit
                position += 1
                continue
            if glob[position] == "?":
                self._any |= bit
            elif end:
                self._sets.append((bit, *_bracket_ranges(glob[position + 1 : end])))
                position = end
            else:
                self._literals[glob[position]] = self._literals.get(glob[position], 0) | bit
            size += 1
            position += 1
        self._end = 1 << size

    def matches(self, name: str) -> bool:
        """Return whether the whole name matches."""
        positions = 1
        for character in name:
            move = self._moves.get(character)
            if move is None:
                move = self._learn(character)
            positions = ((positions & move) << 1) | (positions & self._stay)
            if not positions:
                return False
        return bool(positions & self._end)

    def _learn(self, character: str) -> int:
        move = self._any | self._literals.get(character, 0)
        for bit, ranges, is_negated in self._sets:
            if any(first <= character <= last for first, last in ranges) != is_negated:
                move |= bit
        if len(self._moves) < _MAX_GLOBS:
            self._moves[character] = move
        return move


@lru_cache(_MAX_GLOBS)
def _compiled(glob: str) -> _Glob:
    return _Glob(glob)


def _end_of_set(glob: str, begin: int) -> int:
    """Return where the set ends that begins here; 0 if nothing closes it. A bracket may come first in it."""
    first = begin + 1 + (glob[begin + 1 : begin + 2] == "!")
    return max(glob.find("]", first + 1), 0)


def _bracket_ranges(text: str) -> tuple[list[Range], bool]:
    """Return the ranges of a set, and whether it holds what is not in them."""
    is_negated = text.startswith("!")
    text = text[is_negated:]
    ranges = []
    position = 0
    while position < len(text):
        is_range = text[position + 1 : position + 2] == "-" and position + 2 < len(text)
        ranges.append((text[position], text[position + 2] if is_range else text[position]))
        position += 3 if is_range else 1
    return ranges, is_negated
