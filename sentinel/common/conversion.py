"""Makes objects of our types from built-in values, as JSON and msgpack hold them."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import msgspec

_T = TypeVar("_T")


def converter(kind: type[_T], restored: Callable[[type, Any], Any] | None = None) -> Callable[[Any], _T]:
    """Return a function that makes a ``kind`` from built-in values; it raises msgspec.ValidationError.

    msgspec learns a type when it first meets it. Two threads that meet the same one at once crash the process
    (msgspec 0.22), so each converter is made where its module is imported, and learns there. ``restored``
    makes what msgspec does not know.
    """
    msgspec.json.Decoder(kind)
    return partial(msgspec.convert, type=kind, dec_hook=restored)
