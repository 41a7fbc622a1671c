"""The life of a watch: it reads once, or follows runs until a signal ends it or reloads its configuration."""

import logging
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import NamedTuple

from sentinel.common.clock import Clock, SystemClock
from sentinel.common.errors import SentinelError, StateDamaged
from sentinel.config.file import Config
from sentinel.sinks.base import Sink
from sentinel.sinks.delivery import Delivery
from sentinel.sinks.heartbeat import beating
from sentinel.storage.lock import sole_watcher
from sentinel.storage.sharing import obstacles, share
from sentinel.storage.store import Store
from sentinel.telemetry.metrics import Metrics
from sentinel.telemetry.server import serving
from sentinel.watch.startup import when_available
from sentinel.watch.state_recovery import begin_anew, sound_store
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.watchers import Watchers

_ONCE_SECONDS = 60.0  # how long `read_once` waits for receivers; the next start sends the rest
_END_SECONDS = 5.0  # how long the end of a watch waits for receivers; the next start sends the rest
_RELOAD_SECONDS = 10.0  # how long a reload waits for deliveries that have begun
_FIXED_KEYS = ("state_dir", "state_group", "listen", "heartbeat", "shard")
"""Keys of the configuration that no reload changes."""

_log = logging.getLogger(__name__)


class WatchSetup(NamedTuple):
    """The configuration of a watch, and its open sinks."""

    config: Config
    sinks: Sequence[Sink]


class Daemon:
    """A watch. ``load`` reads the configuration; it raises SentinelError if that cannot be used."""

    def __init__(self, load: Callable[[], WatchSetup]) -> None:
        self._load = load
        self._setup = load()
        self._clock = SystemClock()
        self._service = ServiceManager()
        self._state_dir = self._setup.config.state_dir
        self._announcements: list[str] = []  # of what happened to the watch itself, for the sinks

    def read_once(self) -> None:
        """Read what is there and deliver the notifications."""
        with sole_watcher(self._state_dir):
            try:
                self._watch_runs()
            except StateDamaged as damage:
                self._begin_anew(damage)
                self._watch_runs()

    def run(self, show_table: Callable[[Path, Clock], AbstractContextManager[None]]) -> None:
        """Follow runs until a signal ends that, inside ``show_table``, which shows the runs meanwhile."""
        signals = _Signals()
        with ExitStack() as stack:  # closes at the end what could be opened
            metrics = self._serve_metrics(stack)
            stack.enter_context(show_table(self._state_dir, self._clock))
            when_available(
                lambda: stack.enter_context(sole_watcher(self._state_dir)), signals.ended, self._service
            )
            store = when_available(self._open_store, signals.ended, self._service)
            while store is not None and not signals.end:
                try:
                    self._follow_runs(store, metrics, signals)
                except StateDamaged as damage:
                    store.close()
                    self._begin_anew(damage)
                    store = when_available(self._open_store, signals.ended, self._service)
                if signals.reload and not signals.end:
                    signals.reload = False
                    self._service.reloading(self._clock.monotonic())
                    self._reload()
            if store is not None:
                store.close()
            self._service.stopping()

    def _watch_runs(self) -> None:
        with self._open_store() as store, self._delivery() as delivery:
            self._announce(delivery)
            Watchers(self._setup.config, store, delivery, self._clock, self._service).once()
            delivery.drain(_ONCE_SECONDS)

    def _serve_metrics(self, stack: ExitStack) -> Metrics:
        """Answer requests and send heartbeats until the stack is closed, where that is configured."""
        config = self._setup.config
        metrics = Metrics(self._state_dir, self._service.health, self._clock)
        if config.listen:
            address = stack.enter_context(serving(config.listen, metrics, self._clock))
            _log.info("answering /metrics and /healthz on %s", address)
        if config.heartbeat:
            stack.enter_context(beating(config.heartbeat, metrics.problems, self._clock))
        return metrics

    def _follow_runs(self, store: Store, metrics: Metrics, signals: "_Signals") -> None:
        """Follow runs until a signal comes. Raises StateDamaged if the state turns out to be damaged."""
        config = self._setup.config
        with self._delivery() as delivery:
            _log.info("watching %s; state in %s", ", ".join(map(str, config.paths)), config.state_dir)
            self._announce(delivery)
            watchers = Watchers(config, store, delivery, self._clock, self._service)
            metrics.logs = watchers.logs
            metrics.lags = watchers.lags
            metrics.calibration = config.calibration
            metrics.daily = config.daily
            signals.interrupt(watchers.end)
            watchers.run()
            if signals.end:
                delivery.drain(_END_SECONDS)
            delivery.stop(_RELOAD_SECONDS if signals.reload else 0.0)

    def _open_store(self) -> Store:
        store = sound_store(self._state_dir, self._clock.now(), self._announcements.append)
        if group := self._setup.config.state_group:
            with ExitStack() as failed:
                failed.callback(store.close)
                share(self._state_dir, group)
                failed.pop_all()
            for obstacle in obstacles(self._state_dir, group):
                _log.warning("%s", obstacle)
        return store

    def _begin_anew(self, damage: StateDamaged) -> None:
        begin_anew(self._state_dir, self._clock.now(), damage, self._announcements.append)

    def _delivery(self) -> Delivery:
        config, sinks = self._setup
        return Delivery(self._state_dir, sinks, self._clock, config.link, config.budget, config.daily)

    def _announce(self, delivery: Delivery) -> None:
        delivery.announce_events(self._announcements)
        self._announcements.clear()

    def _reload(self) -> None:
        """Read the configuration again; if it cannot be used, log why and go on with the old one."""
        try:
            setup = self._load()
        except SentinelError as error:
            problems = str(error).splitlines()
        else:
            old = self._setup
            changed = [key for key in _FIXED_KEYS if getattr(setup.config, key) != getattr(old.config, key)]
            if not changed:
                _log.info("read the configuration again")
                self._setup = setup
                return
            problems = [f"`{key}` cannot change while the watch runs; restart it" for key in changed]
        for problem in problems:
            _log.error("keeping the old configuration: %s", problem)


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
            signal.signal(number, self._handle)

    def interrupt(self, interrupt: Callable[[], None]) -> None:
        """Call ``interrupt`` at each signal, and at once if a signal came before."""
        self._interrupt = interrupt
        if self.end or self.reload:
            interrupt()

    @property
    def end(self) -> bool:
        return self.ended.is_set()

    def _handle(self, number: int, _: object) -> None:
        closed = self._on_terminal and not sys.stderr.isatty()
        if number == signal.SIGHUP and not closed:
            self.reload = True
        else:
            self.ended.set()
        self._interrupt()
