"""Archives of files on this machine, or on a file system that all workers see alike."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from sentinel.archives.origin import OpenPart
from sentinel.archives.parts import ListedFile, Part
from sentinel.common.errors import SentinelError
from sentinel.sources.base import ReadIssue
from sentinel.sources.console.line_forms import LineForm
from sentinel.sources.discovery import common_path, run_name, runs_among
from sentinel.sources.walking import Walk


class Tree(msgspec.Struct, frozen=True):
    """Files on this machine, or on a file system that all workers see alike."""

    roots: tuple[Path, ...]

    def listed(self, read_issues: list[str], /) -> Iterator[ListedFile]:
        """Yield the files of all directories that a replay would search; see `ArchiveSource.listed`."""
        walk = Walk(self.roots)
        missing = [ReadIssue(path, "", "no such file or directory") for path in walk.missing]
        if missing and len(missing) == len(self.roots):
            raise SentinelError(str(missing[0]))
        for directory, log_names in walk:
            for name in log_names:
                yield ListedFile(str(directory), name, _stamp(f"{directory}/{name}"))
        for file in walk.named:
            yield ListedFile(str(file), "", _stamp(str(file)))
        read_issues += map(str, [*missing, *walk.read_issues])

    @contextmanager
    def opened(self, part: Part, forms: Sequence[LineForm] = ()) -> Iterator[OpenPart]:
        """Open the runs of a part; see `ArchiveSource.opened`."""
        files = [(Path(path), names) for path, names in part.directories.items()]
        folders = [Path(folder.path) for folder in part.folders if not folder.names]
        runs, read_issues = runs_among(files, folders, forms)
        base = common_path(self.roots)
        yield OpenPart([(run, run_name(run, base)) for run in runs], read_issues)


def _stamp(file: str) -> str:
    try:
        status = os.stat(file)
    except OSError as error:
        return f"{error.errno}"
    return f"{status.st_size}\0{status.st_mtime_ns}"
