"""Keeps copies of the logs below an address. It fetches only what was appended since the last time."""

import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.paths import exists
from sentinel.sources.location import Url
from sentinel.sources.readers.retry import FIRST_PAUSE_SECONDS, Patience
from sentinel.sources.remote.clients import connect, reason

_REFRESH_SECONDS = FIRST_PAUSE_SECONDS
_BATCH_BYTES = 32 << 20  # that one poll fetches of all files together
_CHUNK_BYTES = 1 << 20  # of each file, if there are many
_OVERLAP_BYTES = 1 << 10  # of the copy, fetched again to see whether the file only grew
_MAX_DOCUMENT_BYTES = 64 << 20  # of a file that may be data; a larger one is not copied

_TIMES = ("mtime", "LastModified", "updated", "last_modified", "uploaded_at")  # names in the file systems
_STAMPS = (*_TIMES, "ETag", "etag", "md5Hash", "blob_id", "xet_hash")

_LOG = lazy_pattern(r"\.(jsonl|ndjson|log|out|err|csv|wandb)$|tfevents|(^|/)(metrics|params|tags)/[^.]+$")
_DOCUMENT = lazy_pattern(r"\.(json|yaml|yml|txt|tsv)$")  # some of them are no logs, and some are huge


class _File(msgspec.Struct, frozen=True):
    remote: str
    copy: Path
    size: int
    modified_ns: int | None  # since the epoch
    stamp: str  # differs after every change


class Mirror:
    """Keeps copies in ``root``, under the same names. ``now`` is a clock that never goes back."""

    def __init__(self, url: Url, root: Path, now: Callable[[], float] = time.monotonic) -> None:
        self.root = root
        self._url = url
        self._now = now
        self._patience = Patience(now, reason)
        self._parts = url.parts  # of the address of the root
        self._connection: tuple[Any, str] | None = None
        self._refresh_at = -math.inf
        self._stamps: dict[Path, str] = {}  # stamps of files that are copied whole
        self._pending: deque[_File] = deque()

    @property
    def behind(self) -> bool:
        """Whether something is known to be new and is not copied yet."""
        return bool(self._pending)

    @property
    def beginning(self) -> bool:
        """Whether there are files of which nothing is copied yet."""
        return any(not exists(file.copy) for file in self._pending)

    def refresh(self) -> None:
        """List the files if the last list is 15 seconds old, and copy some news. Raises Unavailable."""
        if self._pending or self._now() >= self._refresh_at:
            self._patience.ask(self._advance)

    def address(self, copy: Path) -> Url:
        """Return the address of the file that was copied."""
        below = copy.relative_to(self.root).parts
        return Url(self._url.scheme, (*self._parts, *below))

    def _advance(self) -> None:
        connection = self._connection or connect(self._url)
        self._connection = None
        system, top = connection
        if not self._pending:
            system.invalidate_cache()
            self._record_listing(system.find(top, detail=True), top)
        chunk = max(_CHUNK_BYTES, _BATCH_BYTES // max(len(self._pending), 1))
        batch = [self._pending.popleft() for _ in range(min(len(self._pending), _BATCH_BYTES // chunk))]
        if batch:
            self._fetch(system, batch, chunk)
        self._connection = connection  # a connection that failed is not used again

    def _record_listing(self, listing: Mapping[str, Mapping[str, Any]], top: str) -> None:
        """Record the files that are there, and forget those that are gone."""
        if top in listing:  # a file
            self._parts = self._url.parts[:-1]
            top = top.rpartition("/")[0]
        files = {file.copy: file for file in self._files(listing, top)}
        if not files:
            raise FileNotFoundError
        for directory, _, names in os.walk(self.root):
            for copy in (Path(directory, name) for name in names):
                if copy not in files:
                    copy.unlink()
        news = [file for file in files.values() if self._is_news(file)]
        self._pending.extend(sorted(news, key=lambda file: exists(file.copy)))
        self._refresh_at = self._now() + _REFRESH_SECONDS

    def _files(self, listing: Mapping[str, Mapping[str, Any]], top: str) -> Iterator[_File]:
        for remote, info in listing.items():
            name = remote.removeprefix(top).strip("/")
            size = int(info.get("size") or 0)
            if is_wanted(name, size):
                stamp = repr([size, *(info.get(key) for key in _STAMPS)])
                yield _File(remote, self.root / name, size, _modified_ns(info), stamp)

    def _is_news(self, file: _File) -> bool:
        if file.copy not in self._stamps:
            with suppress(FileNotFoundError):
                status = os.stat(file.copy)
                if (status.st_size, status.st_mtime_ns) == (file.size, file.modified_ns):
                    self._stamps[file.copy] = file.stamp
        return self._stamps.get(file.copy) != file.stamp

    def _fetch(self, system: Any, batch: Sequence[_File], chunk: int) -> None:
        ranges = [_range(_size(file.copy), file.size, chunk) for file in batch]
        starts, ends = zip(*ranges, strict=True)
        results = system.cat_ranges([file.remote for file in batch], [*starts], [*ends], on_error="return")
        errors = [result for result in results if isinstance(result, Exception)]
        if len(errors) == len(batch):
            raise errors[0]
        for file, start, result in zip(batch, starts, results, strict=True):
            if isinstance(result, bytes):  # what failed is tried again after the next list
                try:
                    self._append_bytes(file, start, result)
                except OSError:
                    self._stamps[file.copy] = file.stamp  # its name cannot be used here

    def _append_bytes(self, file: _File, start: int, data: bytes) -> None:
        """Append what is new in ``data``, which begins at byte ``start``, or begin a new copy."""
        file.copy.parent.mkdir(parents=True, exist_ok=True)
        have = _size(file.copy)
        tail = b""
        if have > start:
            with open(file.copy, "rb") as copy:
                copy.seek(start)
                tail = copy.read()
        if have <= file.size and data.startswith(tail):
            with open(file.copy, "ab") as copy:
                copy.write(data[len(tail) :])
        else:
            anew = file.copy.with_name(f".{file.copy.name}")
            anew.write_bytes(b"" if start else data)
            anew.replace(file.copy)
        size = _size(file.copy)
        if size == file.size:
            self._stamps[file.copy] = file.stamp
            if file.modified_ns is not None:
                os.utime(file.copy, ns=(file.modified_ns, file.modified_ns))
        elif size != have:
            self._pending.append(file)


def is_wanted(name: str, size: int) -> bool:
    """Return whether a file may be a log, or hold settings, by its name below the address and its bytes."""
    document = size <= _MAX_DOCUMENT_BYTES and _DOCUMENT.search(name)
    inside = {"", ".", ".."}.isdisjoint(name.split("/"))
    return inside and bool(document or _LOG.search(name))


def _size(copy: Path) -> int:
    try:
        return copy.stat().st_size
    except FileNotFoundError:
        return 0


def _range(have: int, size: int, chunk: int) -> tuple[int, int]:
    """Return which bytes to fetch of a file that has ``size`` bytes there and ``have`` bytes here."""
    if have > size:
        return 0, min(size, chunk)
    if have == size:  # it was probably rewritten
        return max(0, size - chunk), size
    return max(0, have - _OVERLAP_BYTES), min(size, have + chunk)


def _modified_ns(info: Mapping[str, Any]) -> int | None:
    when = next((info[key] for key in _TIMES if info.get(key) is not None), None)
    if isinstance(when, str):
        when = datetime.fromisoformat(when)
    if isinstance(when, datetime):
        when = when.timestamp()
    return int(when * 1e9) if isinstance(when, (int, float)) else None
