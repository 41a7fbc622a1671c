"""Where the logs of an archive lie, and how a worker gets at them."""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from sentinel.archives.parts import ListedFile, Part
from sentinel.ground.errors import SentinelError
from sentinel.sources.base import Complaint, Run
from sentinel.sources.discovery import common_path, run_name, runs_among
from sentinel.sources.places import Place, Url
from sentinel.sources.walking import Walk


class Opened(NamedTuple):
    """The runs of a part with their names, and what could not be searched for runs."""

    runs: Sequence[tuple[Run, str]]
    complaints: Sequence[Complaint]


class Origin(Protocol):
    """Where the logs of an archive lie. It can be pickled."""

    def listed(self, complaints: list[str], /) -> Iterator[ListedFile]:
        """All files, once; see `parts` for their order. What cannot be listed becomes a complaint.

        Raises SentinelError if there is nothing at all.
        """
        ...

    def opened(self, part: Part) -> AbstractContextManager[Opened]:
        """The runs of a part, which can be read within the context. Raises SentinelError with a reason."""
        ...


def origin_of(places: Sequence[Place]) -> Origin:
    """The origin of what lies at some places. Raises SentinelError for a mixture that no part can hold."""
    paths = [place for place in places if isinstance(place, Path)]
    if len(paths) == len(places):
        return Tree(tuple(paths))
    if len(places) > 1:
        raise SentinelError("--out judges paths, or one address; give each address a directory of its own")
    from sentinel.archives.bucket import SCHEMES, Bucket

    [url] = places
    if not isinstance(url, Url) or url.scheme not in SCHEMES:
        schemes = " and ".join(f"{scheme}://" for scheme in SCHEMES)
        raise SentinelError(f"{url}: --out judges paths, and addresses of {schemes}")
    return Bucket(url)


@dataclass(frozen=True)
class Tree:
    """Files on this machine, or on a file system that all workers see alike."""

    roots: tuple[Path, ...]

    def listed(self, complaints: list[str], /) -> Iterator[ListedFile]:
        """The files of all directories that a replay would search; see `Origin.listed`."""
        walk = Walk(self.roots)
        missing = [Complaint(place, "", "no such file or directory") for place in walk.missing]
        if missing and len(missing) == len(self.roots):
            raise SentinelError(str(missing[0]))
        for directory, names in walk:
            for name in names:
                yield ListedFile(str(directory), name, _stamp(f"{directory}/{name}"))
        for file in walk.named:
            yield ListedFile(str(file), "", _stamp(str(file)))
        complaints += map(str, [*missing, *walk.complaints])

    @contextmanager
    def opened(self, part: Part) -> Iterator[Opened]:
        """The runs of a part; see `Origin.opened`."""
        files = [(Path(folder.path), folder.names) for folder in part.folders if folder.names]
        runs, complaints = runs_among(files, [Path(one.path) for one in part.folders if not one.names])
        base = common_path(self.roots)
        yield Opened([(run, run_name(run, base)) for run in runs], complaints)


def _stamp(file: str) -> str:
    try:
        found = os.stat(file)
    except OSError as error:
        return f"{error.errno}"
    return f"{found.st_size}\0{found.st_mtime_ns}"
