"""Finds every detector: those in the folders of this package, where a new file needs no registration, and
those of plugins.
"""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from sentinel import detectors
from sentinel.detectors.api import Declaration
from sentinel.plugins import Group, Plugin, use_plugins


@cache
def all_detectors() -> dict[str, Declaration]:
    """Return every detector and run check by name, in alphabetical order.

    Raises ValueError if two of sentinel's own share a name. A plugin whose name is not free is left out.
    """
    declared: dict[str, Declaration] = {}
    for module in pkgutil.walk_packages(detectors.__path__, f"{detectors.__name__}."):
        _add(declared, _declarations(importlib.import_module(module.name)))
    built_in = dict(declared)

    def use(plugin: Plugin) -> None:
        brought = [each for each in _declarations(plugin.thing) if built_in.get(each.name) is not each]
        if not brought:
            raise ValueError("it has no detector and no run check")
        _add(declared, brought)

    use_plugins(Group.DETECTORS, use)
    return dict(sorted(declared.items()))


def _declarations(thing: Any) -> Iterator[Declaration]:
    """Yield a detector, or those that a module defines or imports."""
    for each in [thing] if isinstance(thing, Declaration) else vars(thing).values():
        if isinstance(each, Declaration):
            yield each


def _add(declared: dict[str, Declaration], brought: Iterable[Declaration]) -> None:
    """Add all or none. Raises ValueError for a second detector of a name."""
    added: dict[str, Declaration] = {}
    for each in brought:
        first = declared.get(each.name) or added.setdefault(each.name, each)
        if first is not each:
            raise ValueError(f"two detectors are called {each.name}")
    declared.update(added)
