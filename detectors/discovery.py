"""Finds every detector in the folders of this package; a new file needs no registration."""

import importlib
import pkgutil
from functools import cache

from sentinel import detectors
from sentinel.detectors.api import Declaration


@cache
def all_detectors() -> dict[str, Declaration]:
    """Return every detector and run check by name, in alphabetical order.

    Raises ValueError if two of them share a name.
    """
    declared: dict[str, Declaration] = {}
    for module in pkgutil.walk_packages(detectors.__path__, f"{detectors.__name__}."):
        for thing in vars(importlib.import_module(module.name)).values():
            if not isinstance(thing, Declaration):
                continue
            if declared.setdefault(thing.name, thing) is not thing:
                raise ValueError(f"two detectors are called {thing.name}")
    return dict(sorted(declared.items()))
