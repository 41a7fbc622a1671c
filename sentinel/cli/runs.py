"""`sentinel runs`: what is there, and what can be judged."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from sentinel.cli.options import ConfigFile, Format, Paths, ReportFormat, config_file, configuration, places
from sentinel.clock import SystemClock

if TYPE_CHECKING:
    from detectors.api import Detector


def runs(paths: Paths, format_: ReportFormat = Format.TERMINAL, config: ConfigFile = None) -> None:
    """List the runs under some paths: format, framework, state, and which detectors can judge them.

    Of many runs only the beginnings are read; a number with a plus is the least that there is.
    """
    from sentinel.listing import list_runs

    signals: Mapping[str, str] = {}
    detectors: Callable[[], Iterable[Detector]] = _all_detectors
    if config_file(config):  # what reads one is slow to import
        settings = configuration(config)
        signals, detectors = settings.signals, lambda: settings.enabled_detectors
    with _no_garbage():
        listing = list_runs(places(paths), signals, detectors, SystemClock().now())
    if format_ is Format.JSON:
        import orjson

        from sentinel.report.json import listing_document

        typer.echo(orjson.dumps(listing_document(listing), option=orjson.OPT_INDENT_2).decode())
    else:
        from sentinel.report.listing import lines

        typer.echo("\n".join(lines(listing)))


@contextmanager
def _no_garbage() -> Iterator[None]:
    """For what makes next to none: nobody looks for it, nor among what was made when the process ends."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _all_detectors() -> Iterable[Detector]:
    from detectors.discovery import all_detectors

    return all_detectors().values()
