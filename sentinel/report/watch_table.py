"""The table of a watch on a terminal: what runs, what rang and what waits, the worst training first."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sentinel.common.text import clean_text, counted, duration_text
from sentinel.detectors.severity import Severity
from sentinel.report.status import KnownRun, Status
from sentinel.report.status_lines import names_of, summary

_COLOURS = {Severity.CRITICAL: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_LINES_AROUND = 8  # above, below and between


def watch_table(status: Status, height: int) -> RenderableType:
    """Return the table of a status in at most ``height`` lines."""
    trainings = [[*logs] for _, logs in groupby(status.runs, key=lambda run: run.training)]
    room = max(1, height - _LINES_AROUND)
    name = names_of(status.runs)
    table = Table(box=SIMPLE_HEAD, expand=True)
    table.add_column("Training", ratio=3, overflow="fold")
    for title in ("State", "Step", "Last point"):
        table.add_column(title, no_wrap=True)
    table.add_column("Open incidents", ratio=2, overflow="fold")
    for logs in trainings[:room]:
        table.add_row(
            *_row(logs, status, name[logs[0].row.id]), style=_COLOURS.get(max(log.severity for log in logs))
        )
    below = [f"and {counted(more, 'training')} more"] if (more := len(trainings) - room) > 0 else []
    return Group(Text(summary(status.runs)), table, *map(Text, [*below, *_waiting(status)]))


def _row(logs: Sequence[KnownRun], status: Status, name: str) -> Iterator[Text]:
    first = logs[0]
    runs = {run.row.id for run in logs}
    planned = first.planned_steps
    last = first.last_time
    yield Text(name)
    yield Text(first.state)
    yield Text(f"{first.last_step or 0:,}" + (f" of {planned:,.0f}" if planned else ""))
    yield Text(f"{duration_text(max(0.0, status.now - last))} ago" if last else _read(first, status.now))
    detectors = (
        incident.detector
        for incident in status.incidents
        if incident.run in runs and incident.inhibited_by is None
    )
    yield Text(", ".join(dict.fromkeys(detectors)))


def _read(run: KnownRun, now: float) -> str:
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
