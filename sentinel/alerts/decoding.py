"""Decodes rows of the database. A row that cannot be decoded is logged once and ignored."""

import json
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from sentinel.alerts.incident import Incident
from sentinel.conversion import converter

_T = TypeVar("_T")

_log = logging.getLogger(__name__)
_to_incident = converter(Incident)


class Decoder:
    """Decodes stored values."""

    def __init__(self) -> None:
        self._reported: set[object] = set()

    def __call__(self, decode: Callable[[Any], _T], kept: Any) -> _T | None:
        """The decoded value; None if it cannot be decoded, which is logged the first time."""
        try:
            return decode(kept)
        except (ValueError, RecursionError) as error:  # ValueErrors are also what json and msgspec raise
            if kept not in self._reported:
                self._reported.add(kept)
                _log.error("ignoring a row of the state directory that cannot be decoded: %s", error)
            return None


def incident(kept: str) -> Incident:
    """An incident from its JSON. Raises ValueError."""
    return _to_incident(json.loads(kept))
