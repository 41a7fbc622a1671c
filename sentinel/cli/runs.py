"""`sentinel runs`: list runs without judging them."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentinel.cli.options import ConfigFile, Paths, ReportFormat, TextOrJson, config_file, configuration, here
from sentinel.cli.plugins import complain_of_plugins
from sentinel.common.clock import SystemClock

if TYPE_CHECKING:
    from sentinel.detectors.api import Declaration
    from sentinel.sources.console.line_forms import LineForm
    from sentinel.sources.location import Location


_Details = Annotated[
    bool,
    typer.Option(
        "--details",
        help="Also the evidence for the state, the signals, the outcome and what cannot be judged.",
    ),
]

_Siblings = Annotated[
    bool,
    typer.Option(
        "--siblings",
        help="Show which runs are of one training program: equal tags, framework and settings, "
        "but for seeds, names, places and at most two values.",
    ),
]

_Unread = Annotated[
    bool,
    typer.Option(
        "--unread", help="Only the files that look like logs and are not read, and what was missing."
    ),
]


def runs(
    paths: Paths = None,
    format_: ReportFormat = TextOrJson.TERMINAL,
    details: _Details = False,
    siblings: _Siblings = False,
    unread: _Unread = False,
    config: ConfigFile = None,
) -> None:
    """List runs: format, framework, state, points, and how many detectors can judge them.

    If there are many runs, only the beginning of each log is read; `+` after a number means "at least".
    """
    if unread:
        from sentinel.report.lines import print_lines
        from sentinel.report.listing import unread_lines
        from sentinel.sources.discovery import discover

        discovery = discover(_locations(paths, config), are_over=True, forms=_forms(config))
        print_lines(unread_lines(discovery.unread))
        return
    signals, detectors = _settings(config)
    with _no_garbage():
        from sentinel.replays.listing import list_runs
        from sentinel.replays.listing import siblings as groups_of

        now = SystemClock().now()
        locations = _locations(paths, config)
        listing = list_runs(locations, signals, detectors, now, _forms(config))
        groups = groups_of(listing) if siblings else None
    complain_of_plugins()
    if format_ is TextOrJson.JSON:
        import orjson

        from sentinel.report.json import listing_document
        from sentinel.report.siblings import sibling_bodies

        document = listing_document(listing)
        if groups is not None:
            document["siblings"] = sibling_bodies(groups)
        typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
    else:
        from sentinel.report.lines import print_lines, terminal_width
        from sentinel.report.listing import lines
        from sentinel.report.siblings import sibling_lines

        width = terminal_width()
        print_lines(lines(listing, details, width) if groups is None else sibling_lines(groups))


def _locations(paths: Sequence[str] | None, config: Path | None) -> Sequence[Location]:
    from sentinel.sources.discovery import locations_of

    if paths or not config_file(config):
        return locations_of(paths or ["."])
    return here(configuration(config)).paths


def _forms(config: Path | None) -> Sequence[LineForm]:
    """Return the forms of lines that the user named."""
    return configuration(config).forms if config_file(config) else ()


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Disable garbage collection: a listing creates almost no reference cycles."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _settings(config: Path | None) -> tuple[Mapping[str, str], Collection[Declaration]]:
    """Return the meaning of the user's own tags, and the enabled detectors."""
    from sentinel.detectors.discovery import all_detectors
    from sentinel.detectors.signals import tag_pattern

    signals: Mapping[str, str] = {}
    detectors: Iterable[Declaration] = (detector for detector in all_detectors().values() if detector.enabled)
    if config_file(config):
        configured = configuration(config)
        signals = configured.signals
        detectors = configured.enabled_detectors
    # A listing does not know which tags a rule of one's own asks for.
    return signals, [detector for detector in detectors if not any(map(tag_pattern, detector.demand.judges))]
