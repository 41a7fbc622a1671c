"""`sentinel PATH`: one screen about many logs."""

from typing import Annotated

import typer

from sentinel.cli.options import ConfigFile, configuration
from sentinel.cli.progress import progress_bar
from sentinel.common.clock import SystemClock
from sentinel.common.errors import SentinelError

_Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PATH...]",
        help="Log files, run directories, directories of runs, or addresses; default: `paths`, else the "
        "current directory.",
    ),
]

screen = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@screen.command()
def show(paths: _Paths = None, config: ConfigFile = None) -> None:
    """Show on one screen what is wrong with the runs below a path."""
    from sentinel.cli.logs import log_to_stderr
    from sentinel.replays.replaying import replay_in_parts
    from sentinel.report.lines import print_lines
    from sentinel.report.overview import lines, overview

    log_to_stderr()
    clock = SystemClock()
    started_at = clock.monotonic()
    settings = configuration(config, paths=paths or ())
    is_default = not settings.paths
    if is_default:
        settings = configuration(config, paths=["."])
    try:
        with progress_bar() as progress:
            whole = overview(replay_in_parts(settings.paths, settings, progress), clock.now())
    except SentinelError as error:
        advice = "; name a directory of runs, or see `sentinel --help`" if is_default else ""
        raise SentinelError(f"{error}{advice}") from None
    print_lines(lines(whole, clock.monotonic() - started_at, [str(path) for path in settings.paths]))
