"""Finds the runs under a path: a file, a run directory or a tree of many.

Every module of this package that defines ``FORMAT`` and ``find`` is a format; a new one needs no
registration. Runs are known by their real path, so that one which is reached twice, such as through
W&B's ``latest-run``, counts once, and has one name wherever the search began.
"""

import importlib
import os
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from stat import S_ISDIR, S_ISREG

import sentinel.sources
from sentinel.sources.base import Complaint, Run

Find = Callable[[Path, Sequence[str]], Iterable[Run]]

_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages"})  # beside everything hidden


@dataclass(frozen=True)
class Discovery:
    """What lies under some paths. Runs are sorted by path, then format."""

    runs: Sequence[Run]
    complaints: Sequence[Complaint]  # the same at every search, until the trouble is gone
    missing: Sequence[Path]  # paths that do not exist: may appear later, or were mistyped


@cache
def formats() -> Mapping[str, Find]:
    """The formats by name, with the function that finds their runs.

    Raises ValueError if two modules share a name.
    """
    found: dict[str, Find] = {}
    for info in pkgutil.iter_modules(sentinel.sources.__path__, "sentinel.sources."):
        module = importlib.import_module(info.name)
        name, find = getattr(module, "FORMAT", None), getattr(module, "find", None)
        if name and find and found.setdefault(name, find) is not find:
            raise ValueError(f"two sources read the format {name}")
    return dict(sorted(found.items()))


def discover(paths: Iterable[Path]) -> Discovery:
    """All runs under the paths; of a path that is a file, the run that it is. Never raises."""
    search = _Search()
    for path in paths:
        search.start(path)
    runs = sorted(search.runs.values(), key=lambda run: (run.path, run.format))
    return Discovery(runs, search.complaints, search.missing)


def run_name(run: Run, roots: Iterable[Path]) -> str:
    """A short name, unique among the runs under the roots unless several formats share a directory.

    The path relative to the root, or to what all roots have in common; a run that is itself the only
    root has its own name, and one that a link reached outside the roots its whole path.
    """
    real = [os.path.realpath(root) for root in roots]
    base = Path(os.path.commonpath(real)) if real else Path("/")
    if not run.path.is_relative_to(base):
        return str(run.path)
    return run.path.name if run.path == base else str(run.path.relative_to(base))


class _Search:
    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        self.complaints: list[Complaint] = []
        self.missing: list[Path] = []
        self._visited: set[Path] = set()

    def start(self, path: Path) -> None:
        real = Path(os.path.realpath(path))
        mode = _mode(real)
        if S_ISREG(mode):
            self._look(real.parent, [real.name])
        elif S_ISDIR(mode):
            self._walk(real)
        else:
            self.missing.append(path)

    def _walk(self, top: Path) -> None:
        pending = [top]
        while pending:
            directory = pending.pop()
            if directory in self._visited:
                continue
            self._visited.add(directory)
            names = []
            for entry in self._entries(directory):
                if entry.is_symlink():
                    self._follow(entry, pending)
                elif entry.is_dir(follow_symlinks=False):
                    pending.append(directory / entry.name)
                elif entry.is_file(follow_symlinks=False):  # a pipe would block its reader
                    names.append(entry.name)
            self._look(directory, names)

    def _entries(self, directory: Path) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(directory) as entries:
                visible = [e for e in entries if not e.name.startswith(".") and e.name not in _SKIPPED]
        except OSError as error:
            self._complain(directory, f"cannot be read ({error.strerror})")
            return []
        for entry in visible:
            if not _is_text(entry.name):
                self._complain(
                    directory, f"{os.fsencode(entry.name)!r} is not UTF-8 and was skipped; rename it"
                )
        return sorted((e for e in visible if _is_text(e.name)), key=lambda e: e.name)

    def _follow(self, link: os.DirEntry[str], pending: list[Path]) -> None:
        real = Path(os.path.realpath(link.path))
        mode = _mode(real)
        if S_ISREG(mode):
            self._look(real.parent, [real.name])
        elif S_ISDIR(mode) and not Path(link.path).is_relative_to(real):  # else it leads up the tree
            pending.append(real)

    def _look(self, directory: Path, names: Sequence[str]) -> None:
        for find in formats().values():
            try:
                self.runs.update((run.id, run) for run in find(directory, names))
            except OSError as error:
                self._complain(directory, f"cannot be read ({error.strerror})")

    def _complain(self, path: Path, problem: str) -> None:
        self.complaints.append(Complaint(path, "", problem))


def _mode(path: Path) -> int:
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
