"""`sentinel mcp`: answer agents."""

import io
import logging
import sys
from typing import Annotated

import typer

from sentinel.cli.explain import user_rules
from sentinel.cli.options import ConfigFile, StateDir, beside_a_watch, recorded
from sentinel.common.clock import SystemClock
from sentinel.common.errors import SentinelError

_Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PATH...]", help="Logs that agents may ask about; without any, what a watch has recorded."
    ),
]


def mcp(paths: _Paths = None, config: ConfigFile = None, state_dir: StateDir = None) -> None:
    """Answer agents over the Model Context Protocol, on standard input and output.

    Agents can list runs and incidents, read pages, plot signals, and silence or acknowledge. Text from runs
    is marked as data. Needs the extra `mcp`.
    """
    try:
        from sentinel.mcp_server.known import Answers
        from sentinel.mcp_server.server import server
        from sentinel.mcp_server.standard_input import WholeText
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("mcp", "mcp_types"):
            raise
        from sentinel.common.installation import install  # slow to import

        raise SentinelError(f"agents need a package: {install('mcp')}") from None
    settings = beside_a_watch(config, state_dir, paths) if paths else recorded(config, state_dir)
    runs = Answers(settings, settings.paths if paths else (), SystemClock().now)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(WholeText(sys.stdin.buffer)), encoding="utf-8")
    app = server(runs, lambda: user_rules(config))
    logging.getLogger("sentinel").setLevel(logging.WARNING)  # the server has its own level, of each message
    app.run("stdio")
