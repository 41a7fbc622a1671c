"""The progress bar of commands that read many runs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
