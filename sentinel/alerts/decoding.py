"""Rows that another hand has changed: one that cannot be decoded does not count, and is said once."""

import json
import logging
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from sentinel.alerts.incident import Incident

_T = TypeVar("_T")

_log = logging.getLogger(__name__)


class Decoder:
    """Decodes what a database keeps."""

    def __init__(self) -> None:
        self._said: set[object] = set()

    def __call__(self, decode: Callable[[Any], _T], kept: Any) -> _T | None:
        """What was kept; None, and a line in the log the first time, where it cannot be decoded."""
        try:
            return decode(kept)
        except (ValueError, RecursionError) as error:  # ValueErrors are also what json and msgspec raise
            if kept not in self._said:
                self._said.add(kept)
                _log.error("a row of the state directory cannot be decoded and does not count: %s", error)
            return None


def incident(kept: str) -> Incident:
    """An incident out of JSON. Raises ValueError."""
    return msgspec.convert(json.loads(kept), Incident)
