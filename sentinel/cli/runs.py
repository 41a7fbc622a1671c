"""`sentinel runs`: what is there, and what can be judged."""

import typer

from sentinel.cli.options import ConfigFile, Format, Paths, ReportFormat, configuration
from sentinel.clock import SystemClock


def runs(paths: Paths, format_: ReportFormat = Format.TERMINAL, config: ConfigFile = None) -> None:
    """List the runs under some paths: format, framework, state, and which detectors can judge them.

    Of many runs only the beginnings are read; a number with a plus is the least that there is.
    """
    from sentinel.listing import list_runs

    settings = configuration(config, paths=paths)
    listing = list_runs(settings.paths, settings, SystemClock().now())
    if format_ is Format.JSON:
        import orjson

        from sentinel.report.json import listing_document

        typer.echo(orjson.dumps(listing_document(listing), option=orjson.OPT_INDENT_2).decode())
    else:
        from sentinel.report.listing import lines

        typer.echo("\n".join(lines(listing)))
