"""Arguments that several commands share: the same option has the same name everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sentinel.config import Config

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Configuration; by default sentinel.toml in the current directory, if there is one.",
    ),
]
StateDir = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        metavar="DIR",
        help="Where incidents and cursors live; goes before the configuration.",
    ),
]


def configuration(
    file: Path | None, state_dir: Path | None = None, paths: Sequence[Path] = (), polling: bool = False
) -> Config:
    """The configuration of a command, with what the command line says in place of what the file says.

    Raises ConfigError.
    """
    from sentinel.config import FILE_NAME, Config, load

    here = Path(FILE_NAME)
    config = load(file or here) if file or here.is_file() else Config()
    said = {"state_dir": state_dir, "paths": list(paths), "polling": polling}
    return config.model_copy(update={name: value for name, value in said.items() if value})
