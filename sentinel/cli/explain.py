"""`sentinel explain`: show a page about a detector, a rule, a failure or a set of probes, or list them."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentinel.cli.options import ConfigFile, ReportFormat, TextOrJson, config_file
from sentinel.common.clock import SystemClock
from sentinel.common.errors import SentinelError

if TYPE_CHECKING:
    from sentinel.config.rules import WrittenRule

PAGE_COLUMNS = 80
TABLE_COLUMNS = 200


class _Subject(StrEnum):
    CATALOGUE = "catalogue"
    PROBES = "probes"
    DETECTORS = "detectors"


_Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]",
        help="Name of a detector (kl-blowup), of a rule of your own or of a set of probes, or id of a "
        "catalogue entry (R2). Without it, all are listed.",
    ),
]
_List = Annotated[
    _Subject | None,
    typer.Option(
        "--list",
        help="List the catalogue of training failures, the numbers that `sentinel.probe` logs from a "
        "training, or the detectors and your own rules.",
    ),
]
_Search = Annotated[
    str | None,
    typer.Option(
        metavar="WORDS", help="With --list catalogue: only entries whose page holds all these words."
    ),
]
_Stale = Annotated[
    bool,
    typer.Option(
        "--stale",
        help="With --list catalogue: only entries that were checked against their source over a year ago.",
    ),
]


def explain(
    name: _Name = None,
    subject: _List = None,
    search: _Search = None,
    stale: _Stale = False,
    format_: ReportFormat = TextOrJson.TERMINAL,
    config: ConfigFile = None,
) -> None:
    """Show the page of a detector, a rule, a catalogue entry or a set of probes, or list them."""
    from sentinel.report import pages, probes

    if format_ is TextOrJson.JSON:
        if name is None:
            raise SentinelError("--format json is about one NAME")
        _print_json(name, config)
        return
    _require_fitting(name, subject, search, stale)
    match subject:
        case _Subject.CATALOGUE if stale:
            _show(pages.stale(datetime.fromtimestamp(SystemClock().now(), UTC).date()))
        case _Subject.CATALOGUE:
            _show(pages.titles() if search is None else pages.matches(search.split()))
        case _Subject.PROBES:
            _show(probes.index(), TABLE_COLUMNS)
        case _Subject.DETECTORS:
            _show(pages.detectors(user_rules(config)))
        case _ if name is None:
            _show(pages.index(user_rules(config)))
        case _:
            _show(
                probes.page(name) if name in probes.names() else pages.page(name, lambda: user_rules(config))
            )


def _require_fitting(name: str | None, subject: _Subject | None, search: str | None, stale: bool) -> None:
    """Raise SentinelError for options that do not go together."""
    if name is not None and subject is not None:
        raise SentinelError("give either a NAME or --list")
    if subject is not _Subject.CATALOGUE and (search is not None or stale):
        raise SentinelError("--search and --stale need --list catalogue")
    if stale and search is not None:
        raise SentinelError("--stale lists all such entries; leave out --search")


def _print_json(name: str, config: Path | None) -> None:
    """Print a page as one object: Markdown, and of a catalogue entry what to try and how to tell."""
    import orjson

    from sentinel import catalogue
    from sentinel.report import pages, probes

    is_probe = name in probes.names()
    text = probes.page(name) if is_probe else pages.page(name, lambda: user_rules(config))
    body: pages.PageBody = {"schema": 1, "name": name, "markdown": text}
    if entry := catalogue.load().get(name):
        body |= {"title": entry.title, "fix": entry.fix, "check": entry.check}
    typer.echo(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode())


def user_rules(config: Path | None) -> "Sequence[WrittenRule]":
    """Return the rules of the configuration; none if there is no configuration."""
    from sentinel.config.file import written_rules

    file = config_file(config)
    return written_rules(file) if file else ()


def _show(text: str, max_columns: int = PAGE_COLUMNS) -> None:
    """Print Markdown: laid out on a terminal, as it is in a file or a pipe."""
    if not sys.stdout.isatty():
        typer.echo(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(width=min(Console().width, max_columns)).print(Markdown(text))
