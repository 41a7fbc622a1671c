"""The table of a watch on a terminal: what runs, what rang and what waits, the worst training first."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sentinel.common.distinct_names import distinct
from sentinel.common.text import clean_text, counted, duration_text
from sentinel.detectors.severity import Severity
from sentinel.report.status import KnownRun, Status
from sentinel.report.status_lines import names_of, summary

_SEVERITY_COLOURS = {Severity.CRITICAL: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_FACT_COLUMNS = ("State", "Step", "Last point", "Open incidents")
_LINES_AROUND = 8  # above, below and between
_CELL_PADDING = 16  # columns around the five of the table
_MIN_NAME_WIDTH = 12  # characters of a name, however narrow the terminal is


def watch_table(status: Status, height: int, width: int) -> RenderableType:
    """Return the table of a status in at most ``height`` lines, one for each training, and ``width`` columns.

    Names that are too long are shortened so that no two read alike.
    """
    trainings = [[*logs] for _, logs in groupby(status.runs, key=lambda run: run.training)]
    room = max(1, height - _LINES_AROUND)
    name = names_of(status.runs)
    table_rows = [[*_facts(logs, status)] for logs in trainings[:room]]
    other_width = sum(max(map(len, column)) for column in zip(_FACT_COLUMNS, *table_rows, strict=True))
    run_names = [name[logs[0].row.id] for logs in trainings[:room]]
    table = Table(box=SIMPLE_HEAD, expand=True)
    for title in ("Training", *_FACT_COLUMNS):
        table.add_column(title, no_wrap=True)
    for logs, short, facts in zip(
        trainings,
        distinct(run_names, max(_MIN_NAME_WIDTH, width - other_width - _CELL_PADDING)),
        table_rows,
        strict=False,
    ):
        severity = max(log.severity for log in logs)
        table.add_row(*map(Text, (short, *facts)), style=_SEVERITY_COLOURS.get(severity))
    below = [f"and {counted(more, 'training')} more"] if (more := len(trainings) - room) > 0 else []
    return Group(Text(summary(status.runs)), table, *map(Text, [*below, *_waiting(status)]))


def _facts(logs: Sequence[KnownRun], status: Status) -> Iterator[str]:
    """Yield what stands beside the name of a training."""
    first_log = logs[0]
    runs = {run.row.id for run in logs}
    planned = first_log.planned_steps
    last_time = first_log.last_time
    yield first_log.state
    yield f"{first_log.last_step or 0:,}" + (f" of {planned:,.0f}" if planned else "")
    yield (
        f"{duration_text(max(0.0, status.now - last_time))} ago"
        if last_time
        else _read_text(first_log, status.now)
    )
    detectors = (
        incident.detector
        for incident in status.incidents
        if incident.run in runs and incident.inhibited_by is None
    )
    yield _in_few([*dict.fromkeys(detectors)])


def _in_few(detectors: Sequence[str]) -> str:
    """Return the first detector, and how many there are beside it."""
    more = f" +{len(detectors) - 1}" if len(detectors) > 1 else ""
    return f"{detectors[0]}{more}" if detectors else ""


def _read_text(run: KnownRun, now: float) -> str:
    """Return when points of a log without times were recorded last."""
    return f"read {duration_text(max(0.0, now - run.row.updated))} ago" if run.points else "none yet"


def _waiting(status: Status) -> Iterator[str]:
    """Yield what the watch waits for, and what keeps it from its work."""
    if status.trouble:
        yield status.trouble
    if lags := [run.lag for run in status.runs if run.lag]:
        yield f"{counted(len(lags), 'log')} not read to the end yet, for {duration_text(max(lags))}"
    for sink in dict.fromkeys(waiting.sink for waiting in status.undelivered):
        error = next(
            (waiting.error for waiting in status.undelivered if waiting.sink == sink and waiting.error), ""
        )
        yield clean_text(f"notifications wait for {sink}{f': {error}' if error else ''}", 200)
    yield "`sentinel status` says more, `sentinel show ID` all about an incident; Ctrl-C ends the watch"
