"""A whole JSON file that is a log: a list of objects, or lists of equal length by name (Keras's history).

Only files with the name of a training log count whose beginning plainly is one; a summary, a result
or a configuration is none.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentinel.sources.base import Batch, Cursor, Run
from sentinel.sources.documents import BrokenError, load, stamp, take
from sentinel.sources.files import open_log
from sentinel.sources.growing import nothing_new, unreadable
from sentinel.sources.sniffing import HEAD_BYTES, is_log, is_log_name

FORMAT = "json"

_FIELD = r'"((?:[^"\\]|\\.)*)"\s*:\s*'
_NUMBER = re.compile(_FIELD + r"(?=-?[\dNI])")
_NUMBERS = re.compile(_FIELD + r"\[\s*(?=-?[\dNI])")
_LIST = re.compile(r"\s*\[\s*\{")
_LISTS = re.compile(r"\s*\{\s*" + _NUMBERS.pattern)


def find(directory: Path, names: Sequence[str]) -> Iterator[Run]:
    """The JSON documents among the names of one directory that are logs."""
    for name in names:
        if not name.endswith(".json"):
            continue
        path = directory / name
        if is_log_name(path.stem) and _is_log(path):
            yield Run(path, FORMAT, JsonLog(path))


@dataclass(frozen=True)
class JsonLog:
    """One document."""

    path: Path

    def poll(self, cursor: Cursor, limit: int) -> Batch:
        """The entries that were added since ``cursor``; see `sentinel.sources.base.Source`."""
        try:
            newest = stamp(self.path)
            if newest == cursor.get("newest"):
                return nothing_new(cursor)
            document = load(self.path)
        except OSError as error:
            return unreadable(self.path, cursor, error)
        except BrokenError as error:
            refused = error.complaint.problem
            return Batch({**cursor, "newest": newest, "refused": refused}, complaints=[error.complaint])
        if document is None:
            return Batch({**cursor, "newest": newest})
        taken, chunks, more = take(cursor, _entries(document), limit, self.path.name, {})
        return Batch({**taken, "newest": None if more else newest}, chunks, more=more)


def _entries(document: Any) -> Sequence[Any]:
    if isinstance(document, dict):
        columns = {name: values for name, values in document.items() if isinstance(values, list)}
        length = max(map(len, columns.values()), default=0)
        whole = [name for name, values in columns.items() if len(values) == length]
        rows = zip(*(columns[name] for name in whole), strict=True)
        return [dict(zip(whole, row, strict=True)) for row in rows]
    return document if isinstance(document, list) else []


def _is_log(path: Path) -> bool:
    """Whether the first object of the list, or the lists with which the object begins, are those of a log."""
    try:
        with open_log(path) as file:
            head = file.read(HEAD_BYTES).decode("utf-8-sig", errors="replace")
    except OSError:
        return False
    if _LIST.match(head):
        return is_log(path.stem, _NUMBER.findall(head.partition("}")[0]))
    names = _NUMBERS.findall(head) if _LISTS.match(head) else []
    return is_log(path.stem, names) or any("loss" in name.lower() for name in names)
