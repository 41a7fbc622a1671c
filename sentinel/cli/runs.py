"""`sentinel runs`: what is there, and what can be judged."""

import gc
from collections.abc import Mapping

import typer

from sentinel.cli.options import ConfigFile, Format, Paths, ReportFormat, config_file, configuration, places
from sentinel.clock import SystemClock


def runs(paths: Paths, format_: ReportFormat = Format.TERMINAL, config: ConfigFile = None) -> None:
    """List the runs under some paths: format, framework, state, and which detectors can judge them.

    Of many runs only the beginnings are read; a number with a plus is the least that there is.
    """
    from detectors.discovery import all_detectors
    from sentinel.listing import list_runs

    signals: Mapping[str, str] = {}
    detectors = list(all_detectors().values())
    if config_file(config):  # what reads one is slow to import
        settings = configuration(config)
        signals, detectors = settings.signals, settings.enabled_detectors
    gc.disable()  # next to nothing of what a listing makes is garbage before it is done
    try:
        listing = list_runs(places(paths), signals, detectors, SystemClock().now())
    finally:
        gc.enable()
    if format_ is Format.JSON:
        import orjson

        from sentinel.report.json import listing_document

        typer.echo(orjson.dumps(listing_document(listing), option=orjson.OPT_INDENT_2).decode())
    else:
        from sentinel.report.listing import lines

        typer.echo("\n".join(lines(listing)))
