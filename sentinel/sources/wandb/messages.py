"""wandb's message types, without the rest of wandb, whose import takes half a second.

protoc writes the description of the types into a module, as a literal. This module reads that literal and
does not run the module.
"""

import ast
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_MODULES = ("wandb_base", "wandb_telemetry", "wandb_internal")  # each after what it needs
_DESCRIPTION = re.compile(r"\.AddSerializedFile\((b.+)\)$", re.MULTILINE)


@cache
def message_type(name: str) -> Any:
    """The class of wandb's messages of that name, such as ``Record``.

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
    found = _DESCRIPTION.search(path.read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"{path}: has no types of messages as protoc writes them")
    description: bytes = ast.literal_eval(found[1])
    return description
