"""Parses numbers and dictionaries as programs print them."""

import ast
import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import orjson

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.readers.plain import plain_text
from sentinel.sources.readers.records import EPOCH_KEYS, STEP_KEYS

Record = dict[str, float | str]
"""The names and numbers in a line. Step and time have keys that `reading.records` knows."""

NUMBER = (
    r"[+-]?(?:\d{1,3}(?:,\d{3})++(?:\.\d+)?|(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d{1,4}+)?"
    r"|(?:nan|inf(?:inity)?)(?:\.0)?)"  # Lightning adds ".0" to what has no point
)
"""Pattern of a number, with or without separators of thousands."""

_QUOTED = r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\""
_WRAPPER = r"(?:np\.|numpy\.|torch\.)?(?:float\d\d|int\d\d|tensor|array)"
_DICTIONARY_ENTRY = lazy_pattern(
    rf"\s*+(?P<name>{_QUOTED})\s*+:\s*+(?:(?P<value>{_QUOTED}|{NUMBER}(?!\w))"
    rf"|{_WRAPPER}\((?P<wrapped>{NUMBER})(?:, ?[^()]{{0,80}}+)?\)"
    r"|[\w.]++(?:\([^()]*+\))?|\[[^\[\]]*+\])\s*+(?P<end>[,}])",
    re.IGNORECASE,
)
"""An entry of a dictionary. ``wrapped`` is a number in the form of NumPy or PyTorch: ``np.float64(0.5)``."""

_PLAIN = frozenset({float, int, str})
_MAX_DEPTH = 8  # of dictionaries within one another
OPENING = lazy_pattern(r"\{(?=\s{0,9}['\"])")
"""Pattern of the beginning of a dictionary."""


def entries(line: str, start: int) -> Record:
    """Return the entries of a dictionary whose values are numbers, or texts that may hold a step.

    The opening brace of the dictionary ends at ``start``. An incomplete dictionary has no entries.
    """
    record: Record = {}
    for name, value in _as_json(line[start - 1 : line.rfind("}") + 1]) or _one_by_one(line, start):
        if not isinstance(value, str):
            record[name] = float(value)
        elif (parsed := number(value)) is not None:
            record[name] = parsed
        elif name in STEP_KEYS:
            record[name] = value
        elif name in EPOCH_KEYS and (parsed := number(value.partition("/")[0])) is not None:
            record[name] = parsed
    return record


def _as_json(text: str) -> Collection[tuple[str, float | str]]:
    """Return the entries of a dictionary in JSON but for its quotes, of only numbers and texts, or of
    dictionaries of these.
    """
    if "\\" in text or ("'" in text and '"' in text):
        return ()
    try:
        content = orjson.loads(text.replace("'", '"'))
    except orjson.JSONDecodeError:
        return ()
    flat = [*_leaves(content, "")]
    return flat if _PLAIN.issuperset(type(value) for _, value in flat) else ()


def _leaves(content: Mapping[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        if type(value) is dict and before.count("/") < _MAX_DEPTH:
            yield from _leaves(value, f"{before}{name}/")
        else:
            yield f"{before}{name}", value


def _one_by_one(line: str, start: int) -> list[tuple[str, str]]:
    """Return the entries whose values are numbers or texts; none if the dictionary is incomplete."""
    pairs = []
    end = ","
    while end == "," and (entry := _DICTIONARY_ENTRY.match(line, start)) is not None:
        start = entry.end()
        end = entry["end"]
        name = _unquoted(entry["name"])
        value = entry["value"] or entry["wrapped"]
        if value is not None and name is not None:
            pairs.append((name, value.strip("'\"")))
    return pairs if end == "}" else []


def _unquoted(text: str) -> str | None:
    if "\\" not in text:
        return text[1:-1]
    try:
        return plain_text(str(ast.literal_eval(text)))  # a string literal: there is nothing to run or to nest
    except (SyntaxError, ValueError):
        return None


def number(text: str) -> float | None:
    """Return the printed number, with or without separators of thousands; None if it is no number."""
    text = text.replace(",", "")
    try:
        return float(text[:-2] if text.lower().endswith(("nan.0", "inf.0", "infinity.0")) else text)
    except ValueError:
        return None


def kept(record: Record) -> Record:
    """Return the record with text in place of numbers that JSON cannot hold."""
    return {name: v if isinstance(v, str) or math.isfinite(v) else str(v) for name, v in record.items()}


def restored(record: Record) -> Record:
    """Undo `kept`."""
    return {name: float(v) if v in ("nan", "inf", "-inf") else v for name, v in record.items()}
