"""`sentinel serve`: a page that shows what watches see, while it changes."""

import os
import secrets
import socket
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentinel.cli.options import ConfigFile, address, configuration, states
from sentinel.common.errors import SentinelError

if TYPE_CHECKING:
    from sentinel.common.address import Address

_TOKEN = "SENTINEL_TOKEN"  # noqa: S105  the name of an environment variable
_MAX_BACKLOG = 64  # connections that are accepted at once, before the first of them can be refused
_NICENESS = 5  # less important than the watch and the trainings on this machine

_Listen = Annotated[
    str,
    typer.Option(
        metavar="[HOST:]PORT", help="Where to serve the page; a port alone means on this machine only."
    ),
]
_TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help=f"File that holds the token; default: ${_TOKEN}, else a new token that is printed.",
    ),
]
_StateDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--state-dir",
        metavar="DIR",
        help="State of a watch, by default `state_dir` in the configuration; again for each further watch.",
    ),
]


def serve(
    listen: _Listen = "8470",
    token_file: _TokenFile = None,
    config: ConfigFile = None,
    state_dir: _StateDirs = None,
) -> None:
    """Show what watches see, in a browser.

    The page shows all runs, and each run as its report, while they grow. It only reads what `sentinel watch`
    records; acknowledging and silencing work as on the command line, in each state that holds the run. Every
    request needs the token.
    """
    import uvicorn

    from sentinel.cli.logs import log_to_stderr
    from sentinel.common.clock import SystemClock
    from sentinel.storage.store import Store
    from sentinel.telemetry.connections import Connections
    from sentinel.web.app import LivePage
    from sentinel.web.client import Client

    log_to_stderr(seldom=True)
    settings = configuration(config)
    listen_address = address("--listen", listen)
    state_dirs = [*dict.fromkeys(state_dir or states(settings, config))]
    chosen_token = _chosen_token(token_file)
    if not chosen_token and listen_address.host not in ("127.0.0.1", "::1", "localhost"):
        raise SentinelError(f"others can reach {listen_address}: set ${_TOKEN} or name a --token-file")
    token = chosen_token or secrets.token_urlsafe(24)
    for directory in state_dirs:
        Store(directory, read_only=True).close()  # raises at once if the state cannot be read
    with _listening(listen_address) as bound:
        port = bound.getsockname()[1]
        page = LivePage(settings, state_dirs, SystemClock()).app(token, port)
        options = uvicorn.Config(
            page,
            http=partial(Client, Connections()),  # type: ignore[arg-type]  # it calls what should be a class
            backlog=_MAX_BACKLOG,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=1,  # open pages would delay the end
        )
        os.nice(_NICENESS)
        entrance = "" if chosen_token else f"?token={token}"
        typer.echo(f"http://{type(listen_address)(listen_address.host, port)}/{entrance}")
        uvicorn.Server(options).run(sockets=[bound])


def _chosen_token(file: Path | None) -> str:
    """Return the token that a person chose; empty if there is none. Raises SentinelError for a poor one."""
    from sentinel.web.auth import MIN_CHARACTERS

    try:
        token = file.read_text("utf-8").strip() if file else os.environ.get(_TOKEN, "")
    except (OSError, UnicodeDecodeError):
        raise SentinelError(f"{file}: cannot be read as a token") from None
    if (file or token) and len(token) < MIN_CHARACTERS:
        raise SentinelError(f"the token needs at least {MIN_CHARACTERS} characters")
    return token


def _listening(where: "Address") -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
        return socket.create_server((where.host, where.port), family=family)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise SentinelError(f"cannot listen on {where}: {why}; name another address with --listen") from None
