"""Arguments that several commands share: the same option has the same name everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentinel import CONFIG_FILE
from sentinel.errors import SentinelError

if TYPE_CHECKING:
    from sentinel.config import Config
    from sentinel.sources.places import Place

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Configuration; by default sentinel.toml in the current directory, if there is one.",
    ),
]
Paths = Annotated[
    list[str], typer.Argument(metavar="PATH...", help="Logs, run directories, trees or addresses.")
]


class Format(StrEnum):
    """Who reads the report."""

    TERMINAL = "terminal"
    JSON = "json"


ReportFormat = Annotated[Format, typer.Option("--format", help="A report to read, or one JSON object.")]
StateDir = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        metavar="DIR",
        help="Where incidents and cursors live; overrides `state_dir` in the configuration.",
    ),
]


def config_file(named: Path | None) -> Path | None:
    """The configuration that counts: the one that was named, else the one in the current directory."""
    here = Path(CONFIG_FILE)
    return named or (here if here.is_file() else None)


def places(texts: Sequence[str]) -> list[Place]:
    """Paths and addresses. Raises SentinelError for an address that cannot be one."""
    from sentinel.sources.discovery import place

    try:
        return [place(text) for text in texts]
    except ValueError as error:
        raise SentinelError(str(error)) from None


def configuration(
    file: Path | None, state_dir: Path | None = None, paths: Sequence[str] = (), polling: bool = False
) -> Config:
    """The configuration of a command, with what the command line says in place of what the file says.

    Raises ConfigError, and SentinelError for an address that cannot be one.
    """
    from sentinel.config import Config, load

    said = {"state_dir": state_dir, "paths": places(paths), "polling": polling}
    found = config_file(file)
    config = load(found) if found else Config()
    return config.model_copy(update={name: value for name, value in said.items() if value})
