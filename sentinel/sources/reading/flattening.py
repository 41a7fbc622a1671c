"""Run settings as one flat dictionary: ``{"a": {"b": [1, {"c": 2}]}}`` is ``{"a.b.0": 1, "a.b.1.c": 2}``."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

MOST_KEYS = 5000
_MOST_VISITS = 4 * MOST_KEYS  # empty nodes count as well, because aliases in YAML may repeat them endlessly
_DEEPEST = 16
_LONGEST_KEY = 300
_LONGEST_TEXT = 1000
_LARGEST = 2**63  # larger integers cannot be stored in every format

Plain = str | int | float | bool | None


def flat(settings: Mapping[Any, Any]) -> dict[str, Plain]:
    """At most ``MOST_KEYS`` plain values by dotted key. Long texts are cut, and deep values are left out."""
    found = ((key, value) for key, value in islice(_walk(settings, "", 0), _MOST_VISITS) if key)
    return dict(islice(found, MOST_KEYS))


def _walk(node: Any, key: str, depth: int) -> Iterator[tuple[str, Plain]]:
    """The plain values below ``node``, and a pair with an empty key for each visit that gives none."""
    if isinstance(node, Mapping):
        below = [(_text(name), value) for name, value in node.items()]
    elif isinstance(node, (list, tuple)):
        below = [(str(number), value) for number, value in enumerate(node)]
    else:
        yield key, _plain(node)
        return
    yield "", None
    for name, value in below:
        path = f"{key}.{name}" if key else name
        if depth < _DEEPEST and len(path) <= _LONGEST_KEY:
            yield from _walk(value, path, depth + 1)


def _plain(value: Any) -> Plain:
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and -_LARGEST <= value < _LARGEST:
        return value
    return _text(value)


def _text(value: Any) -> str:
    """The value as text, also an integer with more digits than Python writes out."""
    try:
        text = str(value)
    except ValueError:
        text = f"{type(value).__name__} of {value.bit_length()} bits"
    return text[:_LONGEST_TEXT].encode(errors="replace").decode()
