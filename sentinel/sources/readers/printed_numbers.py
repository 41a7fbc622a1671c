"""Numbers as people print them: ``4K``, ``12.1G``, ``0.64%``, ``1,234``, ``loss0.033``, ``nan``."""

import re

from sentinel.common.lazy_pattern import lazy_pattern

_STAMP = (
    r"\d{3}[-/.]\d\d?[-/.]\d\d?[T ,]{0,2}\d\d?:\d\d(?::\d\d)?(?:[.,]\d{1,9})?"
    r"(?:Z|[-+]\d\d:?\d\d(?!\d)| ?UTC| ?GMT)?"
    r"|\d?[-/.]\d\d?[-/.](?:\d{4}|\d\d)[T ,]{1,2}\d\d?:\d\d(?::\d\d)?(?:[.,]\d{1,9})?"
    r"|\d{0,3}:\d\d:\d\d(?:[.,]\d{1,9})?|\d{0,3}:\d\d(?=<)|(?<=<\d)\d{0,3}:\d\d(?=[,\]])"
    r"|\d{0,3}h\d\d?m(?:\d\d?s)?(?![\w.])|\d{0,3}m\d\d?(?:\.\d{1,9})?s(?![\w.])"
)
"""Dates, clocks, durations such as 1h02m03s, and both times of a progress bar, behind their first digit."""

_FIGURE = (
    r"(?:\d{1,3}(?:,\d{3})++(?![\d])(?:\.\d{0,30})?|\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][-+]?\d{1,4})?"
)

_POWER = r"(?:[eE][-+]?\d{1,4})?"
_TAIL = r"(?!\.\d)(?![A-Z]\w{0,30}=)(?:[KMGB](?![A-Za-z\d]))?"

NUMBER = lazy_pattern(
    r"([-+.0-9nNiI](?:"  # a set of characters comes first, because that is fast to search
    rf"(?<=\d)(?:(?<![\w.@]\d)(?:{_STAMP})"
    rf"|(?<![A-Za-z_\d.@]\d)(?<!(?:LEU|leu|UGE|uge)-\d)(?:\d{{0,2}}(?:,\d{{3}})++(?!\d)(?:\.\d{{0,30}})?|\d{{0,40}}(?:\.\d{{0,40}})?){_POWER}{_TAIL}"
    r"|(?<=[A-Za-z]\d)(?:\d{0,8}\.\d{1,40}(?:[eE][-+]?\d{1,4})?(?![.\w]\w?)"
    r"|(?:(?<=epoch\d)|(?<=Epoch\d)|(?<=EPOCH\d)|(?<=step\d)|(?<=Step\d)|(?<=iter\d)|(?<=Iter\d))\d{0,11}(?![\w.])))"
    rf"|(?<=[-+])(?<![\w.)\]].)(?:{_FIGURE}{_TAIL}|(?:nan|NaN|NAN|inf|Inf|INF|Infinity)(?![\w.]))"
    rf"|(?<=\.)(?<![A-Za-z_\d.].)\d{{1,40}}{_POWER}{_TAIL}"
    r"|(?<=[nN])(?<![\w.].)[aA][nN](?![\w.])"
    r"|(?<=[iI])(?<![\w.].)[nN][fF](?:inity)?(?![\w.])"
    r"))"
)
"""One number, date or clock."""

NUMBER_ALONE = rf"[-+]?(?:{_FIGURE}(?:[KMGB%](?![A-Za-z\d]))?|(?i:nan|inf(?:inity)?))"
"""One number, where only a number can stand."""

_SUFFIXES = {"K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9}

MAX_STEP = 2**62
"""The largest number that is read as a step."""

CELL = lazy_pattern(
    rf"\s{{0,40}}(?:tensor\()?([-+]?(?:{_FIGURE}|nan|inf(?:inity)?))(?:[KMGB]|%)?"
    r"(?:,[^()]{0,90}\)|\)| \(tracked\))?\s{0,40}",
    re.IGNORECASE,
)
"""A whole cell that is a number."""


_DEVIATION = lazy_pattern(rf"(?<=\d)\s{{0,9}}(?:±|\+/-)\s{{0,9}}{_FIGURE}%?\s{{0,9}}$")


def number(text: str) -> float | None:
    """Return the value of a printed number; None if the text is none, such as a clock."""
    try:
        return float(text)
    except ValueError:
        pass
    text = text.strip()
    scale = _SUFFIXES.get(text[-1:], 1.0)
    figure = text[:-1] if scale != 1.0 else text
    try:
        return float(figure.replace(",", "").rstrip("%")) * scale
    except ValueError:
        return None


def without_deviation(text: str) -> str:
    """Return a cell without what its number scatters by: "0.81 ± 0.39"."""
    return _DEVIATION.sub("", text)


def count(text: str) -> int | None:
    """Return the value of a printed whole number that can be a step; None if it is none."""
    value = number(text)
    if "." in text.rstrip(".") and "e" not in text and text[-1:] not in _SUFFIXES:
        return None
    if value is None or value != value or not -MAX_STEP < value < MAX_STEP or value != int(value):
        return None
    return int(value)


def cell(text: str) -> float | None:
    """Return the value of a cell of a table; None if it holds anything but a number."""
    try:
        return float(text)
    except ValueError:
        pass
    if len(text) > 120:
        return None
    match = CELL.fullmatch(text)
    return number(match[1]) if match else None
