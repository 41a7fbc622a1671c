"""`sentinel watch`: follow runs and send alerts."""

import logging
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentinel.cli.options import ConfigFile, Notify, StateDir, configuration
from sentinel.common.errors import SentinelError, StateDamaged
from sentinel.common.text import clean_text

if TYPE_CHECKING:
    from sentinel.config.file import Config
    from sentinel.sinks.base import Sink
    from sentinel.storage.store import Store

    _Wanted = tuple[Config, list[Sink]]

_log = logging.getLogger(__name__)

_DELIVER_SECONDS = 60.0
"""How long `--once` waits for receivers. The next start sends what they have not taken by then."""
_LAST_SECONDS = 10.0
"""How long a reload waits for deliveries that have begun."""

_FIXED = ("state_dir", "listen", "heartbeat", "shard")
"""Keys of the configuration that a reload cannot change."""

_Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH...",
        help="Log files, run directories, directories of runs, or addresses; default: `paths`.",
    ),
]
_Once = Annotated[bool, typer.Option("--once", help="Read what is there, deliver notifications and exit.")]
_Poll = Annotated[
    bool,
    typer.Option("--poll", help="Poll instead of waiting for file system events; NFS and FUSE send none."),
]
_Wait = Annotated[bool, typer.Option("--wait", help="Wait for a PATH that does not exist yet.")]
_Listen = Annotated[
    str,
    typer.Option(
        metavar="[HOST:]PORT",
        help="Answer /metrics (for Prometheus) and /healthz here; a port alone means on this machine only.",
    ),
]


_Share = Annotated[
    str,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Follow only share I of N, from 0 to N - 1, of a tree that is too large for one watch. Each "
        "share needs a --state-dir of its own.",
    ),
]


def watch(
    paths: _Paths = None,
    config: ConfigFile = None,
    once: _Once = False,
    state_dir: StateDir = None,
    poll: _Poll = False,
    wait: _Wait = False,
    listen: _Listen = "",
    notify: Notify = None,
    shard: _Share = "",
) -> None:
    """Follow runs and send an alert when one goes wrong.

    Runs that begin later are followed as well. A restart continues where the last watch stopped. SIGHUP
    makes the watch read its configuration again.

    On Linux the processes of the runs are watched, too. What GPUs and NCCL tell of them is off until
    `[process] devices = true`: it is not proved with several GPUs yet.
    """
    from sentinel.cli.logs import log_to_stderr
    from sentinel.cli.plugins import find_broken_plugins
    from sentinel.cli.watch_table import table_of
    from sentinel.common.clock import SystemClock
    from sentinel.sinks.delivery import Delivery
    from sentinel.sinks.heartbeat import beating
    from sentinel.sources.location import is_pattern, matches
    from sentinel.storage.lock import sole_watcher
    from sentinel.telemetry.metrics import Metrics
    from sentinel.telemetry.server import serving
    from sentinel.watch.startup import when_available
    from sentinel.watch.state_recovery import begin_anew, sound_store
    from sentinel.watch.systemd import ServiceManager
    from sentinel.watch.watchers import Watchers

    log_to_stderr()
    for plugin in find_broken_plugins():
        _log.warning("%s", plugin)

    def load() -> "_Wanted":
        settings = configuration(config, state_dir, paths or (), poll, listen, notify or (), shard)
        if not settings.paths:
            raise SentinelError("nothing to watch: name a PATH, or set `paths` in the configuration")
        here = [path for path in settings.paths if isinstance(path, Path)]
        missing = [path for path in here if not any(match.exists() for match in matches(path))]
        if missing == settings.paths and not wait and not any(map(is_pattern, missing)):
            raise SentinelError(f"{missing[0]}: no such file or directory; --wait waits until it exists")
        for path in missing:
            what = "nothing matches it yet" if is_pattern(path) else "no such file or directory"
            _log.warning("%s: %s; the watch waits for it", clean_text(str(path)), what)
        return settings, [sink.open() for sink in settings.sinks]

    wanted = load()
    clock = SystemClock()
    service = ServiceManager()
    state = wanted[0].state_dir
    lost = list[str]()

    def deliver(settings: "Config", sinks: list["Sink"]) -> Delivery:
        return Delivery(state, sinks, clock, settings.link, settings.budget, settings.daily)

    def opened() -> "Store":
        return sound_store(state, clock.now(), lost.append)

    def read_once() -> None:
        settings, sinks = wanted
        with opened() as sound, deliver(settings, sinks) as delivery:
            delivery.announce_events(lost)
            lost.clear()
            Watchers(settings, sound, delivery, clock, service).once()
            delivery.drain(_DELIVER_SECONDS)

    if once:
        with sole_watcher(state):
            damage = _damage(read_once)
            if damage is not None:
                begin_anew(state, clock.now(), damage, lost.append)
                read_once()
        return
    signals = _Signals()
    with ExitStack() as held:  # closes at the end what could be opened
        metrics = Metrics(state, service.health, clock)
        if address := wanted[0].listen:
            serves = held.enter_context(serving(address, metrics, clock))
            _log.info("answering /metrics and /healthz on %s", serves)
        if beat := wanted[0].heartbeat:
            held.enter_context(beating(beat, metrics.problems, clock))
        held.enter_context(table_of(state, clock))
        when_available(lambda: held.enter_context(sole_watcher(state)), signals.ended, service)
        store = when_available(opened, signals.ended, service)
        while store is not None and not signals.end:
            settings, sinks = wanted
            with deliver(settings, sinks) as delivery:
                _log.info("watching %s; state in %s", ", ".join(map(str, settings.paths)), settings.state_dir)
                delivery.announce_events(lost)
                lost.clear()
                watchers = Watchers(settings, store, delivery, clock, service)
                metrics.logs = watchers.logs
                metrics.lags = watchers.lags
                metrics.promise = settings.calibration
                signals.interrupt(watchers.end)
                damage = _damage(watchers.run)
                delivery.stop(_LAST_SECONDS if signals.reload else 0.0)
            if damage is not None:
                store.close()
                begin_anew(state, clock.now(), damage, lost.append)
                store = when_available(opened, signals.ended, service)
            if signals.reload and not signals.end:
                signals.reload = False
                service.reloading(clock.monotonic())
                wanted = _reloaded(load, wanted)
        if store is not None:
            store.close()
        service.stopping()


def _damage(watch: Callable[[], None]) -> StateDamaged | None:
    """Watch until the end, or until the state turns out to be damaged."""
    try:
        watch()
    except StateDamaged as error:
        return error
    return None


class _Signals:
    """The requests that arrive as signals: SIGINT and SIGTERM end the watch, SIGHUP reloads.

    A SIGHUP that comes because the terminal was closed ends the watch as well.
    """

    def __init__(self) -> None:
        self.reload = False
        self.ended = threading.Event()
        self._interrupt: Callable[[], None] = lambda: None
        self._on_terminal = sys.stderr.isatty()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._asked)

    def interrupt(self, interrupt: Callable[[], None]) -> None:
        """Call ``interrupt`` at each signal, and at once if a signal came before."""
        self._interrupt = interrupt
        if self.end or self.reload:
            interrupt()

    @property
    def end(self) -> bool:
        """Whether the end was asked for."""
        return self.ended.is_set()

    def _asked(self, number: int, _: object) -> None:
        closed = self._on_terminal and not sys.stderr.isatty()
        if number == signal.SIGHUP and not closed:
            self.reload = True
        else:
            self.ended.set()
        self._interrupt()


def _reloaded(load: "Callable[[], _Wanted]", old: "_Wanted") -> "_Wanted":
    """Return the new configuration; if it cannot be used, log why and keep the old one."""
    try:
        new = load()
    except SentinelError as error:
        problems = str(error).splitlines()
    else:
        fixed = [key for key in _FIXED if getattr(new[0], key) != getattr(old[0], key)]
        if not fixed:
            _log.info("read the configuration again")
            return new
        problems = [f"`{key}` cannot change while the watch runs; restart it" for key in fixed]
    for problem in problems:
        _log.error("keeping the old configuration: %s", problem)
    return old
