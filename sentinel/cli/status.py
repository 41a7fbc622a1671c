"""`sentinel status`: show what the state directory holds."""

from typing import Annotated

import typer

from sentinel.cli.options import ConfigFile, ReportFormat, StateDir, TextOrJson, recorded
from sentinel.cli.plugins import complain_of_plugins
from sentinel.common.clock import SystemClock
from sentinel.common.run_glob import fits, run_glob
from sentinel.detectors.severity import Severity, SeverityName

_Run = Annotated[
    str,
    typer.Option("--run", metavar="GLOB", help="Only runs whose path, or the end of it, matches: 'exp-*'."),
]

_FailOn = Annotated[
    SeverityName | None,
    typer.Option(
        help="Exit with status 1 if an open incident is at least this severe or a run is not judged."
    ),
]


def status(
    format_: ReportFormat = TextOrJson.TERMINAL,
    run: _Run = "*",
    config: ConfigFile = None,
    state_dir: StateDir = None,
    fail_on: _FailOn = None,
) -> int:
    """Show runs, incidents, deliveries, decisions and health, the worst first."""
    from sentinel.report import status as report
    from sentinel.storage.store import Store

    settings = recorded(config, state_dir)
    state_directory = settings.state_dir
    now = SystemClock().now()
    pattern = run_glob(run)
    with Store(state_directory, read_only=True) as store:
        content = report.status(
            store, state_directory, now, lambda path: fits(pattern, path), promise=settings.calibration
        )
    complain_of_plugins()
    if format_ is TextOrJson.JSON:
        import orjson

        from sentinel.report.status_body import document

        typer.echo(orjson.dumps(document(content), option=orjson.OPT_INDENT_2).decode())
    else:
        from sentinel.report.lines import print_lines
        from sentinel.report.status_lines import lines

        print_lines(lines(content))
    roots = [incident for incident in content.incidents if incident.inhibited_by is None]
    worst = max((incident.severity for incident in roots), default=Severity.CLEAN)
    is_unjudged = any(run.not_judged for run in content.runs)
    return int(fail_on is not None and (is_unjudged or worst >= Severity.named(fail_on)))
