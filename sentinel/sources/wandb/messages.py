"""wandb's message types and what their items say, without the rest of wandb, whose import takes long.

protoc writes the description of the types into a module, as a literal. This module reads that literal and
does not run the module.
"""

import ast
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.readers.plain import JSON

_MODULES = ("wandb_base", "wandb_telemetry", "wandb_internal")  # each after what it needs
_DESCRIPTION = lazy_pattern(r"\.AddSerializedFile\((b.+)\)$", re.MULTILINE)


@cache
def message_type(name: str) -> Any:
    """Return the class of wandb's messages of that name, such as ``Record``.

    If the installed wandb has other modules than expected, this imports wandb as a whole.
    """
    from google.protobuf.message_factory import GetMessageClass

    try:
        return GetMessageClass(_pool().FindMessageTypeByName(f"wandb_internal.{name}"))
    except (LookupError, OSError, SyntaxError, TypeError, ValueError):
        from wandb.proto import wandb_internal_pb2

        return getattr(wandb_internal_pb2, name)


@cache
def _pool() -> Any:
    from google.protobuf import empty_pb2, struct_pb2, timestamp_pb2
    from google.protobuf.descriptor_pool import DescriptorPool

    pool = DescriptorPool()
    for module in (empty_pb2, struct_pb2, timestamp_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    versions = sorted(_proto().glob("v*/"))  # a folder for each version of protobuf, with the same types
    for name in _MODULES:
        pool.AddSerializedFile(_description(versions[-1] / f"{name}_pb2.py"))
    return pool


def _proto() -> Path:
    spec = find_spec("wandb")
    return Path(((spec and spec.submodule_search_locations) or [""])[0], "proto")


def _description(path: Path) -> bytes:
    literal = _DESCRIPTION.search(path.read_text(encoding="utf-8"))
    if literal is None:
        raise ValueError(f"{path}: has no types of messages as protoc writes them")
    description: bytes = ast.literal_eval(literal[1])
    return description


def item_name(item: Any) -> str:
    """Return the name of a ``HistoryItem`` or ``ConfigItem``."""
    return str(item.key or ".".join(item.nested_key))


@lru_cache(maxsize=1 << 14)
def name_in(fields: bytes) -> str:
    """Return the name in the first fields of a serialised ``HistoryItem``."""
    return item_name(message_type("HistoryItem").FromString(fields))


def item_values(items: Sequence[Any]) -> list[Any]:
    """Return the values of the items; None for an item that is no JSON."""
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
    """Return a JSON value as wandb writes it; None if it is no JSON."""
    try:
        return orjson.loads(value_json)
    except orjson.JSONDecodeError:
        pass  # NaN, infinities, halves of surrogate pairs, numbers too large for a float
    try:
        return JSON.decode(value_json.decode())
    except (ValueError, RecursionError):
        return None
