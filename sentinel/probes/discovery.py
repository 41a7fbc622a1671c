"""Finds every set of probes in the folder `sets`; a new file needs no registration."""

import importlib
import pkgutil
import sys
from collections.abc import Iterable
from functools import cache

from sentinel.probes import sets
from sentinel.probes.base import Cost, ProbeSet


@cache
def probe_sets() -> dict[str, type[ProbeSet]]:
    """Return every set by the name of its file, in alphabetical order."""
    kinds: dict[str, type[ProbeSet]] = {}
    for module in pkgutil.iter_modules(sets.__path__):
        for member in vars(importlib.import_module(f"{sets.__name__}.{module.name}")).values():
            if isinstance(member, type) and issubclass(member, ProbeSet) and member is not ProbeSet:
                kinds[module.name] = member
    return dict(sorted(kinds.items()))


def chosen(names: str | Iterable[str]) -> dict[str, type[ProbeSet]]:
    """Return the sets up to a cost, or the named ones. Raises ValueError for an unknown name."""
    sets = probe_sets()
    if names == Cost.CHEAP:
        return sets
    if names == Cost.DEFAULT:
        return {name: kind for name, kind in sets.items() if kind.cost is Cost.DEFAULT}
    requested = [names] if isinstance(names, str) else list(names)
    if unknown := sorted({*requested} - {*sets}):
        raise ValueError(f"sets={unknown[0]!r}: give 'default', 'cheap' or names among {', '.join(sets)}")
    return {name: sets[name] for name in requested}


def page(name: str) -> str:
    """Return a set's page: what it shows, what it costs, when it misleads. Raises KeyError for no set."""
    return (sys.modules[probe_sets()[name].__module__].__doc__ or "").strip()
