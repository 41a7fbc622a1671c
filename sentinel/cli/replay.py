"""`sentinel replay`: judge finished logs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from detectors.severity import Severity, SeverityName
from sentinel.cli.options import ConfigFile, Paths, configuration
from sentinel.clock import SystemClock
from sentinel.errors import SentinelError

if TYPE_CHECKING:
    from sentinel.replay import Replay


class _Form(StrEnum):
    """The form of the report."""

    TERMINAL = "terminal"
    JSON = "json"
    HTML = "html"
    MARKDOWN = "markdown"


_Format = Annotated[_Form, typer.Option("--format", help="The form of the report; html is one file.")]
_Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the report to a file.")
]
_Compare = Annotated[
    bool, typer.Option("--compare", help="Compare runs that differ in one setting or in the seed alone.")
]
_FailOn = Annotated[
    SeverityName | None,
    typer.Option(
        help="Exit with status 1 if an incident is at least this severe or a run could not be judged."
    ),
]


def replay(
    paths: Paths,
    format_: _Format = _Form.TERMINAL,
    output: _Output = None,
    compare: _Compare = False,
    fail_on: _FailOn = None,
    config: ConfigFile = None,
) -> int:
    """Show what `watch` would have said about finished logs."""
    from sentinel.cli.logs import log_to_stderr
    from sentinel.replay import replay as judge

    log_to_stderr()
    settings = configuration(config, paths=paths)
    with _opened(output) as file:
        with _progress() as progress:
            curves = format_ in (_Form.HTML, _Form.MARKDOWN)
            done = judge(settings.paths, settings, progress, curves=curves, compare=compare)
        _write(done, format_, file)
    if all(run.unread for run in done.runs):
        return 2
    told = [i for run in done.runs for i in run.incidents.values() if i.inhibited_by is None]
    worst = max((incident.severity for incident in told), default=Severity.CLEAN)
    unknown = any(run.stopped for run in done.runs)
    return int(fail_on is not None and (unknown or worst >= Severity.named(fail_on)))


@contextmanager
def _opened(output: Path | None) -> Iterator[TextIO]:
    """The file to write to, standard output by default. A file that cannot be written is said at once."""
    if output is None:
        yield sys.stdout
        return
    try:
        file = output.open("w", encoding="utf-8")
    except OSError as error:
        raise SentinelError(f"{output}: the report cannot be written: {error.strerror}") from None
    with file:
        yield file


def _write(done: "Replay", format_: _Form, file: TextIO) -> None:
    now = SystemClock().now()
    match format_:
        case _Form.TERMINAL:
            from rich.console import Console

            from sentinel.report.terminal import show

            show(done, Console(file=file, highlight=False))
        case _Form.JSON:
            import orjson

            from sentinel.report.json import document

            print(orjson.dumps(document(done, now), option=orjson.OPT_INDENT_2).decode(), file=file)
        case _Form.HTML:
            from sentinel.report.html import render
            from sentinel.report.story import story

            file.write(render(story(done, now)))
        case _Form.MARKDOWN:
            from sentinel.report import markdown
            from sentinel.report.story import story

            file.write(markdown.render(story(done, now)))


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
