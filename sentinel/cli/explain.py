"""`sentinel explain`: show the page of a detector or a catalogue entry, or the list of all."""

from typing import Annotated

import typer

from sentinel.cli.pages import show

_Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]",
        help="Name of a detector (kl-blowup) or id of a catalogue entry (R2). Without it, all are listed.",
    ),
]


def explain(name: _Name = None) -> None:
    """Show the page of a detector or a catalogue entry, or list all of them."""
    from sentinel.report.pages import index, page

    show(index() if name is None else page(name))
