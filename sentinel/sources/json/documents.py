"""Finds the new entries of JSON documents that are rewritten as a whole at each save.

A cursor holds the number of entries that were read and a fingerprint of the last one. If the document has
fewer entries, or another one in that place, the training began anew.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.base import Chunk, Cursor, ReadIssue
from sentinel.sources.readers.files import open_log, plain_utf_8, version
from sentinel.sources.readers.plain import JSON
from sentinel.sources.readers.records import Records, named

LARGEST = 256 << 20
"""Bytes. A larger document is not read. This bounds the memory of a poll."""

SETTINGS_KEYS = ("config", "configuration", "hparams", "hyperparameters", "args", "settings")
"""Names of the object in which a record or a document states its settings."""

_CONFLICT = lazy_pattern(
    rb"^<<<<<<<[^\n]*\n(?P<ours>.*?)(?:^=======\s.*?(?:^>>>>>>>[^\n]*\n?|\Z)|\Z)", re.DOTALL | re.MULTILINE
)

_MAX_TOKEN = 10  # bytes of a word or an escape that the end of a torn document may cut in two


class BrokenError(Exception):
    """The document is too large, or cannot become JSON by growing."""

    def __init__(self, path: Path, location: str, problem: str) -> None:
        super().__init__(problem)
        self.complaint = ReadIssue(path, location, problem)


def is_complete(data: bytes) -> bytes:
    """Return the document, or its beginning, in UTF-8 and without the marks of a merge conflict.

    Of each conflict the first side stays, which is what `git merge` calls ours.
    """
    data = plain_utf_8(data)
    return _CONFLICT.sub(lambda conflict: conflict["ours"], data)


def stated_settings(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings that a record, or a document, states."""
    stated = record.get(named(record, SETTINGS_KEYS) or "")
    return stated if isinstance(stated, dict) else {}


def load(path: Path) -> Any:
    """Load the document; None while it is empty or being saved. Raises OSError and BrokenError."""
    with open_log(path) as file:
        version_before = version(file)
        data = file.read(LARGEST + 1)
        is_being_saved = version(file) != version_before
    if len(data) > LARGEST:
        raise BrokenError(path, "", f"is larger than {LARGEST >> 20} MiB and is not read")
    data = is_complete(data)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass  # NaN and infinities are no JSON, but Python writes and reads them
    text = data.decode("utf-8-sig", errors="replace").rstrip("\0 \t\r\n")
    try:
        return JSON.decode(text)
    except json.JSONDecodeError as error:
        is_torn = error.pos + _MAX_TOKEN >= len(text) or error.msg.startswith("Unterminated")
        if is_torn or is_being_saved:
            return None
        problem = f"is no JSON ({error.msg}) and is not read until it is saved again"
        raise BrokenError(path, f"line {error.lineno}", problem) from None
    except RecursionError:
        raise BrokenError(path, "", "is nested too deeply to be a log and is not read") from None


def parse_new(
    cursor: Cursor, entries: Sequence[Any], limit: int, stream: str, facts: Mapping[str, float]
) -> tuple[dict[str, Any], list[Chunk], bool]:
    """Read about ``limit`` points of new entries. Gives the next cursor, chunks, and whether more follow.

    ``facts`` are numbers of the whole document. They are added to the next entry when they are new.
    """
    count: int = cursor.get("entries", 0)
    if count and _last(entries, count) != cursor["last"]:
        count = 0
        cursor = {"restarted": True}
    records = Records(cursor.get("records", {}))
    facts_before = cursor.get("facts", {})
    while count < len(entries) and len(records) < limit:
        entry = entries[count]
        count += 1
        if isinstance(entry, dict):
            records.add(entry if facts_before == facts else {**entry, **facts}, count)
            facts_before = facts
    state = {
        "entries": count,
        "last": _last(entries, count),
        "records": records.memory(),
        "facts": dict(facts_before),
    }
    restarted = cursor.get("restarted", False)
    if not records:
        return state | {"restarted": restarted}, [], False
    return state, [records.chunk(stream, restarted)], count < len(entries)


def begins_with(entries: Sequence[Any], earlier: Sequence[Any]) -> bool:
    """Return whether ``entries`` is a later state of the same list."""
    return _last(entries[: len(earlier)], len(earlier)) == _last(earlier, len(earlier))


def _last(entries: Sequence[Any], count: int) -> str:
    """Return a fingerprint of the last of ``count`` entries; the fingerprint of nothing if too few."""
    return fingerprint(entries[count - 1] if 0 < count <= len(entries) else None)


def fingerprint(entry: Any) -> str:
    """Return a text that is another one for another entry; None stands for no entry."""
    text = "" if entry is None else json.dumps(entry, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
