"""`sentinel explain`: show the page of a detector or a catalogue entry."""

import sys
from typing import Annotated

import typer

_Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Name of a detector (kl-blowup) or id of a catalogue entry (R2)."),
]


def explain(name: _Name) -> None:
    """Show the page of a detector or a catalogue entry."""
    from sentinel.report.pages import page

    text = page(name)
    if not sys.stdout.isatty():
        typer.echo(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(width=min(Console().width, 100)).print(Markdown(text))
