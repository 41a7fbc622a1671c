"""A JSON document that is a log: a list of objects, or lists of equal length by name (Keras's history).

The list may lie below a name such as `log_history`, as in a state of HF's Trainer under another file name.
The lists by name may lie below one more name, `{"train": {"loss": [...]}}`, or be objects as pandas writes
them, `{"loss": {"0": 1.5, "1": 1.25}}`.

Only files count whose beginning plainly is a log; a summary, a result or a configuration is none. Less is
asked of a file with the name of a log. Documents of numbers, one for each epoch, are a log as well: see
`sentinel.sources.json.numbered`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.base import Cursor, PollResult, Run, Source
from sentinel.sources.json.documents import BrokenError, is_complete, load, parse_new, stated_settings
from sentinel.sources.json.numbered import NumberedDocuments, are_numbered_log
from sentinel.sources.json.trainer_state import STATE, settings
from sentinel.sources.readers.files import open_log, stamp
from sentinel.sources.readers.growing import nothing_new, refusal, unreadable
from sentinel.sources.readers.plain import flat, flattened
from sentinel.sources.readers.records import named
from sentinel.sources.readers.sniffing import HEAD_BYTES, is_log, is_log_name, remembered
from sentinel.sources.readers.two_readers import TwoReaders

FORMAT = "json"

_OF_ONE_METRIC = frozenset({"steps", "values"})
"""Lists of a metric that has steps of its own, as Sacred writes it; they are no columns of a common table."""

_JSON_FIELD = r'"((?:[^"\\]|\\.)*)"\s*:\s*'
_NUMBER_FIELD = lazy_pattern(_JSON_FIELD + r"(?=-?[\dNI])")
_NUMBERS_FIELD = lazy_pattern(_JSON_FIELD + r"\[\s*(?=-?[\dNI])")
_COLUMN = lazy_pattern(_JSON_FIELD + r'\{\s*"0"\s*:\s*(?=-?[\dNI])')
_WRAPPERS = ("log_history", "history", "logs", "metrics")
_LIST = lazy_pattern(rf'\s*(?:\{{.*?"(?:{"|".join(_WRAPPERS)})"\s*:\s*)?\[\s*\{{', re.DOTALL)
_LISTS = lazy_pattern(rf"\s*\{{\s*(?:{_JSON_FIELD}\{{\s*)?(?:{_NUMBERS_FIELD.pattern}|{_COLUMN.pattern})")


def find(directory: Path, names: Sequence[str]) -> Iterator[Run]:
    """Yield the JSON documents among the names of one directory that are logs."""
    for name in names:
        if not name.endswith(".json") or name == STATE:
            continue
        path = directory / name
        if _is_named_log(path):
            yield _document_run(path)
    if are_numbered_log(directory, names):
        yield Run(directory, FORMAT, NumberedDocuments(directory), has_parallel_streams=True)


def run_in(path: Path) -> Run | None:
    """Return the run in the file, if it begins like a log, whatever its name is."""
    return _document_run(path) if _is_document_log(path, "metrics") else None


def _document_run(path: Path) -> Run:
    return Run(path, FORMAT, JsonDocument(path, is_general=False), has_parallel_streams=True)


class JsonDocument(TwoReaders):
    """One document. The general reader begins if it is no list of entries that plainly are a log."""

    def reader(self, is_general: bool) -> Source:
        """Return the reader of documents of any shape, or that of lists of entries."""
        if not is_general:
            return JsonLog(self.path)
        from sentinel.sources.general.document_log import DocumentLog  # slow to import, and few logs need it

        return DocumentLog(self.path)


class JsonLog(msgspec.Struct, frozen=True):
    """One document."""

    path: Path

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return the entries that were added since ``cursor``; see `sentinel.sources.base.Source`."""
        try:
            newest = stamp(self.path)
            if newest == cursor.get("newest"):
                return nothing_new(cursor)
            document = load(self.path)
        except OSError as error:
            return unreadable(self.path, cursor, error)
        except BrokenError as error:
            return refusal(cursor, newest, error.complaint)
        if document is None:
            return PollResult({**cursor, "newest": newest})
        plan = _settings_of(document) if isinstance(document, dict) else {}
        new_cursor, chunks, more = parse_new(cursor, _document_entries(document), limit, self.path.name, {})
        return PollResult({**new_cursor, "newest": None if more else newest}, chunks, more=more, config=plan)


def _settings_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return settings(document) if "log_history" in document else flat(stated_settings(document))


def _document_entries(document: Any) -> Sequence[Any]:
    if not isinstance(document, dict):
        return document if isinstance(document, list) else []
    wrapped = document.get(named(document, _WRAPPERS) or "")
    if isinstance(wrapped, list) and any(isinstance(entry, dict) for entry in wrapped):
        return wrapped
    below = _columns(wrapped) if isinstance(wrapped, dict) else {}
    columns = below or _columns(document)  # as final figures may lie below such a name, too
    length = max(map(len, columns.values()), default=0)
    whole = [name for name, values in columns.items() if len(values) == length]
    sparse = {name for name in whole if _is_measured_now_and_then(columns[name])}
    rows = zip(*(columns[name] for name in whole), strict=True)
    return [
        {
            name: value
            for name, value in zip(whole, row, strict=True)
            if value is not None or name not in sparse
        }
        for row in rows
    ]


def _columns(document: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the lists below a document by their names."""
    return {name: values for name, values in flattened(_with_lists(document)).items() if type(values) is list}


def _is_measured_now_and_then(column: Sequence[Any]) -> bool:
    """Return whether a number follows a null, which then stands for a row without a measurement."""
    is_null = [value is None for value in column]
    return any(earlier and not later for earlier, later in pairwise(is_null))


def _with_lists(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with the columns that pandas writes, `{"0": 1.5, "1": 1.25}`, as lists."""
    return {
        name: [*value.values()] if isinstance(value, dict) and next(iter(value), "") == "0" else value
        for name, value in document.items()
    }


@remembered
def _is_named_log(path: Path) -> bool:
    return _is_document_log(path, path.stem)


def _is_document_log(path: Path, stem: str) -> bool:
    """Return whether a document named ``stem`` with this content is a log.

    It begins with an object in a list, or with lists in an object.
    """
    try:
        with open_log(path) as file:
            head = is_complete(file.read(HEAD_BYTES)).decode("utf-8-sig", errors="replace")
    except OSError:
        return False
    if opening := _LIST.match(head):
        return is_log(stem, _NUMBER_FIELD.findall(head[opening.end() :].partition("}")[0]))
    names = [*_NUMBERS_FIELD.findall(head), *_COLUMN.findall(head)] if _LISTS.match(head) else []
    if _OF_ONE_METRIC.issuperset(names):
        return False
    return is_log(stem, names) or (is_log_name(stem) and any("loss" in name.lower() for name in names))
