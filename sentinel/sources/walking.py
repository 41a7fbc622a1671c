"""Walks the directories below some paths: each once, whatever links lead there, and in order."""

import os
from collections.abc import Collection, Iterator, Sequence
from errno import EACCES
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from sentinel.common.paths import is_denied
from sentinel.sources.base import ReadIssue
from sentinel.sources.location import matches
from sentinel.sources.readers.files import is_text, on_kernel, real_path
from sentinel.sources.registry import formats, hidden_logs

Files = tuple[Path, Sequence[str]]
"""A directory and the names of files there."""

_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages"})  # beside what is hidden


class Walk:
    """The directories below some paths, with the names of the files in them. It can be walked once.

    A directory comes before those below it, and those beside it come in alphabetical order. What a link leads
    to comes where the link lies. A link out of all paths is not followed, because whoever writes a log could
    lead the reader anywhere by one; only a path may be such a link. Nor is anything read on a file system of
    the kernel. ``named`` are paths that are files. ``missing`` are those that do not exist.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.read_issues: list[ReadIssue] = []
        self.named: list[Path] = []
        self.missing: list[Path] = []
        self._visited: set[str] = set()
        self._tops: list[str] = []
        self._roots: list[str] = []
        for path in paths:
            found_paths = matches(path)
            if not found_paths:
                self.missing.append(path)
            for match in found_paths:
                self._start(match)

    def __iter__(self) -> Iterator[Files]:
        for top in self._tops:
            yield from self._below(top)

    def _start(self, path: Path) -> None:
        real = real_path(path)
        if is_denied(real):
            self._complain(path, f"cannot be read ({os.strerror(EACCES)})")
            return
        mode = _mode(real)
        self._roots.append(real)
        if not is_text(real):
            self._complain(Path(repr(os.fsencode(real))), "is not UTF-8 and was skipped; rename it")
        elif S_ISREG(mode):
            self.named.append(Path(real))
        elif S_ISDIR(mode):
            self._tops.append(real)
        else:
            self.missing.append(path)

    def _below(self, top: str) -> Iterator[Files]:
        pending = [top]
        while pending:
            directory = pending.pop()
            if directory in self._visited:
                continue
            self._visited.add(directory)
            names: list[str] = []
            below: list[str] = []
            entries = self._entries(directory)
            names_here = {entry.name for entry in entries}
            for entry in entries:
                if entry.is_symlink():
                    if not _leads_below(entry, names_here):
                        yield from self._follow_link(entry, below)
                elif entry.is_dir(follow_symlinks=False):
                    if not is_internal(entry.path):
                        below.append(entry.path)
                elif entry.is_file(follow_symlinks=False):  # a pipe would block its reader
                    names.append(entry.name)
            pending += reversed(below)
            yield Path(directory), names

    def _entries(self, directory: str) -> list[os.DirEntry[str]]:
        try:
            if on_kernel(os.stat(directory)):
                self._complain(directory, "is of the kernel and holds no logs, so it was skipped")
                return []
            with os.scandir(directory) as entries:
                visible = [entry for entry in entries if not is_skipped(entry.name)]
        except OSError as error:
            self._complain(directory, f"cannot be read ({error.strerror})")
            return []
        for entry in visible:
            if not is_text(entry.name):
                self._complain(
                    directory, f"{os.fsencode(entry.name)!r} is not UTF-8 and was skipped; rename it"
                )
        return sorted((e for e in visible if is_text(e.name)), key=lambda e: e.name)

    def _follow_link(self, link: os.DirEntry[str], below: list[str]) -> Iterator[Files]:
        real = real_path(link.path)
        mode = _mode(real)
        if not is_text(real):
            self._complain(link.path, "is a link to a place that sentinel does not read, and was skipped")
        elif mode and not self._is_inside(real):
            self._complain(
                link.path, f"is a link out of what was named, and was skipped; name {real} to read it"
            )
        elif S_ISREG(mode):
            directory, name = os.path.split(real)
            if not is_internal(directory):
                yield Path(directory), [name]
        elif S_ISDIR(mode) and not Path(link.path).is_relative_to(real):  # otherwise it leads up the tree
            below.append(real)

    def _is_inside(self, real: str) -> bool:
        return any(f"{real}/".startswith(f"{root.rstrip('/')}/") for root in self._roots)

    def _complain(self, path: str | Path, problem: str) -> None:
        self.read_issues.append(ReadIssue(Path(path), "", problem))


def is_skipped(name: str) -> bool:
    """Return whether nothing below a file or a directory of this name is read."""
    return name in _SKIPPED or (name.startswith(".") and name not in hidden_logs())


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0


def _leads_below(link: os.DirEntry[str], siblings: Collection[str]) -> bool:
    """Return whether the link, such as W&B's ``latest-run``, leads to a directory that is searched anyway."""
    try:
        parts = os.readlink(link.path).split("/")  # noqa: PTH115  W&B leaves three links a run
    except OSError:
        return False
    return parts[0] in siblings and parts[0] != link.name and not any(map(is_skipped, parts[1:]))


def is_internal(directory: str) -> bool:
    """Return whether a directory holds only what concerns a logger itself."""
    return any(each.is_internal(directory) for each in formats().values())
