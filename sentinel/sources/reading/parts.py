"""The part of the data that a record was measured on, where a column of its own states it."""

import re
from collections.abc import Mapping
from typing import Any

_KEYS = ("split", "phase", "mode", "stage", "subset", "partition", "set")
_HELD_OUT = frozenset({"val", "valid", "validation", "eval", "evaluation", "test", "dev"})
_NAMED = re.compile(rf"(?<![a-z])(?:{'|'.join(sorted(_HELD_OUT))})(?![a-z])", re.IGNORECASE)


def with_part(record: Mapping[str, Any], axes: frozenset[str]) -> Mapping[str, Any]:
    """The record with the part of the data in its names, if it was measured on held-out data.

    ``{"epoch": 1, "phase": "val", "loss": 2.0}`` becomes ``{"epoch": 1, "val/loss": 2.0}``. Names that tell
    the part already stay as they are, and so do ``axes``: the lower-case names of steps, epochs and times.
    """
    for name, value in record.items():
        if isinstance(value, str) and name.lower() in _KEYS and (part := value.strip().lower()) in _HELD_OUT:
            others = {other: number for other, number in record.items() if other != name}
            return {_full(other, part, axes): number for other, number in others.items()}
    return record


def _full(name: str, part: str, axes: frozenset[str]) -> str:
    return name if name.lower() in axes or _NAMED.search(name) else f"{part}/{name}"
