"""Makes names, steps, times and nested settings plain enough for the rest of sentinel, whatever a log holds.

JSON may hold one half of a surrogate pair, which no database stores. Counts may be larger than an int64, and
times may lie outside every calendar. Each source passes what it reads through these functions.

Nested settings ``{"a": {"b": [1, {"c": 2}]}}`` are ``{"a.b.0": 1, "a.b.1.c": 2}``, and a nested record
``{"train": {"loss": 1}}`` is ``{"train/loss": 1}``.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentinel.sources.readers.coco import is_summary, of_summary

_NESTED = frozenset((dict, list))
"""Types of values that may hold further ones."""

MAX_STEP = 2**62
"""The largest absolute value of a number that is read as a step."""

LATEST = 253_402_300_800
"""Seconds since the epoch: the year 10,000, which `datetime` does not have."""


def plain_text(text: str) -> str:
    """Return the text with a question mark for each half of a surrogate pair."""
    return text.encode(errors="replace").decode()


def _with_plain_names(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    return {plain_text(name): value for name, value in pairs}


JSON = json.JSONDecoder(strict=False, parse_int=float, object_pairs_hook=_with_plain_names)
"""Reads JSON as Python writes it, NaN and infinities included. Names are plain text, and numbers floats."""


def whole(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which values can be a step, because they are whole and not too large."""
    fits: NDArray[np.bool_] = (np.abs(values) < MAX_STEP) & (values == np.floor(values))
    return fits


def plain_times(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the times, with NaN for times outside the calendar."""
    return np.where((seconds >= 0) & (seconds < LATEST), seconds, np.nan)


MAX_KEYS = 5000  # of the settings in one place; further ones are left out
_MAX_VISITS = 4 * MAX_KEYS  # empty nodes count as well, because aliases in YAML may repeat them endlessly
_MAX_NESTING = 16  # levels of nesting; what lies deeper is left out
_MAX_CHARACTERS = 1 << 22  # in all names of a nested record: joined names can be far longer than the record
_MAX_KEY_CHARACTERS = 300  # of a dotted key; a longer one is left out
_MAX_TEXT_CHARACTERS = 1000  # of a value; what follows is cut
_MAX_INTEGER = 2**63  # a larger one cannot be stored in every format

Plain = str | int | float | bool | None


def flat(settings: Mapping[Any, Any]) -> dict[str, Plain]:
    """Return at most ``MAX_KEYS`` plain values by dotted key. Long texts are cut, deep values left out."""
    pairs = ((key, value) for key, value in islice(_plain_values(settings, "", 0), _MAX_VISITS) if key)
    return dict(islice(pairs, MAX_KEYS))


def _plain_values(node: Any, key: str, depth: int) -> Iterator[tuple[str, Plain]]:
    """Yield the plain values below ``node``. A node that holds others gives a pair with an empty key."""
    if isinstance(node, Mapping):
        below = [(_plain_text(name), value) for name, value in node.items()]
    elif isinstance(node, (list, tuple)):
        below = [(str(number), value) for number, value in enumerate(node)]
    else:
        yield key, _plain_value(node)
        return
    yield "", None
    for name, value in below:
        path = f"{key}.{name}" if key else name
        if depth < _MAX_NESTING and len(path) <= _MAX_KEY_CHARACTERS:
            yield from _plain_values(value, path, depth + 1)


def _plain_value(value: Any) -> Plain:
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and -_MAX_INTEGER <= value < _MAX_INTEGER:
        return value
    return _plain_text(value)


def _plain_text(value: Any) -> str:
    """Return the value as text, also an integer with more digits than Python writes out."""
    try:
        text = str(value)
    except ValueError:
        text = f"{type(value).__name__} of {value.bit_length()} bits"
    return text[:_MAX_TEXT_CHARACTERS].encode(errors="replace").decode()


def flattened(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the record with ``{"train": {"loss": 1}}`` as ``{"train/loss": 1}``, and with the numbers of the
    summaries of COCO's evaluations by name.
    """
    if _NESTED.isdisjoint(map(type, record.values())):
        return record
    joined: dict[str, Any] = {}
    characters = 0
    for name, value in _joined(record):
        characters += len(name)
        if characters > _MAX_CHARACTERS:
            break
        joined[name] = value
    return joined


def _joined(record: Mapping[str, Any], prefix: str = "", level: int = 1) -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if is_summary(name, value):
            yield from of_summary(prefix + name, value)
        elif not isinstance(value, dict):
            yield prefix + name, value
        elif level < _MAX_NESTING:
            yield from _joined(value, f"{prefix}{name}/", level + 1)
