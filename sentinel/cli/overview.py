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


def overview(paths: _Paths = None, config: ConfigFile = None) -> None:
    """Show on one screen what is wrong with the runs below a path; `sentinel PATH` does the same."""
    from sentinel.cli.logs import log_to_stderr
    from sentinel.replays.replaying import replay_in_parts
    from sentinel.report.lines import print_lines
    from sentinel.report.overview import lines
    from sentinel.report.overview import overview as of_parts

    log_to_stderr()
    clock = SystemClock()
    begun = clock.monotonic()
    settings = configuration(config, paths=paths or ())
    nowhere = not settings.paths
    if nowhere:
        settings = configuration(config, paths=["."])
    try:
        with progress_bar() as progress:
            whole = of_parts(replay_in_parts(settings.paths, settings, progress), clock.now())
    except SentinelError as error:
        advice = "; name a directory of runs, or see `sentinel --help`" if nowhere else ""
        raise SentinelError(f"{error}{advice}") from None
    print_lines(lines(whole, clock.monotonic() - begun, [str(path) for path in settings.paths]))
