"""Directories in buckets and on other machines (``s3://``, ``gs://``, ``hf://``, ``ssh://``).

Their logs are copied as they grow. Only what was appended is fetched, so the copy of a growing file grows as
well, and the usual readers read it. A file that was rewritten gets a new copy, which then replaces the old
one like any other file.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec.structs import replace

from sentinel.common.installation import install
from sentinel.sources.base import Chunk, Cursor, PollResult, Run, Source, flush
from sentinel.sources.location import Url
from sentinel.sources.readers.growing import unreadable
from sentinel.sources.readers.retry import Unavailable
from sentinel.sources.remote.clients import PACKAGES
from sentinel.sources.remote.mirror import Mirror

SCHEMES = tuple(PACKAGES)


def check(url: Url) -> None:
    """Raise ValueError if the address is invalid or its client library is not installed."""
    package = PACKAGES[url.scheme]
    if not url.parts:
        raise ValueError(f"{url} names no place; write {url.scheme}://PLACE/DIRECTORY")
    if ":" in url.parts[0].rpartition("@")[0]:
        raise ValueError(f"{url.scheme}:// address holds a password; use the keys of your account instead")
    if find_spec(package) is None:
        raise ValueError(f"{url.scheme}:// needs {package} beside sentinel: {install(url.scheme)}")


def search(url: Url, copies: Path) -> Iterator[Run]:
    """Yield the runs that are there now. Raises OSError if they cannot be found out."""
    from sentinel.sources.discovery import discover

    mirror = _mirror(url, copies.resolve())
    mirror.refresh()
    while mirror.beginning:
        mirror.refresh()
    yield from remote_runs(mirror, discover([mirror.root]).runs)


@cache
def _mirror(url: Url, copies: Path) -> Mirror:
    return Mirror(url, copies / sha256(str(url).encode()).hexdigest()[:16])


class Copies(Protocol):
    """Copies of the files at an address."""

    @property
    def behind(self) -> bool:
        """Whether something is known to be new there."""
        ...

    def refresh(self) -> None:
        """Copy what is new. Raises Unavailable."""
        ...

    def address(self, copy: Path) -> Url:
        """Return the address of a copy."""
        ...


def remote_runs(copies: Copies, runs: Iterable[Run]) -> Iterator[Run]:
    """Yield the runs among copies as those at the address."""
    for run in runs:
        if run.local is not None:
            path = copies.address(run.local)
            yield replace(
                run, path=path, source=RemoteRun(path, copies, run.source), copy=run.local, part_of=None
            )


class RemoteRun(msgspec.Struct, frozen=True):
    """A run that is read from its copy."""

    path: Url
    mirror: Copies
    source: Source

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return what is new in the copy; see `sentinel.sources.base.Source`."""
        try:
            self.mirror.refresh()
        except Unavailable as error:
            return unreadable(self.path, cursor, error)
        batch = self.source.poll(_answered(cursor), limit)
        complaints = [
            replace(complaint, path=self.mirror.address(complaint.path))
            for complaint in batch.read_issues
            if isinstance(complaint.path, Path)
        ]
        return replace(batch, read_issues=complaints, more=batch.more or self.mirror.behind)

    def flush(self, cursor: Cursor) -> Sequence[Chunk]:
        """Return the points that are left in the copy; see `sentinel.sources.base.Flushable`."""
        return flush(self.source, _answered(cursor))


def _answered(cursor: Cursor) -> Cursor:
    """Return the cursor of the copy."""
    return {name: value for name, value in cursor.items() if name != "unreadable"}
