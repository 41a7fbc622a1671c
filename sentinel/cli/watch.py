"""`sentinel watch`: follow runs and tell a person."""

import logging
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from sentinel.cli.options import ConfigFile, StateDir, configuration
from sentinel.errors import SentinelError

if TYPE_CHECKING:
    from sentinel.config import Config
    from sentinel.sinks.base import Sink

    _Wanted = tuple[Config, list[Sink]]

_log = logging.getLogger(__name__)

_DELIVER_SECONDS = 60.0
"""How long `--once` waits for receivers; what they have not taken by then goes out next time."""
_LAST_SECONDS = 10.0
"""How long a reload waits for what is on its way to a receiver."""

_Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH...", help="Run directories, trees, logs or addresses; by default `paths`."),
]
_Once = Annotated[bool, typer.Option("--once", help="Read what is there, deliver and exit.")]
_Poll = Annotated[bool, typer.Option("--poll", help="Expect no file system events: for NFS and FUSE.")]


def watch(
    paths: _Paths = None,
    config: ConfigFile = None,
    once: _Once = False,
    state_dir: StateDir = None,
    poll: _Poll = False,
) -> None:
    """Follow runs and tell when one goes wrong.

    Runs that begin later are followed too. Stopped and started again, it goes on where it was. SIGHUP makes
    it read its configuration again.
    """
    from sentinel.alerts.database import sole_watcher
    from sentinel.alerts.store import Store
    from sentinel.clock import SystemClock
    from sentinel.sinks.delivery import Delivery
    from sentinel.telemetry import ServiceManager, log_to_stderr
    from sentinel.watch.watchers import Watchers

    log_to_stderr()

    def load() -> "_Wanted":
        settings = configuration(config, state_dir, paths or (), poll)
        if not settings.paths:
            raise SentinelError("nothing to watch: name a PATH, or set `paths` in the configuration")
        return settings, [sink.open() for sink in settings.sinks]

    wanted, clock, service = load(), SystemClock(), ServiceManager()
    with sole_watcher(wanted[0].state_dir), Store(wanted[0].state_dir) as store:
        if once:
            settings, sinks = wanted
            with Delivery(settings.state_dir, sinks, clock) as delivery:
                Watchers(settings, store, delivery, clock, service).once()
                delivery.drain(_DELIVER_SECONDS)
            return
        signals = _Signals()
        while not signals.end:
            settings, sinks = wanted
            with Delivery(settings.state_dir, sinks, clock) as delivery:
                _log.info("watching %s; state in %s", ", ".join(map(str, settings.paths)), settings.state_dir)
                watchers = Watchers(settings, store, delivery, clock, service)
                signals.interrupt(watchers.end)
                watchers.run()
                delivery.stop(_LAST_SECONDS if signals.reload else 0.0)
            if signals.reload and not signals.end:
                signals.reload = False
                service.reloading(clock.awake())
                wanted = _reloaded(load, wanted)
        service.stopping()


class _Signals:
    """What signals ask for: SIGINT and SIGTERM the end, SIGHUP that the configuration is read again.

    A SIGHUP because the terminal was closed asks for the end.
    """

    def __init__(self) -> None:
        self.end = self.reload = False
        self._interrupt: Callable[[], None] = lambda: None
        self._on_terminal = sys.stderr.isatty()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._asked)

    def interrupt(self, interrupt: Callable[[], None]) -> None:
        """Call this at each signal; and now, if one came before."""
        self._interrupt = interrupt
        if self.end or self.reload:
            interrupt()

    def _asked(self, number: int, _: object) -> None:
        closed = self._on_terminal and not sys.stderr.isatty()
        if number == signal.SIGHUP and not closed:
            self.reload = True
        else:
            self.end = True
        self._interrupt()


def _reloaded(load: "Callable[[], _Wanted]", old: "_Wanted") -> "_Wanted":
    """What is wanted now; what was wanted before, where that cannot be had, with a line that says why."""
    try:
        new = load()
    except SentinelError as error:
        problems = str(error).splitlines()
    else:
        if new[0].state_dir == old[0].state_dir:
            _log.info("the configuration was read again")
            return new
        problems = ["`state_dir` cannot change under a watch; restart it"]
    for problem in problems:
        _log.error("the configuration stays as it was: %s", problem)
    return old
