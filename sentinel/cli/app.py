"""The `sentinel` command: its subcommands, and the exit status of an error."""

import ctypes
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from typer.main import get_command

from sentinel.cli.ack import ack, feedback
from sentinel.cli.archive import reduce
from sentinel.cli.backtest import backtest
from sentinel.cli.calibrate import calibrate
from sentinel.cli.catalogue import catalogue
from sentinel.cli.check_config import check_config
from sentinel.cli.explain import explain
from sentinel.cli.mcp import mcp
from sentinel.cli.overview import overview
from sentinel.cli.probes import probes
from sentinel.cli.replay import replay
from sentinel.cli.runs import runs
from sentinel.cli.serve import serve
from sentinel.cli.show import show
from sentinel.cli.silence import silences
from sentinel.cli.status import status
from sentinel.cli.test_alert import send_test
from sentinel.cli.watch import watch
from sentinel.common.collection import collect_seldom
from sentinel.common.errors import SentinelError

UNUSABLE = 2
"""Exit status for arguments or a configuration that cannot be used."""

_WAITED_FOR = ("overview", "replay", "backtest", "calibrate")
"""Commands that judge whole logs while somebody waits. They use a second core."""

_M_ARENA_MAX = -8
_ARENAS = 2
"""See mallopt(3). By default glibc keeps an arena for each thread, and what they held piles up in all."""

app = typer.Typer(
    name="sentinel",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
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


app.command()(overview)
app.command()(watch)
app.command()(replay)
app.command()(reduce)
app.command()(backtest)
app.command()(calibrate)
app.command()(runs)
app.command()(explain)
app.command()(catalogue)
app.command()(status)
app.command()(show)
app.command()(serve)
app.command()(ack)
app.add_typer(silences, name="silence")
app.command()(feedback)
app.command()(mcp)
app.command()(probes)
app.command()(check_config)
app.command("test-alert")(send_test)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0, 1 for findings, 2 if arguments or configuration cannot be used.

    The frames of a watch are small, so more threads than one would only take time from the trainings.
    """
    given = with_command(sys.argv[1:] if arguments is None else arguments)
    os.environ.setdefault("POLARS_MAX_THREADS", "2" if given[0] in _WAITED_FOR else "1")
    getattr(ctypes.CDLL(None), "mallopt", lambda *_: None)(_M_ARENA_MAX, _ARENAS)  # other libcs have none
    collect_seldom()
    try:
        sys.exit(app(args=given, prog_name="sentinel", standalone_mode=False))
    except typer.Abort:
        sys.exit(UNUSABLE)
    except typer.TyperException as error:
        _complain(error.format_message())
    except SentinelError as error:
        _complain(str(error))
    sys.exit(UNUSABLE)


def with_command(given: Sequence[str]) -> Sequence[str]:
    """Return the arguments, with the command that they leave out: none at all, or a path first."""
    names = get_command(app).commands  # type: ignore[attr-defined]
    is_place = bool(given) and given[0] not in names and (Path(given[0]).exists() or "://" in given[0])
    return ["overview", *given] if is_place or not given else given


def _complain(message: str) -> None:
    for line in message.splitlines():
        typer.echo(f"sentinel: {line}", err=True)
