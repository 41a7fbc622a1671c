"""Arguments that several commands share: the same option has the same name everywhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from sentinel.common.errors import SentinelError
from sentinel.common.paths import exists, is_directory, is_file
from sentinel.config import CONFIG_FILE

if TYPE_CHECKING:
    from sentinel.common.address import Address
    from sentinel.common.shard import Shard
    from sentinel.config.file import Config
    from sentinel.config.judging import JudgingConfig
    from sentinel.sources.location import Location

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Configuration; default: sentinel.toml in the current directory, if it exists.",
    ),
]
Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PATH...]",
        help="Log files, run directories, directories of runs, or addresses; default: `paths`, else the "
        "current directory.",
    ),
]

RESULTS_OPTION = typer.Option(
    "--out",
    metavar="DIR",
    help="Keep the results as Parquet in DIR, part by part, for `sentinel archive report`. What is there "
    "and did not change is not read again.",
)


class TextOrJson(StrEnum):
    """The form of a report: for a person, or for a program."""

    TERMINAL = "terminal"
    JSON = "json"


ReportFormat = Annotated[
    TextOrJson, typer.Option("--format", help="A report for people, or one JSON object.")
]
StateDir = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        metavar="DIR",
        readable=False,  # the state says whose it is
        help="Directory that keeps incidents and cursors; overrides `state_dir` in the configuration. By "
        "default each thing that is watched has one of its own.",
    ),
]
Notify = Annotated[
    list[str] | None,
    typer.Option(
        "--notify",
        metavar="ADDRESS",
        help="One more receiver: a Slack or other webhook, or an address of Apprise such as mailto://…; "
        "ntfy://TOPIC is public. Other users of this machine can see it; the configuration keeps it from "
        "them.",
    ),
]


def config_file(file: Path | None) -> Path | None:
    """Return the configuration file, by default sentinel.toml in the current directory, if it exists."""
    default = Path(CONFIG_FILE)
    return file or (default if is_file(default) else None)


def address(option: str, text: str) -> Address:
    """Parse the address that an option has. Raises SentinelError for a text that is no address."""
    from sentinel.common.address import Address

    try:
        return Address.parse(text)
    except ValueError as error:
        raise SentinelError(f"{option} {text}: {error}") from None


def shard(text: str) -> Shard | None:
    """Parse the value of ``--shard``; None if it is empty. Raises SentinelError for another text."""
    from sentinel.common.shard import Shard

    try:
        return Shard.parse(text) if text else None
    except ValueError as error:
        raise SentinelError(f"--shard {text}: {error}") from None


def configuration(
    file: Path | None,
    state_dir: Path | None = None,
    paths: Sequence[str] = (),
    poll: bool = False,
    listen: str = "",
    notify: Sequence[str] = (),
    share: str = "",
) -> Config:
    """Return the configuration of a command: the file's, overridden by the command line.

    Raises ConfigError for an invalid file and SentinelError for an invalid address.
    """
    from sentinel.config.file import Config, load
    from sentinel.sources.discovery import locations_of

    overrides: dict[str, object] = {
        "state_dir": state_dir,
        "paths": locations_of(paths),
        "poll": poll,
        "listen": address("--listen", listen) if listen else None,
        "shard": shard(share),
    }
    path = config_file(file)
    config = load(path) if path else Config.model_construct()  # nothing to validate
    if notify:
        from sentinel.sinks.addresses import sink_at
        from sentinel.sinks.discovery import named

        overrides["sinks"] = named([*config.sinks, *map(sink_at, notify)])
    return config.model_copy(update={name: value for name, value in overrides.items() if value})


def here(config: Config) -> Config:
    """Return the configuration of a command that reads the current directory where no path is named."""
    from sentinel.sources.discovery import locations_of

    return config if config.paths else config.model_copy(update={"paths": locations_of(["."])})


def judging(file: Path | None, paths: Sequence[str]) -> tuple[Sequence[Location], JudgingConfig]:
    """Return the locations that a command is to judge, none where none is named, and how it judges them.

    Raises ConfigError for an invalid file.
    """
    if config_file(file):
        config = configuration(file, paths=paths)
        return config.paths, config
    from sentinel.config.judging import Defaults
    from sentinel.sources.discovery import locations_of

    return locations_of(paths), Defaults()


def watching(config: Config, file: Path | None, paths: Sequence[str]) -> Config:
    """Return the configuration of a watch with a state of its own, where none is named."""
    from sentinel.storage.states import state_of_config, state_of_paths

    described = config_file(file)
    if _names_state(config) or not config.paths:
        return config
    share = str(config.shard) if config.shard.count > 1 else ""
    config_state = state_of_config(described) if described and not paths and not share else None
    return config.model_copy(update={"state_dir": config_state or state_of_paths(config.paths, share)})


def recorded(file: Path | None, state_dir: Path | None, incident: str = "") -> Config:
    """Return the configuration of a command about what a watch has recorded, such as an incident.

    Raises SentinelError if several watches may be meant.
    """
    from sentinel.storage.states import one_of

    config = configuration(file, state_dir)
    states = _states(config, file, incident)
    return config.model_copy(update={"state_dir": one_of(states)}) if states else config


def beside_a_watch(file: Path | None, state_dir: Path | None, paths: Sequence[str]) -> Config:
    """Return the configuration of a command that judges some paths itself, with the state of their watch, or
    the likeliest one where nobody watches just these.
    """
    config = configuration(file, state_dir, paths)
    if _names_state(config):
        return config
    config_state = watching(config, file, paths).state_dir
    return config.model_copy(
        update={"state_dir": config_state if is_directory(config_state) else states(config, file)[0]}
    )


def states(config: Config, file: Path | None) -> list[Path]:
    """Return the states of all watches that a command may mean."""
    return _states(config, file) or [config.state_dir]


def _states(config: Config, file: Path | None, incident: str = "") -> list[Path]:
    from sentinel.storage.states import fitting_states, state_of_config

    if _names_state(config):
        return [config.state_dir]
    described = config_file(file)
    config_state = state_of_config(described) if described and config.paths else None
    return fitting_states(config_state, Path.cwd(), incident) or ([config_state] if config_state else [])


def _names_state(config: Config) -> bool:
    return "state_dir" in config.model_fields_set or bool(os.environ.get("STATE_DIRECTORY"))


def answers(config: Config, file: Path | None) -> dict[str, str]:
    """Return what people answered about incidents, by their ids; nothing where nothing was watched."""
    from sentinel.common.errors import StateError
    from sentinel.storage.store import Store

    verdicts: dict[str, str] = {}
    for state in states(config, file):
        try:
            with Store(state, read_only=True) as store:
                verdicts |= store.feedback.verdicts()
        except StateError:
            continue
    return verdicts


@contextmanager
def opened(output: Path | None) -> Iterator[TextIO]:
    """Open the file to write to, standard output by default. An older file stays until the new one is whole.

    Raises SentinelError at once for a file that cannot be written.
    """
    if output is None:
        yield sys.stdout
        return
    is_plain = is_file(output) or not exists(output)  # and no pipe or device
    output_file = output.resolve() if is_plain else output
    unfinished = output_file.with_name(f"{output_file.name}.part") if is_plain else output_file
    try:
        file = unfinished.open("w", encoding="utf-8")
    except OSError as error:
        raise SentinelError(f"{output}: the report cannot be written: {error.strerror}") from None
    with file, ExitStack() as failed:
        if is_plain:
            failed.callback(unfinished.unlink)
        yield file
        file.flush()  # which a full disk refuses
        failed.pop_all()
    if is_plain:
        unfinished.replace(output_file)
