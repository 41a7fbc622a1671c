"""Encodes incidents for the database, and decodes stored values, of which some may be damaged."""

import json
import logging
import math
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from sentinel.common.conversion import converter
from sentinel.incidents.incident import Incident

_T = TypeVar("_T")

_log = logging.getLogger(__name__)
_to_incident = converter(Incident)

_JSON_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""The names of numbers that JSON does not know; SQLite before 3.42 takes no row that has one."""


class Decoder:
    """Decodes stored values."""

    def __init__(self) -> None:
        self._reported: set[object] = set()

    def __call__(self, decode: Callable[[Any], _T], stored: Any) -> _T | None:
        """Return the decoded value; None if it cannot be decoded, which is logged the first time."""
        try:
            return decode(stored)
        except (ValueError, RecursionError) as error:  # ValueErrors are also what json and msgspec raise
            if stored not in self._reported:
                self._reported.add(stored)
                _log.error("ignoring a row of the state directory that cannot be decoded: %s", error)
            return None


def incident_to_json(incident: Incident) -> str:
    """Return an incident as JSON that SQLite reads as well."""
    fields = msgspec.to_builtins(incident)
    not_finite = {
        name: json.dumps(value)
        for name, value in fields["evidence"].items()
        if isinstance(value, float) and not math.isfinite(value)
    }
    fields["evidence"] |= not_finite
    return json.dumps(fields)


def incident_from_json(text: str) -> Incident:
    """Undo `incident_to_json`. Raises ValueError."""
    incident = _to_incident(json.loads(text))
    not_finite = {
        name: _JSON_NOT_FINITE[value]
        for name, value in incident.evidence.items()
        if isinstance(value, str) and value in _JSON_NOT_FINITE
    }
    return incident.replace(evidence={**incident.evidence, **not_finite}) if not_finite else incident
