"""`sentinel catalogue`: list the catalogue of training failures, or search it."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from sentinel.cli.pages import show
from sentinel.common.clock import SystemClock
from sentinel.common.errors import SentinelError

_Search = Annotated[
    str | None,
    typer.Option(metavar="WORDS", help="Only entries whose page holds all these words."),
]
_Stale = Annotated[
    bool,
    typer.Option("--stale", help="Only entries that were checked against their source over a year ago."),
]


def catalogue(search: _Search = None, stale: _Stale = False) -> None:
    """List the catalogue of training failures, or search it."""
    from sentinel.report import pages

    if stale:
        if search is not None:
            raise SentinelError("--stale lists all such entries; leave out --search")
        show(pages.stale(datetime.fromtimestamp(SystemClock().now(), UTC).date()))
    else:
        show(pages.listed() if search is None else pages.found(search.split()))
