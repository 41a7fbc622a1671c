"""The formats and the kinds of addresses that there are: those of sentinel, and those of plugins.

A module is imported when its format or its scheme is asked for. A plugin is a module with ``FORMAT`` and
``find``, or with ``SCHEMES``, ``check`` and ``search``, or with all of them (`sentinel.plugins`).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from sentinel.plugins import Group, Plugin, use_plugins
from sentinel.sources.base import Run
from sentinel.sources.location import Url

Find = Callable[[Path, Sequence[str]], Iterable[Run]]

BUILT_IN_FORMATS: Mapping[str, str] = {
    "console": "sentinel.sources.console.log",
    "csv": "sentinel.sources.csv.log",
    "json": "sentinel.sources.json.log",
    "jsonl": "sentinel.sources.json.lines",
    "mlflow": "sentinel.sources.mlflow.stores",
    "neptune": "sentinel.sources.neptune",
    "npz": "sentinel.sources.npz",
    "swanlab": "sentinel.sources.swanlab.log",
    "tensorboard": "sentinel.sources.tensorboard.event_files",
    "trackio": "sentinel.sources.trackio",
    "trainer_state": "sentinel.sources.json.trainer_state",
    "wandb": "sentinel.sources.wandb.offline",
}
"""The module of each format; its ``FORMAT`` is the name here."""

BUILT_IN_SCHEMES: Mapping[str, str] = {
    "gs": "sentinel.sources.remote.directories",
    "hf": "sentinel.sources.remote.directories",
    "s3": "sentinel.sources.remote.directories",
    "ssh": "sentinel.sources.remote.directories",
    "wandb": "sentinel.sources.wandb.online",
}
"""The module that knows the addresses of each scheme; its ``SCHEMES`` name those here."""


class Format(msgspec.Struct, frozen=True):
    """What the module of a format defines, under the same names; only ``find`` is required.

    ``hidden_logs`` are the names of hidden directories that hold logs; a search skips all others.
    ``is_internal`` says whether a directory, given by its real path, holds only what concerns the logger
    itself. ``has_text_of`` says whether a log of this format, which lies elsewhere, holds the text that was
    printed into the files of a directory, so that it tells of errors there. ``run_in`` gives the run in a
    file that a person named, if its content is a log of this format, whatever its name is. ``deleted`` gives
    those of some runs that a person deleted although their files are still there.

    The flags say what other rooms need to know of a format: ``is_console``, that its log is what a process
    printed; ``is_appended_text``, that its log is rows of text, to which a program or a person may append a
    last one; ``written_at_checkpoints``, that its log grows only when a checkpoint is saved.
    """

    find: Find
    hidden_logs: Collection[str] = ()
    is_internal: Callable[[str], bool] = lambda _: False
    has_text_of: Callable[[Path], bool] = lambda _: False
    run_in: Callable[[Path], Run | None] = lambda _: None
    deleted: Callable[[Collection[Path]], Collection[Path]] = lambda _: ()
    is_console: bool = False
    is_appended_text: bool = False
    written_at_checkpoints: bool = False


class Remote(msgspec.Struct, frozen=True):
    """What the module for some schemes of addresses defines.

    ``check`` raises ValueError for an invalid address and says how to correct it. ``search`` returns the runs
    that are there now and may keep copies in a directory. It raises OSError if it cannot find them out.
    """

    check: Callable[[Url], None]
    search: Callable[[Url, Path], Iterable[Run]]


@cache
def formats() -> Mapping[str, Format]:
    """Return the formats by name. Raises ValueError if a module of sentinel has another name than its own."""
    return dict(sorted({**{name: _built_in(name) for name in BUILT_IN_FORMATS}, **_plugins()[0]}.items()))


def format_named(name: str) -> Format:
    """Return the format of that name. One that no source reads any more has nothing that sets it apart."""
    if name in BUILT_IN_FORMATS:
        return _built_in(name)
    return formats().get(name, _UNKNOWN)


@cache
def hidden_logs() -> frozenset[str]:
    """Return the names of hidden directories that hold logs of some format."""
    return frozenset(name for each in formats().values() for name in each.hidden_logs)


@cache
def remotes() -> Mapping[str, Remote]:
    """Return the modules that know addresses, by scheme."""
    built_in = {scheme: _remote(import_module(module)) for scheme, module in BUILT_IN_SCHEMES.items()}
    return {**built_in, **_plugins()[1]}


@cache
def _built_in(name: str) -> Format:
    module = import_module(BUILT_IN_FORMATS[name])
    if name != module.FORMAT:
        raise ValueError(f"{module.__name__} reads the format {module.FORMAT}, and the table says {name}")
    return _format(module)


@cache
def _plugins() -> tuple[Mapping[str, Format], Mapping[str, Remote]]:
    """Return the formats and the schemes of other packages."""
    formats_by_name: dict[str, Format] = {}
    remotes_by_scheme: dict[str, Remote] = {}

    def use(plugin: Plugin) -> None:
        module = plugin.thing
        schemes = {scheme: _remote(module) for scheme in getattr(module, "SCHEMES", ())}
        brought = {module.FORMAT: _format(module)} if hasattr(module, "FORMAT") else {}
        if not schemes and not brought:
            raise ValueError("it has neither FORMAT and find nor SCHEMES, check and search")
        for name in brought.keys() & {*BUILT_IN_FORMATS, *formats_by_name}:
            raise ValueError(f"two sources read the format {name}")
        for scheme in schemes.keys() & {*BUILT_IN_SCHEMES, *remotes_by_scheme}:
            raise ValueError(f"two sources know addresses that begin with {scheme}://")
        formats_by_name.update(brought)
        remotes_by_scheme.update(schemes)

    use_plugins(Group.SOURCES, use)
    return formats_by_name, remotes_by_scheme


def _format(module: Any) -> Format:
    declared = {*Format.__struct_fields__} & vars(module).keys()
    return Format(**{name: getattr(module, name) for name in declared})


def _remote(module: Any) -> Remote:
    return Remote(module.check, module.search)


_UNKNOWN = Format(lambda *_: ())
