"""The table that a watch shows while it runs, where there is a terminal."""

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel.cli.logs import log_to_stderr
from sentinel.common.clock import Clock

if TYPE_CHECKING:
    from rich.live import Live

_TABLE_REFRESH_SECONDS = 2.0  # between two reads of the state, at least
_PAUSE_RATIO = 20  # of the pause to the time of a read, so that many runs do not cost a core

_log = logging.getLogger(__name__)


@contextmanager
def table_of(state_dir: Path, clock: Clock) -> Iterator[None]:
    """Show the runs of a state directory below the log lines while the context is open.

    Nothing is shown where stderr is no terminal.
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live

    ended = threading.Event()
    live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
    live.start()
    log_to_stderr()  # to the stream that keeps the lines above the table
    showing = threading.Thread(target=_show, args=(live, state_dir, clock, ended), daemon=True)
    showing.start()
    try:
        yield
    finally:
        ended.set()
        showing.join()
        with suppress(OSError):  # the terminal may be what has ended
            live.stop()
    log_to_stderr()


def _show(live: "Live", state_dir: Path, clock: Clock, ended: threading.Event) -> None:
    from sentinel.report.status import status
    from sentinel.report.watch_table import watch_table
    from sentinel.storage.store import Store

    pause = 0.1  # the watch makes its state first
    while not ended.wait(pause):
        started_at = clock.monotonic()
        try:
            with Store(state_dir, read_only=True) as store:
                content = status(store, state_dir, clock.now())
            live.update(watch_table(content, live.console.height, live.console.width), refresh=True)
        except Exception as error:  # noqa: BLE001  the watch goes on without its table
            _log.debug("the table cannot be shown: %s", error)
        pause = max(_TABLE_REFRESH_SECONDS, _PAUSE_RATIO * (clock.monotonic() - started_at))
