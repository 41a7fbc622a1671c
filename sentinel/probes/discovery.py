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
        for thing in vars(importlib.import_module(f"{sets.__name__}.{module.name}")).values():
            if isinstance(thing, type) and issubclass(thing, ProbeSet) and thing is not ProbeSet:
                kinds[module.name] = thing
    return dict(sorted(kinds.items()))


def chosen(names: str | Iterable[str]) -> dict[str, type[ProbeSet]]:
    """Return the sets of a cost and of those below it, or the named ones. Raises ValueError for an unknown
    name.
    """
    known = probe_sets()
    if names == Cost.CHEAP:
        return known
    if names == Cost.DEFAULT:
        return {name: kind for name, kind in known.items() if kind.cost is Cost.DEFAULT}
    wanted = [names] if isinstance(names, str) else list(names)
    if unknown := sorted({*wanted} - {*known}):
        raise ValueError(f"sets={unknown[0]!r}: give 'default', 'cheap' or names among {', '.join(known)}")
    return {name: known[name] for name in wanted}


def page(name: str) -> str:
    """Return the page of a set: what it shows, what it costs, when it misleads. Raises KeyError for no
    set.
    """
    return (sys.modules[probe_sets()[name].__module__].__doc__ or "").strip()
