"""What is left of a state once it was stored."""

from typing import Any, TypeVar

import msgspec

from sentinel.runs.state_codec import packed, unpacked

T = TypeVar("T")


def stored(state: Any) -> Any:
    """Return what is read of a state that was written."""
    return unpacked(packed({"state": state}))["state"]


def again(value: T) -> T:
    """Return a value that was stored and read again."""
    return msgspec.convert(stored(value), type(value))
