"""The progress bar of commands that read many runs."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

    from sentinel.archives.archive import JudgedParts

PATIENCE_SECONDS = 1.0
"""Before a bar is shown. Few logs take less, and what draws the bar is slow to import."""
_REPORT_SECONDS = 60.0  # between two lines where there is no terminal

Progress = Callable[[int, int], None]
"""Called with the number of runs that are done and the number of all runs."""


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Show a progress bar on stderr if that is a terminal and if there is something to wait for."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    bar = _LateBar()
    timer = threading.Timer(PATIENCE_SECONDS, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield bar.show
    finally:
        timer.cancel()
        bar.stop()


class _LateBar:
    """A progress bar that is told of progress before it is seen. Any thread may start it."""

    def __init__(self) -> None:
        self._completed = 0
        self._total: int | None = None
        self._is_over = False
        self._bar: RichProgress | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Show the bar, unless all is done."""
        from rich import progress
        from rich.console import Console

        columns = (
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeRemainingColumn(),
        )
        with self._lock:
            if self._is_over:
                return
            self._bar = progress.Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.add_task("runs", total=self._total, completed=self._completed)
            self._bar.start()

    def show(self, completed: int, total: int) -> None:
        """Show how many runs are done, of how many."""
        with self._lock:
            self._completed = completed
            self._total = total
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], completed=completed, total=total)
        if completed == total:
            self.stop()  # before the report is written, perhaps to the same terminal

    def stop(self) -> None:
        """Remove the bar; it is not shown any more."""
        with self._lock:
            self._is_over = True
            if self._bar is not None:
                self._bar.stop()


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

        def show(judged_parts: "JudgedParts") -> None:
            nonlocal reported_at
            now = time.monotonic()
            runs_per_second = judged_parts.runs / max(now - started_at, 1e-9)
            rate = f"{runs_per_second:,.0f} runs/s, {judged_parts.failed} failed"
            total = judged_parts.parts - judged_parts.reused
            bar.update(task, completed=judged_parts.completed, total=total, description=rate)
            if not console.is_terminal and now - reported_at >= _REPORT_SECONDS:
                reported_at = now
                console.print(f"{judged_parts.completed} of {total} parts, {rate}", highlight=False)

        yield show
