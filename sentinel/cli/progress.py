"""The progress bar of commands that read many runs."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sentinel.archives.archive import JudgedParts

_SAID_EVERY_SECONDS = 60.0

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

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)
            if done == total:
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
        said = began = time.monotonic()

        def show(judged: "JudgedParts") -> None:
            nonlocal said
            now = time.monotonic()
            told = f"{judged.runs / max(now - began, 1e-9):,.0f} runs/s, {judged.failed} failed"
            total = judged.parts - judged.known
            bar.update(task, completed=judged.done, total=total, description=told)
            if not console.is_terminal and now - said >= _SAID_EVERY_SECONDS:
                said = now
                console.print(f"{judged.done} of {total} parts, {told}", highlight=False)

        yield show
