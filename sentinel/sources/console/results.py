"""The results of a trial of Ray Tune, and so of RLlib, which are printed as nested entries.

Below "Result for NAME:" stands a mapping in YAML. Its entries are indented by two blanks, and those of a
mapping in it by two more. Their names are joined as in the file of results that Tune writes.
"""

import re
from collections.abc import Mapping
from typing import Any

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.console.printed import NUMBER, Record, kept, number, restored

_BEGUN = lazy_pattern(r"Result for (?P<trial>\S{1,200}):")
_RESULT_ENTRY = lazy_pattern(
    rf"(?P<indent> ++)(?P<name>[^\s:'\"-][^\s:]*+):(?: (?:\.(?=[ni]))?(?P<value>{NUMBER}))?", re.IGNORECASE
)

_RESULT_INDENT = 2
_MAX_ENTRIES = 500


class TrialResults:
    """The result that is being printed, given the memory of the lines before (``{}`` for none).

    Trials run beside one another and print in turn. Only the first one counts.
    """

    def __init__(self, memory: Mapping[str, Any]) -> None:
        self._trial: str = memory.get("trial", "")
        self._record: Record | None = restored(memory["record"]) if memory.get("record") is not None else None
        self._path: list[str] = list(memory.get("path", []))  # names of the mappings around the next entry

    def memory(self) -> dict[str, Any]:
        """Return what the next lines need to know of it; JSON-able."""
        record = None if self._record is None else kept(self._record)
        return {"trial": self._trial, "record": record, "path": self._path}

    @property
    def begun(self) -> bool:
        """Whether entries may follow."""
        return self._record is not None

    def begin(self, line: str) -> bool:
        """Return whether a line is the heading of a result that counts."""
        heading = _BEGUN.fullmatch(line)
        if heading is None or heading["trial"] != (self._trial or heading["trial"]):
            return False
        self._trial = heading["trial"]
        self._record = {}
        self._path = []
        return True

    def add(self, line: str) -> bool:
        """Return whether a line belongs to the result."""
        if self._record is None or not line.startswith(" " * _RESULT_INDENT):
            return False
        entry = _RESULT_ENTRY.fullmatch(line.rstrip())
        if entry is not None and len(self._record) < _MAX_ENTRIES:
            self._path = [*self._path[: len(entry["indent"]) // _RESULT_INDENT - 1], entry["name"]]
            if entry["value"] and (value := number(entry["value"])) is not None:
                self._record["/".join(self._path)] = value
        return True

    def end(self) -> Record:
        """Return what the result told; nothing if there is none."""
        record = self._record or {}
        self._record = None
        return record
