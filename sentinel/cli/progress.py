"""The progress bar of commands that read many runs."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sentinel.archives.archive import JudgedParts

_REPORT_SECONDS = 60.0

Progress = Callable[[int, int], None]
"""Called with the number of runs that are done and the number of all runs."""


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Show a progress bar on stderr if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("runs", total=None)

        def show(completed: int, total: int) -> None:
            bar.update(task, completed=completed, total=total)
            if completed == total:
                bar.stop()  # before the report is written, perhaps to the same terminal

        yield show


@contextmanager
def archive_progress() -> "Iterator[Callable[[JudgedParts], None]]":
    """Show how much of an archive is judged: a bar on a terminal, else a line a minute, on stderr."""
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    columns = (
        progress.TextColumn("parts"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.description}"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)
        reported_at = started_at = time.monotonic()

        def show(parts: "JudgedParts") -> None:
            nonlocal reported_at
            now = time.monotonic()
            rate = f"{parts.runs / max(now - started_at, 1e-9):,.0f} runs/s, {parts.failed} failed"
            total = parts.parts - parts.reused
            bar.update(task, completed=parts.completed, total=total, description=rate)
            if not console.is_terminal and now - reported_at >= _REPORT_SECONDS:
                reported_at = now
                console.print(f"{parts.completed} of {total} parts, {rate}", highlight=False)

        yield show
