"""Patterns of tags and their meanings. Looking up a tag is fast enough for all tags of a thousand runs."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from sentinel.detectors.signals import Signal


class Meaning(msgspec.Struct, frozen=True):
    """A signal, and the factor for its unit and sign (-1 for a negated entropy, 0.01 for percent).

    If people log a tag with ``either_sign``, its first value decides the sign. Of one that ``is_exponential``
    the signal is the logarithm.
    """

    signal: Signal
    factor: float = 1.0
    either_sign: bool = False
    is_exponential: bool = False


_IN_TABLES = " / "
"""How the tables of notebooks print the slash of a tag."""


def bare(tag: str, prefixes: Sequence[str]) -> list[str]:
    """Return the tag without each of the prefixes that it has, in the order of the prefixes; then the same of
    the tag as its table in a notebook prints it.
    """
    spellings = (tag, tag.replace(_IN_TABLES, "/")) if _IN_TABLES in tag else (tag,)
    return [name.removeprefix(prefix) for name in spellings for prefix in prefixes if name.startswith(prefix)]


class Patterns:
    """Maps patterns of tags to meanings; None marks a known tag that is no signal.

    ``*`` stands for one or more characters other than ``/``. An exact pattern precedes one with ``*``, and
    otherwise the first pattern in the list counts. A tag may have any of the prefixes.
    """

    def __init__(self, rows: Mapping[str, Meaning | None], prefixes: Sequence[str] = ("",)) -> None:
        self.rows = rows
        self.prefixes = prefixes

    @cached_property
    def _wildcards(self) -> tuple[Sequence[str], re.Pattern[str]]:
        patterns = [pattern for pattern in self.rows if "*" in pattern]
        return patterns, re.compile("|".join(f"({_expression(pattern)})" for pattern in patterns))

    def find(self, tag: str) -> str | None:
        """Return the pattern for ``tag``, which is a key of ``rows``; None if the tag is unknown."""
        names = bare(tag, self.prefixes)
        for name in names:
            if name in self.rows:
                return name
        patterns, expression = self._wildcards
        for name in names if patterns else ():
            match = expression.fullmatch(name)
            if match and match.lastindex:
                return patterns[match.lastindex - 1]
        return None


def is_logged(pattern: str, tags: frozenset[str]) -> bool:
    """Return whether one of ``tags`` fits ``pattern``."""
    if "*" not in pattern:
        return pattern in tags
    expression = re.compile(_expression(pattern))
    return any(expression.fullmatch(tag) for tag in tags)


def _expression(pattern: str) -> str:
    return "[^/]+".join(re.escape(part) for part in pattern.split("*"))
