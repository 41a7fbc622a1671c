"""`sentinel wait`: block until a run needs somebody, or all runs are over."""

import logging
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from sentinel.cli.options import ConfigFile, Paths, ReportFormat, TextOrJson, configuration, here, states
from sentinel.cli.silence import seconds
from sentinel.common.clock import SystemClock
from sentinel.common.text import clean_text
from sentinel.waiting.until import Until

_Until = Annotated[
    Until,
    typer.Option(
        help="An open incident at least this severe ends the wait; with `end` only the end of all runs does."
    ),
]
_Timeout = Annotated[
    float,
    typer.Option(metavar="DURATION", parser=seconds, help="The longest wait: 30m, 6h.", show_default=True),
]
_StartWithin = Annotated[
    float,
    typer.Option(
        metavar="DURATION", parser=seconds, help="How long PATH may hold no log yet.", show_default=True
    ),
]
_Ignore = Annotated[
    list[str] | None, typer.Option(metavar="ID", help="An incident that is dealt with. May be repeated.")
]
_StateDir = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        metavar="DIR",
        readable=False,
        help="The state of the watch to ask; by default any running watch that follows the runs.",
    ),
]


def wait(
    paths: Paths = None,
    until: _Until = Until.CRITICAL,
    timeout: _Timeout = "6h",  # type: ignore[assignment]  # parsed like what a person types
    start_within: _StartWithin = "1m",  # type: ignore[assignment]
    ignore: _Ignore = None,
    format_: ReportFormat = TextOrJson.TERMINAL,
    config: ConfigFile = None,
    state_dir: _StateDir = None,
) -> int:
    """Block until a run below PATH needs somebody, or all of them are over.

    The exit status is 0 if all runs ended well, 1 for an incident or a run that ended otherwise, 3 at the
    timeout, and 4 if nothing can be read. A running watch is asked; without one, the runs are watched here.
    Incidents that are silenced or acknowledged do not count.
    """
    from sentinel.cli.logs import log_to_stderr
    from sentinel.storage.states import fitting_states
    from sentinel.waiting.waiting import CHECK_SECONDS, EXIT_STATUS, Request, Waiting, waited_body

    log_to_stderr(logging.WARNING)
    settings = here(configuration(config, state_dir, paths or ()))
    config_state = (
        [state_dir]
        if state_dir
        else [*dict.fromkeys([*states(settings, config), *fitting_states(None, Path.cwd())])]
    )
    request = Request(settings.paths, until, timeout, start_within, ignore or ())
    clock = SystemClock()
    pause = Event()
    with Waiting(settings, request, config_state, clock) as waiting:
        while (wait_result := waiting.check()) is None:
            pause.wait(CHECK_SECONDS)
    if format_ is TextOrJson.JSON:
        import orjson

        body = waited_body(wait_result, clock.now())
        typer.echo(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode())
        return EXIT_STATUS[wait_result.outcome]
    if wait_result.notification is not None:
        from sentinel.report.incident_page import lines
        from sentinel.report.lines import print_lines

        print_lines(lines(wait_result.notification))
    else:
        typer.echo(f"{wait_result.outcome}: {clean_text(wait_result.message, 500)}")
        for run in wait_result.runs:
            typer.echo(f"  {clean_text(run.row.path)}: {run.state}, {clean_text(run.evidence)}")
    return EXIT_STATUS[wait_result.outcome]
