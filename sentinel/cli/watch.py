"""`sentinel watch`: follow runs and tell a person."""

import logging
import signal
from typing import Annotated

import typer

from sentinel.cli.options import ConfigFile, StateDir, configuration
from sentinel.errors import SentinelError

_log = logging.getLogger(__name__)

_DELIVER_SECONDS = 60.0
"""How long `--once` waits for receivers; what they have not taken by then goes out next time."""

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

    Runs that begin later are followed too. Stopped and started again, it goes on where it was.
    """
    from sentinel.alerts.database import sole_watcher
    from sentinel.alerts.store import Store
    from sentinel.clock import SystemClock
    from sentinel.sinks.delivery import Delivery
    from sentinel.telemetry import ServiceManager, log_to_stderr
    from sentinel.watch.watchers import Watchers

    log_to_stderr()
    settings = configuration(config, state_dir, paths or (), poll)
    if not settings.paths:
        raise SentinelError("nothing to watch: name a PATH, or set `paths` in the configuration")
    sinks, clock = [sink.open() for sink in settings.sinks], SystemClock()
    with (
        sole_watcher(settings.state_dir),
        Store(settings.state_dir) as store,
        Delivery(settings.state_dir, sinks, clock) as delivery,
    ):
        watchers = Watchers(settings, store, delivery, clock, ServiceManager())
        if once:
            watchers.once()
            delivery.drain(_DELIVER_SECONDS)
            return
        signal.signal(signal.SIGINT, lambda *_: watchers.end())
        signal.signal(signal.SIGTERM, lambda *_: watchers.end())
        _log.info("watching %s; state in %s", ", ".join(map(str, settings.paths)), settings.state_dir)
        watchers.run()
