"""Finds what other packages bring: detectors, sources, sinks and pages of the catalogue.

A package names them as entry points in the groups of `Group`. What cannot be used is left out, with the
reason (`broken_plugins`), and stops nothing. Most environments hold no plugin. There, nothing is imported,
because to import `importlib.metadata` takes longer than some commands.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

MAX_ERROR_CHARACTERS = 300
"""Characters of an error; what follows is cut."""

_METADATA = (".dist-info", ".egg-info")
"""Endings of the directories in which installed packages name their entry points."""


class Group(StrEnum):
    """The kinds of plugins, by the groups of their entry points."""

    DETECTORS = "sentinel.detectors"  # a module of detectors and run checks, or one of them
    SOURCES = "sentinel.sources"  # a module with FORMAT and find, or with SCHEMES, check and search
    SINKS = "sentinel.sinks"  # a module with a SinkConfig, or that class
    CATALOGUE = "sentinel.catalogue"  # a package that holds pages


class Plugin(msgspec.Struct, frozen=True):
    """One entry point. ``distribution`` is the package that was installed, such as `sentinel-acme 1.2`."""

    group: Group
    name: str
    distribution: str
    thing: Any  # the module or the object that the entry point names


class BrokenPlugin(msgspec.Struct, frozen=True, order=True):
    """An entry point that cannot be used, and why, in one line."""

    distribution: str
    group: str
    name: str
    error: str

    def __str__(self) -> str:
        return f"{self.distribution} is left out: its entry point {self.name} in {self.group}: {self.error}"


_broken: dict[tuple[str, str, str], BrokenPlugin] = {}


def use_plugins(group: Group, use: Callable[[Plugin], None]) -> None:
    """Load the plugins of a group and give each to ``use``, in the order of their packages and names.

    A plugin that raises when it is imported or used is left out; see `broken_plugins`. ``use`` must not
    leave half a plugin behind.
    """
    for distribution, entry_point in _entry_points(group):
        key = (distribution, group.value, entry_point.name)
        try:
            use(Plugin(group, entry_point.name, distribution, entry_point.load()))
            _broken.pop(key, None)
        except (Exception, SystemExit) as error:  # noqa: BLE001  a plugin of others must stop nothing
            text = "".join(each if each.isprintable() else " " for each in str(error))
            message = f"{type(error).__name__}: {' '.join(text.split())}"
            _broken[key] = BrokenPlugin(*key, message[:MAX_ERROR_CHARACTERS])


def has_plugins(group: Group) -> bool:
    """Return whether any package names an entry point in the group."""
    return bool(_entry_points(group))


def packages_with_plugins() -> Sequence[str]:
    """Return the packages that bring something, with their versions: results depend on them."""
    return sorted({distribution for group in Group for distribution, _ in _entry_points(group)})


def broken_plugins() -> Sequence[BrokenPlugin]:
    """Return what was left out of the groups that were loaded so far."""
    return sorted(_broken.values())


@cache
def _entry_points(group: Group) -> Sequence[tuple[str, "EntryPoint"]]:
    """Return the entry points of a group, each with the package that names it."""
    if not _is_named_anywhere(b"[sentinel."):
        return ()
    from importlib.metadata import entry_points

    pairs = []
    for entry_point in entry_points(group=group.value):
        package = entry_point.dist
        pairs.append((f"{package.name} {package.version}" if package else "a package", entry_point))
    return sorted(pairs, key=lambda pair: (pair[0], pair[1].name))


@cache
def _is_named_anywhere(section: bytes) -> bool:
    """Return whether a table of entry points has a section that begins so."""
    return any(section in table for table in _tables())


def _tables() -> Iterator[bytes]:
    """Yield the tables of entry points of all packages in the directories of ``sys.path``."""
    for directory in dict.fromkeys(sys.path):
        with suppress(OSError):
            for name in os.listdir(directory or "."):  # a glob is slow the first time
                if name.endswith(_METADATA):
                    with suppress(OSError):
                        yield Path(directory, name, "entry_points.txt").read_bytes()
