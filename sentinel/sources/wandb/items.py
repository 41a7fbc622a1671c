"""Reads the name and the value of single items of W&B's records."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import orjson

from sentinel.sources.reading.plain import JSON
from sentinel.sources.wandb.messages import message_type


def item_name(item: Any) -> str:
    """The name of a ``HistoryItem`` or ``ConfigItem``."""
    return str(item.key or ".".join(item.nested_key))


@lru_cache(maxsize=1 << 14)
def name_in(fields: bytes) -> str:
    """The name in the first fields of a serialised ``HistoryItem``."""
    return item_name(message_type("HistoryItem").FromString(fields))


def item_values(items: Sequence[Any]) -> list[Any]:
    """The values of the items; None for an item that is no JSON."""
    try:
        values = orjson.loads(f"[{','.join([item.value_json for item in items])}]")
    except orjson.JSONDecodeError:  # see `parsed`
        values = []
    return values if len(values) == len(items) else [*map(_item_value, items)]


def _item_value(item: Any) -> Any:
    if value_json := item.value_json:  # as always but in the newest versions
        return parsed(value_json.encode())
    kind = item.WhichOneof("value")
    if kind in ("integer", "number"):
        return float(getattr(item, kind))
    return item.text if kind == "text" else parsed(item.json.encode())


def parsed(value_json: bytes) -> Any:
    """A JSON value as wandb writes it; None if it is no JSON."""
    try:
        return orjson.loads(value_json)
    except orjson.JSONDecodeError:
        pass  # NaN, infinities, halves of surrogate pairs, numbers too large for a float
    try:
        return JSON.decode(value_json.decode())
    except (ValueError, RecursionError):
        return None
