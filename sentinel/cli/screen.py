"""`sentinel PATH`: one screen about many logs."""

import typer

from sentinel.cli.options import ConfigFile, Paths, ReportFormat, TextOrJson, judging
from sentinel.cli.progress import progress_bar
from sentinel.common.clock import SystemClock
from sentinel.common.errors import SentinelError

screen = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@screen.command()
def show(paths: Paths = None, format_: ReportFormat = TextOrJson.TERMINAL, config: ConfigFile = None) -> None:
    """Show on one screen what is wrong with the runs below a path."""
    from sentinel.cli.logs import log_to_stderr
    from sentinel.replays.replaying import replay_in_parts
    from sentinel.report.lines import print_lines, terminal_width
    from sentinel.report.overview import lines, overview, overview_body
    from sentinel.sources.discovery import locations_of

    log_to_stderr()
    clock = SystemClock()
    started_at = clock.monotonic()
    named_paths, judging_config = judging(config, paths or ())
    locations = named_paths or locations_of(["."])
    try:
        with progress_bar() as progress:
            screen = overview(replay_in_parts(locations, judging_config, progress), clock.now())
    except SentinelError as error:
        advice = "; name a directory of runs, or see `sentinel --help`" if not named_paths else ""
        raise SentinelError(f"{error}{advice}") from None
    if format_ is TextOrJson.JSON:
        import orjson

        body = overview_body(screen)
        typer.echo(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode())
        return
    seconds = clock.monotonic() - started_at
    print_lines(lines(screen, seconds, [str(path) for path in locations], terminal_width()))
