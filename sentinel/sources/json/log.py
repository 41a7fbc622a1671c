"""A JSON document that is a log: a list of objects, or lists by name (Keras's history).

The list of objects may be the `log_history` of a state of HF's Trainer under another file name. Lists of
objects below another name, and lists of numbers by name, may have several lengths, such as one for the
episodes and one for the evaluations, so the general reader reads these.

Only files count whose beginning plainly is a log; a summary, a result or a configuration is none. Less is
asked of a file with the name of a log. Documents of numbers, one for each epoch, are a log as well: see
`sentinel.sources.json.numbered`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
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
from sentinel.sources.readers.plain import flat
from sentinel.sources.readers.sniffing import HEAD_BYTES, is_log, is_log_name, remembered
from sentinel.sources.readers.two_readers import TwoReaders

FORMAT = "json"

_OF_ONE_METRIC = frozenset({"steps", "values"})
"""Lists of a metric that has steps of its own, as Sacred writes it; they are no columns of a common table."""

_TELLING = ("loss", "reward")
"""What lists hold that a document with the name of a log begins with, however long the first one is."""

_JSON_FIELD = r'"((?:[^"\\]|\\.)*)"\s*:\s*'
_NUMBER_FIELD = lazy_pattern(_JSON_FIELD + r"(?=-?[\dNI])")
_NUMBERS_FIELD = lazy_pattern(_JSON_FIELD + r"\[\s*(?=-?[\dNI])")
_COLUMN = lazy_pattern(_JSON_FIELD + r'\{\s*"0"\s*:\s*(?=-?[\dNI])')
_STATE_LIST = "log_history"
_WRAPPERS = (_STATE_LIST, "history", "logs", "metrics")
_LIST = lazy_pattern(rf'\s*(?:\{{.*?"(?:{"|".join(_WRAPPERS)})"\s*:\s*)?\[\s*\{{', re.DOTALL)
_LISTS = lazy_pattern(rf"\s*\{{\s*(?:{_JSON_FIELD}\{{\s*)?(?:{_NUMBERS_FIELD.pattern}|{_COLUMN.pattern})")


class _Form(StrEnum):
    """What a log holds: a list of entries, of whatever names, or other lists by name."""

    ENTRIES = "entries"
    LISTS = "lists"


def find(directory: Path, names: Sequence[str]) -> Iterator[Run]:
    """Yield the JSON documents among the names of one directory that are logs."""
    for name in names:
        if not name.endswith(".json") or name == STATE:
            continue
        path = directory / name
        if form := _named_form(path):
            yield _document_run(path, form)
    if are_numbered_log(directory, names):
        yield Run(directory, FORMAT, NumberedDocuments(directory), has_parallel_streams=True)


def run_in(path: Path) -> Run | None:
    """Return the run in the file, if it begins like a log, whatever its name is."""
    form = _form(path, "metrics")
    return _document_run(path, form) if form else None


def _document_run(path: Path, form: _Form) -> Run:
    source = JsonDocument(path, is_general=form is not _Form.ENTRIES)
    return Run(path, FORMAT, source, has_parallel_streams=True)


class JsonDocument(TwoReaders):
    """One document. The general reader begins if it is no list of entries that plainly are a log."""

    def reader(self, is_general: bool) -> Source:
        """Return the reader of documents of any shape, or that of lists of entries."""
        if not is_general:
            return JsonLog(self.path)
        from sentinel.sources.general.document_log import DocumentLog  # slow to import, and few logs need it

        return DocumentLog(self.path)


class JsonLog(msgspec.Struct, frozen=True):
    """One document. It is left to the general reader, from its start, once it holds no list of entries."""

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
        entries = _document_entries(document)
        if entries is None:
            was_begun = cursor.get("entries") or cursor.get("restarted")
            general = {"is_general": True, "restarts": [self.path.name] if was_begun else []}
            return PollResult(general, more=True)
        plan = _settings_of(document) if isinstance(document, dict) else {}
        new_cursor, chunks, more = parse_new(cursor, entries, limit, self.path.name, {})
        return PollResult({**new_cursor, "newest": None if more else newest}, chunks, more=more, config=plan)


def _settings_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return settings(document) if _STATE_LIST in document else flat(stated_settings(document))


def _document_entries(document: Any) -> Sequence[Any] | None:
    """Return the entries; None for lists by other names, which a watch of an earlier version began here."""
    entries = document.get(_STATE_LIST) if isinstance(document, dict) else document
    return entries if isinstance(entries, list) else None


@remembered
def _named_form(path: Path) -> _Form | None:
    return _form(path, path.stem)


def _form(path: Path, stem: str) -> _Form | None:
    """Return the form of a document named ``stem`` with this content; None if it is no log.

    It begins with an object in a list, or with lists in an object.
    """
    try:
        with open_log(path) as file:
            head = is_complete(file.read(HEAD_BYTES)).decode("utf-8-sig", errors="replace")
    except OSError:
        return None
    if opening := _LIST.match(head):
        form = _Form.LISTS if head.lstrip()[:1] == "{" and _STATE_LIST not in opening[0] else _Form.ENTRIES
        fields = _NUMBER_FIELD.findall(head[opening.end() :].partition("}")[0])
        return form if is_log(stem, fields) else None
    names = [*_NUMBERS_FIELD.findall(head), *_COLUMN.findall(head)] if _LISTS.match(head) else []
    if _OF_ONE_METRIC.issuperset(names):
        return None
    is_told = is_log_name(stem) and any(word in name.lower() for name in names for word in _TELLING)
    return _Form.LISTS if is_told or is_log(stem, names) else None
