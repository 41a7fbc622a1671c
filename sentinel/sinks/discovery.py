"""Finds every type of sink in this package, so a new file needs no registration."""

import importlib
import pkgutil
import re
from collections.abc import Sequence
from functools import cache
from typing import Literal, get_args, get_origin

from sentinel import sinks
from sentinel.sinks.base import SinkConfig

_KIND = re.compile(rb"^    type: Literal\[", re.MULTILINE)


@cache
def sink_types() -> dict[str, type[SinkConfig]]:
    """Return every sink's configuration by its ``type``, in alphabetical order.

    Only modules that define one are imported: a replay reads their configuration and delivers nothing.
    """
    kinds: dict[str, type[SinkConfig]] = {}
    for module in pkgutil.iter_modules(sinks.__path__):
        if not _KIND.search(pkgutil.get_data(sinks.__name__, f"{module.name}.py") or b""):
            continue
        for thing in vars(importlib.import_module(f"{sinks.__name__}.{module.name}")).values():
            if isinstance(thing, type) and issubclass(thing, SinkConfig):
                kind = thing.model_fields["type"].annotation
                if get_origin(kind) is Literal:
                    kinds[get_args(kind)[0]] = thing
    return dict(sorted(kinds.items()))


def named(configs: Sequence[SinkConfig]) -> list[SinkConfig]:
    """Return the same sinks, each with a name. A sink without one gets its type, then type-2, type-3.

    Raises ValueError if two sinks have the same name.
    """
    taken = [config.name for config in configs if config.name]
    if twice := sorted({name for name in taken if taken.count(name) > 1}):
        raise ValueError(f"two sinks are called {twice[0]}; give each a name of its own")
    done = []
    for config in configs:
        name = config.name or config.type
        number = 1
        while not config.name and name in taken:
            number += 1
            name = f"{config.type}-{number}"
        taken.append(name)
        done.append(config.model_copy(update={"name": name}))
    return done
