"""Finds the runs at a path, which is a file or a tree of directories, or behind an address.

A run is known by its real path, so a run that is reached twice, such as through W&B's ``latest-run``, counts
once and has one name wherever the search began.
"""

import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from sentinel.ground.errors import SentinelError, did_you_mean
from sentinel.sources.base import Complaint, Run
from sentinel.sources.places import Place, Url, fixed_part, matches
from sentinel.sources.reading.files import can_exist, is_text, real_path
from sentinel.sources.reading.sniffing import why_no_log
from sentinel.sources.registry import Find, formats, hidden_logs, remotes

_Files = tuple[Path, Sequence[str]]  # a directory and names there
_Found = tuple[Sequence[Run], Sequence[Complaint]]
Spread = Callable[[Callable[[_Files], _Found], Sequence[_Files]], Iterable[_Found]]

_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages"})  # beside what is hidden
_SHOWN = 60  # characters of a name that is refused
_KERNELS = ("/proc/", "/sys/")  # no logs lie there, and some files keep a reader waiting


@dataclass(frozen=True)
class Discovery:
    """What lies under some paths. Runs are sorted by path, then format."""

    runs: Sequence[Run]
    complaints: Sequence[Complaint]  # each search repeats them until the trouble is gone
    missing: Sequence[Place]  # paths that do not exist; they may appear later, or are mistyped
    any_there: bool  # whether another place exists

    def complained(self) -> Sequence[Complaint]:
        """The complaints, also about what is missing. Raises SentinelError if nothing else is there."""
        missing = [Complaint(place, "", "no such file or directory") for place in self.missing]
        if missing and not self.any_there:
            raise SentinelError(str(missing[0]))
        return [*missing, *self.complaints]


def place(text: str) -> Place:
    """The path or the address that a person wrote.

    Raises ValueError for an invalid address.
    """
    url = Url.parse(text)
    if url is None:
        return Path(text)
    if url.scheme not in remotes():
        raise ValueError(f"{url.scheme}:// is unknown{did_you_mean(url.scheme, remotes())}")
    remotes()[url.scheme].check(url)
    return url


def places(texts: Iterable[str]) -> list[Place]:
    """The paths and addresses that a person wrote. Raises SentinelError for an invalid address."""
    try:
        return [place(text) for text in texts]
    except ValueError as error:
        raise SentinelError(str(error)) from None


def discover(places: Iterable[Place], copies: Path | None = None, spread: Spread = map) -> Discovery:
    """Find all runs under the places. Never raises an error.

    ``copies`` is a directory for what is copied from addresses. A later process goes on with these copies.
    ``spread`` applies a function to all directories, as ``map`` does, and may do so in other processes. This
    process then does not remember which files are logs, so a later search looks at them again.
    """
    search, asked = _Search(), [*places]
    for place in asked:
        if isinstance(place, Url):
            search.ask(place, copies or Path(_scratch().name))
        else:
            search.start_all(place)
    finds = [each.find for each in formats().values()]
    for found in spread(lambda files: _scan(finds, *files), search.files):
        search.add(found)
    for path in search.named:
        search.add(_named(finds, path))
    whole = (run for run in search.runs.values() if f"{run.format}:{run.part_of}" not in search.runs)
    runs = sorted(whole, key=lambda run: (run.path.parts, run.format))
    return Discovery(runs, search.complaints, search.missing, len(asked) > len(search.missing))


def common_path(roots: Iterable[Place]) -> Path:
    """The longest path that contains all roots that are paths; the root itself if there is only one.

    A glob counts as the part before its first wildcard.
    """
    real = [real_path(fixed_part(root)) for root in roots if isinstance(root, Path)]
    return Path(os.path.commonpath(real)) if real else Path("/")


def run_name(run: Run, base: Path) -> str:
    """A short name, unique among the runs under the roots unless several formats share a directory.

    The name is the path relative to ``base``, which is the common path of the roots. A run that is the only
    root has the last part of its path as its name. A run outside the roots, which a link reached, has its
    whole path. The name of a run behind an address is the address without its scheme.
    """
    if isinstance(run.path, Url):
        return "/".join(run.path.parts)
    path, above = str(run.path), f"{base}/".replace("//", "/")
    return run.path.name if run.path == base else path.removeprefix(above)


class _Search:
    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        self.complaints: list[Complaint] = []
        self.missing: list[Place] = []
        self.files: list[_Files] = []  # not searched yet
        self.named: list[Path] = []  # files that are places themselves
        self._visited: set[str] = set()

    def start_all(self, place: Path) -> None:
        found = matches(place)
        if not found:
            self.missing.append(place)
        for path in found:
            self.start(path)

    def start(self, path: Path) -> None:
        real = real_path(path)
        mode = _mode(real)
        if not is_text(real):
            self._complain(Path(repr(os.fsencode(real))), "is not UTF-8 and was skipped; rename it")
        elif S_ISREG(mode):
            self.named.append(Path(real))
        elif S_ISDIR(mode):
            self._walk(real)
        else:
            self.missing.append(path)

    def ask(self, url: Url, copies: Path) -> None:
        self.add(_found(url, lambda: remotes()[url.scheme].search(url, copies)))

    def add(self, found: _Found) -> None:
        runs, complaints = found
        self.complaints += complaints
        for run in runs:
            if run.local is None or can_exist(run.local):
                self.runs[run.id] = run
            else:
                name = repr(run.local.name[:_SHOWN])
                self._complain(run.local.parent, f"no file can be called {name}, so this run was skipped")

    def _walk(self, top: str) -> None:
        pending = [top]
        while pending:
            directory = pending.pop()
            if directory in self._visited:
                continue
            self._visited.add(directory)
            names = []
            entries = self._entries(directory)
            here = {entry.name for entry in entries}
            for entry in entries:
                if entry.is_symlink():
                    if not _leads_below(entry, here):
                        self._follow(entry, pending)
                elif entry.is_dir(follow_symlinks=False):
                    if not _is_internal(entry.path):
                        pending.append(entry.path)
                elif entry.is_file(follow_symlinks=False):  # a pipe would block its reader
                    names.append(entry.name)
            self.files.append((Path(directory), names))

    def _entries(self, directory: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(directory) as entries:
                visible = [entry for entry in entries if not _skipped(entry.name)]
        except OSError as error:
            self._complain(directory, f"cannot be read ({error.strerror})")
            return []
        for entry in visible:
            if not is_text(entry.name):
                self._complain(
                    directory, f"{os.fsencode(entry.name)!r} is not UTF-8 and was skipped; rename it"
                )
        return sorted((e for e in visible if is_text(e.name)), key=lambda e: e.name)

    def _follow(self, link: os.DirEntry[str], pending: list[str]) -> None:
        real = real_path(link.path)
        mode = _mode(real)
        if real.startswith(_KERNELS) or not is_text(real):
            self._complain(link.path, "is a link to a place that sentinel does not read, and was skipped")
        elif S_ISREG(mode):
            directory, name = os.path.split(real)
            if not _is_internal(directory):
                self.files.append((Path(directory), [name]))
        elif S_ISDIR(mode) and not Path(link.path).is_relative_to(real):  # otherwise it leads up the tree
            pending.append(real)

    def _complain(self, path: str | Path, problem: str) -> None:
        self.complaints.append(Complaint(Path(path), "", problem))


def _named(finds: Iterable[Find], path: Path) -> _Found:
    """The runs in a file that a person named. If its name is no log's name, its content decides."""
    runs, complaints = _scan(finds, path.parent, [path.name])
    if runs or complaints:
        return runs, complaints
    readers = [each.run_in for each in formats().values()]
    runs, complaints = _found(path, lambda: filter(None, (run_in(path) for run_in in readers)))
    if not runs and not complaints:
        complaints = [Complaint(path, "", why_no_log(path))]
    return runs[:1], complaints


def _scan(finds: Iterable[Find], directory: Path, names: Sequence[str]) -> _Found:
    """The runs of all formats among some files of one directory."""
    found = [each for find in finds for each in _found_by(find, directory, names)]
    return [run for runs, _ in found for run in runs], [one for _, complaints in found for one in complaints]


def _found_by(find: Find, directory: Path, names: Sequence[str]) -> list[_Found]:
    """The runs of one format. A file that makes the search fail costs no other file its run."""
    runs, complaints = _found(directory, partial(find, directory, names))
    if complaints and len(names) > 1:
        return [_found(directory / name, partial(find, directory, [name])) for name in names]
    return [(runs, complaints)]


def _found(place: Place, runs: Callable[[], Iterable[Run]]) -> _Found:
    try:
        return list(runs()), []
    except OSError as error:
        return [], [Complaint(place, "", f"cannot be read ({error.strerror or error})")]
    except Exception as error:  # noqa: BLE001  our own mistake must not cost other runs
        return [], [Complaint(place, "", f"cannot be searched ({type(error).__name__}); please report it")]


@cache
def _scratch() -> "tempfile.TemporaryDirectory[str]":
    """Gone when the process ends."""
    return tempfile.TemporaryDirectory(prefix="sentinel-")


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0


def _leads_below(link: os.DirEntry[str], here: Collection[str]) -> bool:
    """Whether the link, such as W&B's ``latest-run``, leads to a directory that is searched anyway."""
    try:
        parts = os.readlink(link.path).split("/")  # noqa: PTH115  W&B leaves three links a run
    except OSError:
        return False
    return parts[0] in here and parts[0] != link.name and not any(map(_skipped, parts[1:]))


def _is_internal(directory: str) -> bool:
    return any(each.is_internal(directory) for each in formats().values())


def _skipped(name: str) -> bool:
    return name in _SKIPPED or (name.startswith(".") and name not in hidden_logs())
