"""The `sentinel` command: its subcommands, and the exit status of an error."""

import ctypes
import errno
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from sentinel.cli.screen import screen
from sentinel.cli.sections import Section, SectionedGroup
from sentinel.common.environment import set_default
from sentinel.common.errors import SentinelError
from sentinel.common.paths import exists

UNUSABLE = 2
"""Exit status for arguments or a configuration that cannot be used."""

_NEW_FORMS = {
    "overview": "sentinel PATH",
    "reduce": "sentinel archive report DIR",
    "catalogue": "sentinel explain --list catalogue",
    "probes": "sentinel explain --list probes",
}
"""What a command that is gone is called now."""

_JUDGING = ("replay", "compare", "archive judge", "backtest", "calibrate")
"""Commands that judge whole logs while somebody waits, as the screen does. They use a second core."""

_M_ARENA_MAX = -8
"""A parameter of mallopt(3)."""
_MAX_ARENAS = 2
"""By default glibc keeps an arena for each thread, and what they held piles up in all."""


class Command(NamedTuple):
    """Where a command stands in the help, and what runs it: a function, or a group of commands, of a module
    of this package.
    """

    section: Section
    module: str
    runner: str


COMMANDS: Mapping[str, Command] = {
    "runs": Command(Section.LOOK, "runs", "runs"),
    "replay": Command(Section.LOOK, "replay", "replay"),
    "compare": Command(Section.LOOK, "compare", "compare"),
    "explain": Command(Section.LOOK, "explain", "explain"),
    "watch": Command(Section.WATCH, "watch", "watch"),
    "wait": Command(Section.WATCH, "wait", "wait"),
    "status": Command(Section.WATCH, "status", "status"),
    "show": Command(Section.WATCH, "show", "show"),
    "serve": Command(Section.WATCH, "serve", "serve"),
    "check-config": Command(Section.WATCH, "check_config", "check_config"),
    "test-alert": Command(Section.WATCH, "test_alert", "send_test"),
    "ack": Command(Section.ANSWER, "ack", "ack"),
    "feedback": Command(Section.ANSWER, "ack", "feedback"),
    "silence": Command(Section.ANSWER, "silence", "silences"),
    "archive": Command(Section.ARCHIVE, "archive", "archives"),
    "calibrate": Command(Section.ARCHIVE, "calibrate", "calibrate"),
    "backtest": Command(Section.ARCHIVE, "backtest", "backtest"),
    "mcp": Command(Section.PROGRAMS, "mcp", "mcp"),
    "skill": Command(Section.PROGRAMS, "skill", "skill"),
}
"""The commands by name, in the order of the help. A module is imported when its command is asked for."""


def program(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the program that has the commands of these names; by default all of them."""
    commands = typer.Typer(
        cls=SectionedGroup,
        name="sentinel",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    commands.callback()(options)
    for name in names:
        command = COMMANDS[name]
        runner = getattr(import_module(f"{__package__}.{command.module}"), command.runner)
        if isinstance(runner, typer.Typer):
            commands.add_typer(runner, name=name, rich_help_panel=command.section)
        else:
            commands.command(name, rich_help_panel=command.section)(runner)
    return commands


def _show_version(is_requested: bool) -> None:
    if is_requested:
        from importlib.metadata import version  # slow to import

        typer.echo(f"sentinel {version('training-sentinel')}")
        raise typer.Exit


def options(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Watch training runs and report failures while they can still be corrected."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0, 1 for findings, 2 if arguments or configuration cannot be used.

    The frames of a watch are small, so more threads than one would only take time from the trainings.
    """
    words = sys.argv[1:] if arguments is None else arguments
    chosen = program() if "_SENTINEL_COMPLETE" in os.environ else program_for(words)
    judges = chosen is screen or " ".join(words).startswith(_JUDGING)
    set_default("POLARS_MAX_THREADS", "2" if judges else "1")
    set_default("PYDANTIC_DISABLE_PLUGINS", "__all__")  # it would look for them in each package
    getattr(ctypes.CDLL(None), "mallopt", lambda *_: None)(_M_ARENA_MAX, _MAX_ARENAS)  # other libcs have none
    try:
        _check_form(words)
        status = chosen(args=words, prog_name="sentinel", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(status)
    except typer.Abort:
        sys.exit(UNUSABLE)
    except typer.TyperException as error:
        _complain(error.format_message())
    except SentinelError as error:
        _complain(str(error))
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _complain(f"what this prints cannot be written: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left of it goes nowhere
    sys.exit(UNUSABLE)


def program_for(words: Sequence[str]) -> typer.Typer:
    """Return what runs these words: the screen for paths and for no words at all, else the command that they
    name, or all.
    """
    if not words:
        return screen
    name = words[0]
    if name in COMMANDS:
        return program([name])
    has_form_of_path = "/" in name and not name.startswith("-")
    is_path = name not in _NEW_FORMS and (has_form_of_path or exists(Path(name)))
    return screen if is_path else program()


def _check_form(words: Sequence[str]) -> None:
    """Raise SentinelError for an earlier form of a command, with its form of today."""
    command = words[0] if words else ""
    if command in _NEW_FORMS:
        raise SentinelError(f"`sentinel {command}` is now `{_NEW_FORMS[command]}`")
    if command == "replay" and any(word == "--out" or word.startswith("--out=") for word in words):
        raise SentinelError("`sentinel replay --out` is now `sentinel archive judge PATH... --out DIR`")


def _complain(message: str) -> None:
    for line in message.splitlines():
        typer.echo(f"sentinel: {line}", err=True)
