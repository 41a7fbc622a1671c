"""`sentinel replay`: judge finished logs."""

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import msgspec
import typer

from sentinel.cli.options import ConfigFile, Paths, judging, opened
from sentinel.cli.progress import progress_bar
from sentinel.common.clock import SystemClock
from sentinel.common.errors import SentinelError
from sentinel.detectors.severity import Severity, SeverityName
from sentinel.report.selection import Order, Selection, ordered

if TYPE_CHECKING:
    from sentinel.replays.replay import Replay


class _ReplayForm(StrEnum):
    """The form of the report."""

    TERMINAL = "terminal"
    JSON = "json"
    JSONL = "jsonl"
    HTML = "html"
    MARKDOWN = "markdown"
    SARIF = "sarif"


_BY_SUFFIX = {
    ".html": _ReplayForm.HTML,
    ".htm": _ReplayForm.HTML,
    ".md": _ReplayForm.MARKDOWN,
    ".json": _ReplayForm.JSON,
    ".jsonl": _ReplayForm.JSONL,
    ".sarif": _ReplayForm.SARIF,
}
"""The form of a file that is named without one."""


_Format = Annotated[
    _ReplayForm | None,
    typer.Option(
        "--format",
        help="The form of the report; default: by the name of the file, else terminal. jsonl is a line for "
        "each run, written as soon as the run is judged; html is one file; sarif is for code scanning.",
    ),
]
_Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the report to a file.")
]
_Compare = Annotated[
    bool, typer.Option("--compare", help="Compare runs that differ in one setting or in the seed alone.")
]
_Baseline = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH",
        help="A good run, or a directory of them, with which each run is compared. May be repeated.",
    ),
]
_FailOn = Annotated[
    SeverityName | None,
    typer.Option(
        help="Exit with status 1 if a shown incident is at least this severe or a run could not be judged."
    ),
]
_Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DETECTOR|SEVERITY",
        help="Show only incidents of this detector, or at least this severe. May be repeated.",
    ),
]
_Since = Annotated[
    str,
    typer.Option(
        metavar="STEP|TIME", help="Show only incidents that began at this step or time (ISO 8601) or later."
    ),
]
_Names = Annotated[
    list[str] | None,
    typer.Option("--run", metavar="GLOB", help="Read only runs of this name. May be repeated."),
]
_Sort = Annotated[
    Order | None,
    typer.Option(help="The order of the runs; default: the worst first, json by name. jsonl is by name."),
]


_Details = Annotated[
    bool,
    typer.Option("--details", help="Also name each detector that could not judge a run, and what it lacked."),
]


def replay(
    paths: Paths = None,
    format_: _Format = None,
    output: _Output = None,
    only: _Only = None,
    since: _Since = "",
    run: _Names = None,
    sort: _Sort = None,
    compare: _Compare = False,
    baseline: _Baseline = None,
    fail_on: _FailOn = None,
    details: _Details = False,
    config: ConfigFile = None,
) -> int:
    """Show what `watch` would have said about finished logs."""
    from sentinel.cli.logs import log_to_stderr
    from sentinel.detectors.discovery import all_detectors
    from sentinel.replays.replaying import replay as replay_whole
    from sentinel.replays.replaying import replay_in_parts
    from sentinel.sources.discovery import locations_of

    form = format_ or (_BY_SUFFIX.get(output.suffix.lower()) if output else None) or _ReplayForm.TERMINAL
    if form is _ReplayForm.JSONL and (compare or baseline):
        raise SentinelError("jsonl has a line for each run and none for comparisons; use json")
    log_to_stderr()
    named_paths, settings = judging(config, paths or ())
    locations = named_paths or locations_of(["."])
    names_of_detectors = {*all_detectors(), *(detector.name for detector in settings.enabled_detectors)}
    selection = Selection.parse(only or (), since, names_of_detectors)
    outcome = _ExitStatus()
    shows_progress = form is not _ReplayForm.JSONL  # whose lines show it
    bar = progress_bar() if shows_progress else nullcontext(lambda *_: None)
    with opened(output) as file, bar as progress:
        curves = form in (_ReplayForm.HTML, _ReplayForm.MARKDOWN)
        names = run or ()
        if compare or baseline or form in (_ReplayForm.TERMINAL, _ReplayForm.JSON):
            replayed = replay_whole(
                locations,
                settings,
                progress,
                curves=curves,
                compare=compare,
                baseline=locations_of(baseline or ()),
                names=names,
            )
            if (compare or baseline) and not replayed.comparisons:
                typer.echo(
                    "sentinel: nothing to compare: no two runs differ in one setting or in the seed alone",
                    err=True,
                )
            replay_parts = iter([replayed])
        else:
            replay_parts = replay_in_parts(locations, settings, progress, curves=curves, names=names)
        _write(outcome.through(map(selection.apply, replay_parts)), form, sort, file, details)
    return outcome.status(fail_on)


class _ExitStatus(msgspec.Struct):
    """What the exit status depends on, of all parts of a replay."""

    worst: Severity = Severity.CLEAN
    unjudged: bool = False  # a run or a place could not be read, or a run not be judged to its end
    any_read: bool = False  # something could be read, or nothing was selected

    def through(self, replay_parts: "Iterable[Replay]") -> "Iterator[Replay]":
        """Yield the same parts, and note what each says."""
        for replay_part in replay_parts:
            runs = replay_part.runs
            self.worst = max([self.worst, *(run.worst for run in runs)])
            self.unjudged = self.unjudged or bool(replay_part.coverage.cut or replay_part.coverage.unread)
            self.any_read = self.any_read or not runs or not all(run.unread for run in runs)
            yield replay_part

    def status(self, fail_on: SeverityName | None) -> int:
        if not self.any_read:
            return 2
        return int(fail_on is not None and (self.unjudged or self.worst >= Severity.named(fail_on)))


def _write(
    replay_parts: "Iterator[Replay]", format_: _ReplayForm, sort: Order | None, file: TextIO, details: bool
) -> None:
    now = SystemClock().now()
    match format_:
        case _ReplayForm.TERMINAL:
            from sentinel.report.terminal import show

            show(ordered(next(replay_parts), sort or "worst"), file, details)
        case _ReplayForm.JSON:
            import orjson

            from sentinel.report.json import document

            written = document(ordered(next(replay_parts), sort or "name"), now)
            print(orjson.dumps(written, option=orjson.OPT_INDENT_2).decode(), file=file)
        case _ReplayForm.JSONL:
            import orjson

            from sentinel.common.text import clean_text
            from sentinel.report.json import lines

            covered = None
            for replay_part in replay_parts:
                covered = covered + replay_part.coverage if covered else replay_part.coverage
                for issue in replay_part.read_issues:
                    typer.echo(f"unreadable: {clean_text(str(issue), 500)}", err=True)
                for line in lines(replay_part, now):
                    print(orjson.dumps(line).decode(), file=file, flush=True)
            typer.echo(f"sentinel: {covered}", err=True)
        case _ReplayForm.HTML:
            from sentinel.report import html
            from sentinel.report.model import replay_report

            file.write(html.render(replay_report(replay_parts, now, sort or "worst")))
        case _ReplayForm.MARKDOWN:
            from sentinel.report import markdown
            from sentinel.report.model import replay_report

            file.write(markdown.render(replay_report(replay_parts, now, sort or "worst")))
        case _ReplayForm.SARIF:
            import orjson

            from sentinel.report.sarif import document as results

            sarif = orjson.dumps(results(replay_parts, Path.cwd()), option=orjson.OPT_INDENT_2)
            print(sarif.decode(), file=file)
