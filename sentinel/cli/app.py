"""The `sentinel` command: its subcommands, and the exit status of an error."""

import ctypes
import errno
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from typer.main import get_command_name

from sentinel.cli.ack import ack, feedback
from sentinel.cli.archive import archives
from sentinel.cli.backtest import backtest
from sentinel.cli.calibrate import calibrate
from sentinel.cli.check_config import check_config
from sentinel.cli.compare import compare
from sentinel.cli.explain import explain
from sentinel.cli.mcp import mcp
from sentinel.cli.replay import replay
from sentinel.cli.runs import runs
from sentinel.cli.screen import screen
from sentinel.cli.sections import Section, SectionedGroup
from sentinel.cli.serve import serve
from sentinel.cli.show import show
from sentinel.cli.silence import silences
from sentinel.cli.skill import skill
from sentinel.cli.status import status
from sentinel.cli.test_alert import send_test
from sentinel.cli.wait import wait
from sentinel.cli.watch import watch
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

app = typer.Typer(
    cls=SectionedGroup,
    name="sentinel",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        from importlib.metadata import version  # slow to import

        typer.echo(f"sentinel {version('training-sentinel')}")
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Watch training runs and report failures while they can still be corrected."""


app.command(rich_help_panel=Section.LOOK)(runs)
app.command(rich_help_panel=Section.LOOK)(replay)
app.command(rich_help_panel=Section.LOOK)(compare)
app.command(rich_help_panel=Section.LOOK)(explain)
app.command(rich_help_panel=Section.WATCH)(watch)
app.command(rich_help_panel=Section.WATCH)(wait)
app.command(rich_help_panel=Section.WATCH)(status)
app.command(rich_help_panel=Section.WATCH)(show)
app.command(rich_help_panel=Section.WATCH)(serve)
app.command(rich_help_panel=Section.WATCH)(check_config)
app.command("test-alert", rich_help_panel=Section.WATCH)(send_test)
app.command(rich_help_panel=Section.ANSWER)(ack)
app.command(rich_help_panel=Section.ANSWER)(feedback)
app.add_typer(silences, name="silence", rich_help_panel=Section.ANSWER)
app.add_typer(archives, name="archive", rich_help_panel=Section.ARCHIVE)
app.command(rich_help_panel=Section.ARCHIVE)(calibrate)
app.command(rich_help_panel=Section.ARCHIVE)(backtest)
app.command(rich_help_panel=Section.PROGRAMS)(mcp)
app.command(rich_help_panel=Section.PROGRAMS)(skill)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0, 1 for findings, 2 if arguments or configuration cannot be used.

    The frames of a watch are small, so more threads than one would only take time from the trainings.
    """
    words = sys.argv[1:] if arguments is None else arguments
    program = app if "_SENTINEL_COMPLETE" in os.environ else program_for(words)
    judges = program is screen or " ".join(words).startswith(_JUDGING)
    set_default("POLARS_MAX_THREADS", "2" if judges else "1")
    set_default("PYDANTIC_DISABLE_PLUGINS", "__all__")  # it would look for them in each package
    getattr(ctypes.CDLL(None), "mallopt", lambda *_: None)(_M_ARENA_MAX, _MAX_ARENAS)  # other libcs have none
    try:
        _check_form(words)
        status = program(args=words, prog_name="sentinel", standalone_mode=False)
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
    """Return what runs these words: the screen for paths and for no words at all, else the commands."""
    if not words:
        return screen
    if words[0] in {*command_names(), *_NEW_FORMS}:
        return app
    has_form_of_path = "/" in words[0] and not words[0].startswith("-")
    is_path = has_form_of_path or exists(Path(words[0]))
    return screen if is_path else app


def command_names() -> Iterator[str]:
    """Yield the names of the commands. To build the commands for their names would take longer."""
    for command in app.registered_commands:
        function_name = command.callback.__name__ if command.callback else ""
        yield command.name or get_command_name(function_name)
    yield from (group.name for group in app.registered_groups if group.name)


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
