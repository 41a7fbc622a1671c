"""`sentinel explain`: show the page of a detector, a rule of one's own or a catalogue entry, or list them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentinel.cli.options import ConfigFile, config_file
from sentinel.cli.pages import show

if TYPE_CHECKING:
    from sentinel.config.rules import WrittenRule

_Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]",
        help="Name of a detector (kl-blowup) or of a rule of your own, or id of a catalogue entry (R2). "
        "Without it, all are listed.",
    ),
]


def explain(name: _Name = None, config: ConfigFile = None) -> None:
    """Show the page of a detector, a rule of your own or a catalogue entry, or list all of them."""
    from sentinel.report.pages import index, page

    show(index(own_rules(config)) if name is None else page(name, lambda: own_rules(config)))


def own_rules(config: Path | None) -> "Sequence[WrittenRule]":
    """Return the rules of the configuration; none if there is no configuration."""
    from sentinel.config.file import written_rules

    file = config_file(config)
    return written_rules(file) if file else ()
