"""`sentinel catalogue`: list the catalogue of training failures, or search it."""

from typing import Annotated

import typer

from sentinel.cli.pages import show

_Search = Annotated[
    str | None,
    typer.Option(metavar="WORDS", help="Only entries whose page holds all these words."),
]


def catalogue(search: _Search = None) -> None:
    """List the catalogue of training failures, or search it."""
    from sentinel.report.pages import found, listed

    show(listed() if search is None else found(search.split()))
