"""The place of a run: a path on this machine, or the address of another one."""

import glob
import os
import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Self

import msgspec

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.paths import exists, is_denied, is_directory

_ADDRESS = lazy_pattern(r"(?P<scheme>[a-z][a-z0-9+.-]+)://(?P<rest>.*)", re.DOTALL)


class Url(msgspec.Struct, frozen=True):
    """An address such as ``wandb://team/project``. It has ``parts`` and a ``name``, like a path."""

    scheme: str
    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the address in the text; None if the text is a path."""
        address = _ADDRESS.fullmatch(text)
        return cls(address["scheme"], tuple(filter(None, address["rest"].split("/")))) if address else None

    def __str__(self) -> str:
        return f"{self.scheme}://{'/'.join(self.parts)}"

    def __truediv__(self, below: str) -> "Url":
        return Url(self.scheme, (*self.parts, *below.split("/")))

    @property
    def name(self) -> str:
        """The last part."""
        return self.parts[-1]


Location = Path | Url


def is_pattern(path: Path) -> bool:
    """Return whether a path is a glob such as ``runs/*/logs``, and does not exist by that very name."""
    return glob.has_magic(str(path)) and not exists(path)


def matches(path: Path) -> Sequence[Path]:
    """Return the paths that a glob stands for now, in alphabetical order; another path stands for itself."""
    if not is_pattern(path):
        return [path]
    above = fixed_part(path)
    return sorted(above.glob(str(path.relative_to(above))))


def closed_to_us(path: Path) -> Sequence[Path]:
    """Return the places within a glob that this user may not enter, such as homes of mode 0700, and another
    path itself if one above it is closed.
    """
    if not is_pattern(path):
        return [path] if is_denied(path) else []
    above = fixed_part(path)
    parts = path.relative_to(above).parts
    globs = ("/".join(parts[:number]) for number in range(1, len(parts)) if "**" not in parts[:number])
    directories = sorted(
        {directory for each in globs for directory in above.glob(each) if is_directory(directory)}
    )
    return [directory for directory in directories if not os.access(directory, os.X_OK)]


def fixed_part(path: Path) -> Path:
    """Return the part of a glob before its first wildcard; another path as it is."""
    if not is_pattern(path):
        return path
    return Path(*takewhile(lambda part: not glob.has_magic(part), path.parts))
