"""Texts that a regular expression nearly matches, made from the expression itself.

A pattern is slow on a text of which each place begins what it looks for and does not end it. So each piece of
a pattern, up to each of its elements, is repeated to the size of the text; and what may be repeated often in
the pattern is, behind what leads to it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_REPEATS = {code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT}
_LOOKS = {code.ASSERT, code.ASSERT_NOT}
_COUNTS = (0, 1, 3)  # how often a repetition occurs in a piece
_CHOICES = (0, 1, 2)  # which of some alternatives a piece has
_MANY = 20  # a repetition that may occur more often is one that a text may overdo
_MAX_PIECE = 300  # characters
_USUAL = (
    "a1 _-=x:/.[(|\t\"'%{<>,}])#Z\n\r\x1b\0é"  # the first of them that fits stands for a set of characters
)

Nodes = Sequence[tuple[Any, Any]]


def near_matches(pattern: re.Pattern[Any], size: int) -> list[Any]:
    """Return texts of about ``size`` characters, of bytes for a pattern of bytes."""
    is_bytes = isinstance(pattern.pattern, bytes)
    nodes = list(parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE if is_bytes else pattern.flags))
    pieces = {("", piece[:_MAX_PIECE]) for piece in _pieces(nodes) if piece} | set(_overdone(nodes, ""))
    texts = {(begin + piece * (size // len(piece) + 1))[:size] for begin, piece in pieces}
    return [text.encode("latin-1", "replace") if is_bytes else text for text in sorted(texts)]


def _pieces(nodes: Nodes) -> Iterator[str]:
    """Yield the beginnings of a sequence and of those in it, and the whole without its last character."""
    for count, choice in product(_COUNTS, _CHOICES):
        parts = [_example(node, count, choice) for node in nodes]
        for end in range(1, len(parts) + 1):
            yield "".join(parts[:end])
        yield "".join(parts)[:-1]
    for node in nodes:
        for inner in _inner(node):
            yield from _pieces(inner)


def _overdone(nodes: Nodes, before: str) -> Iterator[tuple[str, str]]:
    """Yield what may be repeated often, each with what leads to it."""
    for node in nodes:
        operator, argument = node
        if operator in _REPEATS and argument[1] > _MANY and (unit := _text(argument[2], 1, 0)):
            yield before, unit
        elif operator in {code.SUBPATTERN, code.BRANCH}:
            for inner in _inner(node):
                yield from _overdone(inner, before)
        before += _example(node, 1, 0)


def _inner(node: tuple[Any, Any]) -> Iterable[Nodes]:
    """Return the sequences within an element."""
    operator, argument = node
    if operator is code.SUBPATTERN:
        return [argument[3]]
    if operator is code.BRANCH:
        return argument[1]  # type: ignore[no-any-return]
    if operator in _REPEATS:
        return [argument[2]]
    if operator in _LOOKS:
        return [argument[1]]
    return [argument] if operator is code.ATOMIC_GROUP else []


def _text(nodes: Nodes, count: int, choice: int) -> str:
    return "".join(_example(node, count, choice) for node in nodes)


def _example(node: tuple[Any, Any], count: int, choice: int) -> str:
    """Return a text that one element matches."""
    operator, argument = node
    if operator is code.LITERAL:
        return chr(argument)
    if operator is code.NOT_LITERAL:
        return "b" if argument == ord("a") else "a"
    if operator is code.ANY:
        return "x"
    if operator is code.IN:
        return _member(argument)
    if operator is code.BRANCH:
        return _text(argument[1][choice % len(argument[1])], count, choice)
    if operator in _REPEATS:
        least, most, inner = argument
        return _text(inner, count, choice) * max(least, min(most, count))
    if operator is code.SUBPATTERN:
        return _text(argument[3], count, choice)
    if operator is code.ATOMIC_GROUP:
        return _text(argument, count, choice)
    return "1" if operator is code.GROUPREF else ""


def _member(members: Sequence[tuple[Any, Any]]) -> str:
    """Return a character of a set."""
    is_negated = members[0][0] is code.NEGATE
    for character in _USUAL:
        if any(_holds(member, character) for member in members) != is_negated:
            return character
    first, *_ = (argument for operator, argument in members if operator in {code.LITERAL, code.RANGE})
    return chr(first[0] if isinstance(first, tuple) else first)


def _holds(member: tuple[Any, Any], character: str) -> bool:
    operator, argument = member
    if operator is code.LITERAL:
        return bool(argument == ord(character))
    if operator is code.RANGE:
        return bool(argument[0] <= ord(character) <= argument[1])
    if operator is not code.CATEGORY:
        return False
    *_, kind = str(argument).split("_")
    is_word = character.isalnum() or character == "_"
    is_of_kind = {"DIGIT": character.isdigit(), "SPACE": character.isspace(), "WORD": is_word}[kind]
    return is_of_kind != ("NOT" in str(argument))
