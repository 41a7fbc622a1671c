"""Divides an archive into parts that can be judged one without the other.

The same archive gives the same parts on every machine. A part ends where it is large enough and the hash of a
directory says so, so a directory that comes or goes changes the parts around it and no others.

Their names alone decide which directories belong together, because a listing of a million objects is too
long to look into any of them. A directory whose name says that it is a piece of what lies above is judged
with that, and every other directory by itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.shard import stable_hash

_MAX_FOLDERS_OF_PART = 192  # of a part, unless one unit has more
_MAX_FILES_OF_PART = 1536  # the same
_MIN_FOLDERS_OF_PART = 96  # with fewer, a part goes on: judging many runs at once costs less for each of them
_UNITS_PER_END = 32  # from there on, one of so many units ends a part

_INNER_FOLDER = lazy_pattern(
    r"checkpoint-(\d+|best|last|final)|(best|last)-checkpoint"  # of Hugging Face's Trainer
    r"|[Tt]rain(ing)?|[Vv]al(id(ation)?)?|[Ee]val|[Tt]est"  # of one training with TensorBoard
    r"|\d{10}\.\d+"  # what `add_hparams` of torch writes
    r"|vis_data|tensorboard|tb|tb_logs|run_\d+_\d+\.\d+"  # whose settings lie above
    r"|files|media|\.hydra"  # of W&B, SwanLab and Hydra
    r"|scalars|texts|videos|plots"  # of TorchRL and DVCLive
)
_CURVE_FOLDER = lazy_pattern(r"(?P<stem>.*[-_.])([Tt]rain(ing)?|[Vv]al(id(ation)?)?|[Ee]val|[Tt]est)")
"""`loss_train` and `loss_val`, as ``add_scalars`` of torch writes them."""

_WITH_ALL_BELOW = lazy_pattern(r"(?P<above>.*?(/[0-9a-f]{32}|/plots))/(metrics|params|tags|artifacts)(/.*)?")
"""A run of MLflow, and DVCLive's: their metrics may lie in directories of any name."""


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


class Part(msgspec.Struct, frozen=True):
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
        file_names: dict[str, Sequence[str]] = {
            inside.path: inside.names for inside in self.folders if inside.names
        }
        for path in [*file_names]:
            file_names.setdefault(
                unit_of(path).rstrip("/"), ()
            )  # such as a run of MLflow without its meta.yaml
        return file_names

    def halves(self) -> "tuple[Part, Part]":
        """Return the part in two, to find the run that cannot be judged."""
        middle = len(self.only) // 2
        return replace(self, only=self.only[:middle]), replace(self, only=self.only[middle:])


class _JoinedFolders(msgspec.Struct):
    """Directories that belong together, whose paths begin with ``prefix``."""

    prefix: str
    names: dict[str, list[str]] = msgspec.field(default_factory=dict)  # by directory
    stamps: list[str] = msgspec.field(default_factory=list)

    def add(self, file: ListedFile) -> None:
        file_names = self.names.setdefault(file.directory, [])
        if file.name:
            file_names.append(file.name)
        self.stamps.append("\0".join(file))


def unit_of(directory: str) -> str:
    """Return the beginning that the paths of all directories of its unit share, and of those below.

    No directory belongs to two units, and what belongs to one has no other unit's beginning that is longer.
    """
    if match := _WITH_ALL_BELOW.fullmatch(directory):
        directory = match["above"]
    above, _, name = directory.rpartition("/")
    while above and (_INNER_FOLDER.fullmatch(name) or name == above.rpartition("/")[2]):
        directory = above
        above, _, name = directory.rpartition("/")
    curves = _CURVE_FOLDER.fullmatch(name)
    return f"{above}/{curves['stem']}" if curves else f"{directory}/"


def parts(files: Iterable[ListedFile], salt: str) -> Iterator[Part]:
    """Yield the parts of an archive. All that lies below one directory has to come in one piece.

    The key of a part changes with its files and the ``salt``.
    """
    units: list[_JoinedFolders] = []
    for unit in _units(files):
        both = [*units, unit]
        if units and (_folders(both) > _MAX_FOLDERS_OF_PART or _file_count(both) > _MAX_FILES_OF_PART):
            yield _part(units, salt)
            units = []
        units.append(unit)
        if _folders(units) >= _MIN_FOLDERS_OF_PART and stable_hash(unit.prefix) % _UNITS_PER_END == 0:
            yield _part(units, salt)
            units = []
    if units:
        yield _part(units, salt)


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
    digest = blake2b(salt.encode(), digest_size=16)
    for stamp in (stamp for unit in units for stamp in unit.stamps):
        digest.update(f"\0{stamp}".encode("utf-8", "surrogatepass"))
    folders = [Folder(path, tuple(names)) for unit in units for path, names in unit.names.items()]
    return Part(folders, digest.hexdigest(), _file_count(units))


def _folders(units: Iterable[_JoinedFolders]) -> int:
    return sum(len(unit.names) for unit in units)


def _file_count(units: Iterable[_JoinedFolders]) -> int:
    return sum(len(unit.stamps) for unit in units)
