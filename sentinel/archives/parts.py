"""Divides an archive into parts that can be judged one without the other.

The same archive gives the same parts on every machine. A part ends where it is large enough and the hash of a
directory says so, so a directory that comes or goes changes the parts around it and no others.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import NamedTuple

from sentinel.archives.units import unit_of
from sentinel.common.shard import stable_hash

_MAX_FOLDERS = 192
_MAX_FILES = 1536  # unless one unit has more
_FEW_FOLDERS = 96  # with fewer, a part goes on: judging many runs at once costs less for each of them
_ENDS_AT = 32  # from there on, one of so many units ends a part


class ListedFile(NamedTuple):
    """A file of an archive. ``stamp`` is another one after every change."""

    directory: str
    name: str
    stamp: str


class Folder(NamedTuple):
    """A directory and the names of files there. Without names, ``path`` is a file that a person named."""

    path: str
    names: tuple[str, ...]


class RunName(NamedTuple):
    """The id of a run and its name in the whole archive."""

    id: str
    name: str


@dataclass(frozen=True)
class Part:
    """What is judged together. Its result is called by its ``key``; ``files`` is how many it has.

    Of a part that could not be judged as a whole, ``only`` some runs are left to try.
    """

    folders: Sequence[Folder]
    key: str
    files: int
    only: Sequence[RunName] = ()

    @property
    def directories(self) -> dict[str, Sequence[str]]:
        """The directories with the names of their files, and those above that may hold only directories."""
        names: dict[str, Sequence[str]] = {
            inside.path: inside.names for inside in self.folders if inside.names
        }
        for path in [*names]:
            names.setdefault(unit_of(path).rstrip("/"), ())  # such as a run of MLflow without its meta.yaml
        return names

    def halves(self) -> "tuple[Part, Part]":
        """Return the part in two, to find the run that cannot be judged."""
        middle = len(self.only) // 2
        return replace(self, only=self.only[:middle]), replace(self, only=self.only[middle:])


@dataclass
class _JoinedFolders:
    """Directories that belong together, whose paths begin with ``prefix``."""

    prefix: str
    names: dict[str, list[str]] = field(default_factory=dict)  # by directory
    stamps: list[str] = field(default_factory=list)

    def add(self, file: ListedFile) -> None:
        names = self.names.setdefault(file.directory, [])
        if file.name:
            names.append(file.name)
        self.stamps.append("\0".join(file))


def parts(files: Iterable[ListedFile], salt: str) -> Iterator[Part]:
    """Yield the parts of an archive. All that lies below one directory has to come in one piece.

    The key of a part changes with its files and the ``salt``.
    """
    held: list[_JoinedFolders] = []
    for unit in _units(files):
        both = [*held, unit]
        if held and (_folders(both) > _MAX_FOLDERS or _files(both) > _MAX_FILES):
            yield _part(held, salt)
            held = []
        held.append(unit)
        if _folders(held) >= _FEW_FOLDERS and stable_hash(unit.prefix) % _ENDS_AT == 0:
            yield _part(held, salt)
            held = []
    if held:
        yield _part(held, salt)


def _units(files: Iterable[ListedFile]) -> Iterator[_JoinedFolders]:
    """Yield the units, each when the listing has left all that lies below it."""
    open_: list[_JoinedFolders] = []
    for file in files:
        while open_ and not f"{file.directory}/".startswith(open_[-1].prefix):
            yield open_.pop()
        prefix = unit_of(file.directory) if file.name else f"{file.directory}/"
        if not open_ or open_[-1].prefix != prefix:
            open_.append(_JoinedFolders(prefix))
        open_[-1].add(file)
    yield from reversed(open_)


def _part(units: Sequence[_JoinedFolders], salt: str) -> Part:
    seen = blake2b(salt.encode(), digest_size=16)
    for stamp in (stamp for unit in units for stamp in unit.stamps):
        seen.update(f"\0{stamp}".encode("utf-8", "surrogatepass"))
    folders = [Folder(path, tuple(names)) for unit in units for path, names in unit.names.items()]
    return Part(folders, seen.hexdigest(), _files(units))


def _folders(units: Iterable[_JoinedFolders]) -> int:
    return sum(len(unit.names) for unit in units)


def _files(units: Iterable[_JoinedFolders]) -> int:
    return sum(len(unit.stamps) for unit in units)
