"""Several names before several numbers: "precision, recall: 0.8, 0.7"."""

import re

from sentinel.common.lazy_pattern import lazy_pattern

_WORD = r"[A-Za-z][\w@-]{0,19}"
_NAME = rf"{_WORD}(?: {_WORD})?"
_NUMBER = r"[-+]?\d{1,20}(?:\.\d{1,20})?(?:e[-+]?\d{1,3})?%?"
_LISTED = lazy_pattern(
    rf"(?<![\w@.,/-])(?<!, )\(?({_NAME}(?:, {_NAME}){{1,4}})\)?\s?[:=]\s?"
    rf"[(\[]?({_NUMBER}(?:,\s{{1,3}}{_NUMBER}){{1,4}})(?![\w.%]|,\s{{0,3}}[-+]?\.?\d)[)\]]?",
    re.IGNORECASE,
)


def one_by_one(text: str) -> str:
    """Return a text in which each of as many names as numbers stands before its own number."""
    return _LISTED.sub(_each, text) if ", " in text else text


def _each(listed: re.Match[str]) -> str:
    names = listed[1].split(", ")
    numbers = [number.strip() for number in listed[2].split(",")]
    if len(names) != len(numbers):
        return listed[0]
    return ", ".join(f"{name}: {number}" for name, number in zip(names, numbers, strict=True))
