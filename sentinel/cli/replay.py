"""`sentinel replay`: judge finished logs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from detectors.severity import Severity, SeverityName
from sentinel.cli.options import ConfigFile, Format, Paths, ReportFormat, configuration
from sentinel.clock import SystemClock

_FailOn = Annotated[
    SeverityName | None,
    typer.Option(
        help="Exit with status 1 if an incident is at least this severe or a run could not be judged."
    ),
]


def replay(
    paths: Paths, format_: ReportFormat = Format.TERMINAL, fail_on: _FailOn = None, config: ConfigFile = None
) -> int:
    """Show what `watch` would have said about finished logs."""
    from sentinel.cli.logs import log_to_stderr
    from sentinel.replay import replay as judge

    log_to_stderr()
    settings = configuration(config, paths=paths)
    with _progress() as progress:
        done = judge(settings.paths, settings, progress)
    if format_ is Format.JSON:
        import orjson

        from sentinel.report.json import document

        typer.echo(orjson.dumps(document(done, SystemClock().now()), option=orjson.OPT_INDENT_2).decode())
    else:
        from sentinel.report.terminal import show

        show(done)
    if all(run.unread for run in done.runs):
        return 2
    told = [i for run in done.runs for i in run.incidents.values() if i.inhibited_by is None]
    worst = max((incident.severity for incident in told), default=Severity.CLEAN)
    unknown = any(run.stopped for run in done.runs)
    return int(fail_on is not None and (unknown or worst >= Severity.named(fail_on)))


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on stderr if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("runs", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
