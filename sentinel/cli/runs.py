"""`sentinel runs`: what is there, and what can be judged."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sentinel.cli.options import ConfigFile, Format, Paths, ReportFormat, config_file, configuration, places
from sentinel.clock import SystemClock

if TYPE_CHECKING:
    from detectors.api import Declaration, Demand


def runs(paths: Paths, format_: ReportFormat = Format.TERMINAL, config: ConfigFile = None) -> None:
    """List the runs under some paths: format, framework, state, and which detectors can judge them.

    Of many runs only the beginnings are read; a number with a plus is the least that there is.
    """
    from sentinel.processes import begin

    settings = begin(lambda: _settings(config))  # elsewhere, since what reads them is slow to import
    # Without a configuration no tags are the user's, and reading need not wait for the answer.
    signals = (lambda: settings()[0]) if config_file(config) else dict[str, str]
    with _no_garbage():
        from sentinel.listing import list_runs

        listing = list_runs(places(paths), signals, lambda: settings()[1], SystemClock().now())
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


def _settings(config: Path | None) -> tuple[Mapping[str, str], Mapping[str, Demand]]:
    """What the user's own tags mean, and what the detectors demand, by their names."""
    from detectors.discovery import all_detectors

    signals: Mapping[str, str] = {}
    detectors: Iterable[Declaration] = all_detectors().values()
    if config_file(config):
        configured = configuration(config)
        signals, detectors = configured.signals, configured.enabled_detectors
    return signals, {detector.name: detector.demand for detector in detectors}
