"""The formats and the kinds of addresses that there are.

Every module below this package that defines ``FORMAT`` and ``find`` is a format, and every one that defines
``SCHEMES``, ``check`` and ``search`` knows addresses. A new one needs no registration.
"""

import importlib
import pkgutil
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import sentinel.sources
from sentinel.sources.base import Run
from sentinel.sources.location import Url

Find = Callable[[Path, Sequence[str]], Iterable[Run]]


@dataclass(frozen=True)
class Format:
    """What the module of a format defines, under the same names; only ``find`` is required.

    ``hidden_logs`` are the names of hidden directories that hold logs; a search skips all others.
    ``is_internal`` says whether a directory, given by its real path, holds only what concerns the logger
    itself. ``has_text_of`` says whether a log of this format, which lies elsewhere, holds the text that was
    printed into the files of a directory, so that it tells of errors there. ``run_in`` gives the run in a
    file that a person named, if its content is a log of this format, whatever its name is.
    """

    find: Find
    hidden_logs: Collection[str] = ()
    is_internal: Callable[[str], bool] = lambda _: False
    has_text_of: Callable[[Path], bool] = lambda _: False
    run_in: Callable[[Path], Run | None] = lambda _: None


@dataclass(frozen=True)
class Remote:
    """What the module for some schemes of addresses defines.

    ``check`` raises ValueError for an invalid address and says how to correct it. ``search`` returns the runs
    that are there now and may keep copies in a directory. It raises OSError if it cannot find them out.
    """

    check: Callable[[Url], None]
    search: Callable[[Url, Path], Iterable[Run]]


@cache
def formats() -> Mapping[str, Format]:
    """Return the formats by name. Raises ValueError if two modules share a name."""
    known: dict[str, Format] = {}
    for module in _modules("FORMAT"):
        if module.FORMAT in known:
            raise ValueError(f"two sources read the format {module.FORMAT}")
        declared = {field.name for field in fields(Format)} & vars(module).keys()
        known[module.FORMAT] = Format(**{name: getattr(module, name) for name in declared})
    return dict(sorted(known.items()))


@cache
def hidden_logs() -> frozenset[str]:
    """Return the names of hidden directories that hold logs of some format."""
    return frozenset(name for each in formats().values() for name in each.hidden_logs)


@cache
def remotes() -> Mapping[str, Remote]:
    """Return the modules that know addresses, by scheme."""
    return {
        scheme: Remote(module.check, module.search)
        for module in _modules("SCHEMES")
        for scheme in module.SCHEMES
    }


def _modules(constant: str) -> Iterator[Any]:
    """Yield the modules that define the constant. Other modules are not imported, which saves time."""
    for info in pkgutil.walk_packages(sentinel.sources.__path__, "sentinel.sources."):
        package, _, name = info.name.rpartition(".")
        text = b"" if info.ispkg else pkgutil.get_data(package, f"{name}.py") or b""
        if re.search(rb"^%s = " % constant.encode(), text, re.MULTILINE):
            yield importlib.import_module(info.name)
