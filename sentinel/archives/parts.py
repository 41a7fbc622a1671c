"""Divides the runs of an archive into parts that can be judged one without the other.

The same archive gives the same parts on every machine. A part ends where the hash of a directory says so, so
a directory that comes or goes changes the parts around it and no others.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from sentinel.ground.errors import SentinelError
from sentinel.sources.base import Run

_MOST_RUNS = 64
_ENDS_AT = 8  # of so many directories one ends a part


class NamedRun(NamedTuple):
    """A run and its name in the whole archive."""

    run: Run
    name: str


@dataclass(frozen=True, eq=False)
class Part:
    """Runs that are judged together. Its result is called by its ``key``."""

    runs: Sequence[NamedRun]
    key: str

    def halves(self) -> "tuple[Part, Part]":
        """The part in two, to find the run that cannot be judged. They have no result of their own."""
        middle = len(self.runs) // 2
        return Part(self.runs[:middle], ""), Part(self.runs[middle:], "")


@dataclass(frozen=True)
class Shard:
    """One of ``count`` shares of an archive; ``index`` counts from 0."""

    index: int = 0
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """The shard in a text such as 3/64, which counts from 0. Raises SentinelError for another text."""
        index, _, count = text.partition("/")
        if not (index.isdecimal() and count.isdecimal() and int(index) < int(count)):
            raise SentinelError(f"--shard {text}: write I/N with I from 0 to N - 1, such as 3/64")
        return cls(int(index), int(count))

    def holds(self, part: Part) -> bool:
        """Whether the part is of this shard: its first directory decides, which few changes move."""
        return _hash(_directory(part.runs[0].run)) % self.count == self.index


def parts(runs: Iterable[NamedRun], salt: str) -> Iterator[Part]:
    """The parts of an archive whose runs are sorted by path. The runs of one directory stay together.

    The key of a part changes with its files, the names of its runs and the ``salt``.
    """
    return (Part(group, _key(group, salt)) for group in _groups(runs))


def _groups(runs: Iterable[NamedRun]) -> Iterator[list[NamedRun]]:
    held: list[NamedRun] = []
    for directory, here in groupby(runs, key=lambda named: _directory(named.run)):
        beside = [*here]
        if held and len(held) + len(beside) > _MOST_RUNS:
            yield held
            held = []
        held = [*held, *beside]
        if _hash(directory) % _ENDS_AT == 0:
            yield held
            held = []
    if held:
        yield held


def _key(runs: Sequence[NamedRun], salt: str) -> str:
    seen = blake2b(salt.encode(), digest_size=16)
    for run, name in runs:
        seen.update(f"\0{run.id}\0{name}".encode("utf-8", "surrogatepass"))
    for file in _files(run for run, _ in runs):
        seen.update(file.encode("utf-8", "surrogatepass"))
    return seen.hexdigest()


def _directory(run: Run) -> str:
    """The directory that holds the run. Logs beside each other may be of one training."""
    return str(run.path).rpartition("/")[0]


def _hash(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def _files(runs: Iterable[Run]) -> Iterator[str]:
    """Each file that the runs may be read from, with its size and the time of its last change.

    A run that is a file may be explained by those beside it.
    """
    places = [place for run in runs for place in (run.local, *run.also) if place is not None]
    for top in dict.fromkeys(place if place.is_dir() else place.parent for place in places):
        deep = top in places
        for directory, below, names in os.walk(top):
            if not deep:
                below.clear()
            below.sort()
            for name in sorted(names):
                yield _stamp(Path(directory, name))


def _stamp(file: Path) -> str:
    try:
        found = file.stat()
    except OSError as error:
        return f"\0{file}\0{error.errno}"
    return f"\0{file}\0{found.st_size}\0{found.st_mtime_ns}"
