"""`sentinel probes`: list the sets of probes, or show the page of one."""

from typing import Annotated

import typer

from sentinel.cli.pages import show

_TABLE_WIDTH = 200
_Name = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="Name of a set; without it, all are listed.")
]


def probes(name: _Name = None) -> None:
    """List the numbers that `sentinel.probe` logs from a training, or show the page of one set."""
    from sentinel.report.probes import index, page

    if name is None:
        show(index(), _TABLE_WIDTH)
    else:
        show(page(name))
