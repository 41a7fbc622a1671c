"""One watcher for this machine and one for each address, so that a slow server delays no other run."""

import threading
from functools import partial
from pathlib import Path

from sentinel.catalogue import load
from sentinel.common.clock import Clock
from sentinel.config.file import Config
from sentinel.runs.log import RunLog
from sentinel.sinks.delivery import Delivery
from sentinel.storage.store import Store
from sentinel.watch.startup import when_available
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.watcher import Watcher

_END_SECONDS = 3.0  # how long `run` waits at its end for requests to servers; the next start reads the rest


class Watchers:
    """Watches ``config.paths``: the first part in the thread that calls `run`, each other part in its own.

    ``store`` belongs to that thread.
    """

    def __init__(
        self, config: Config, store: Store, delivery: Delivery, clock: Clock, service: ServiceManager
    ) -> None:
        local = [path for path in config.paths if isinstance(path, Path)]
        remote = [[path] for path in dict.fromkeys(config.paths) if not isinstance(path, Path)]
        path_groups = [local, *remote] if local else remote
        self._parts = [config.model_copy(update={"paths": paths}) for paths in path_groups]
        self._store = store
        self._delivery = delivery
        self._clock = clock
        self._service = service
        self._stop = threading.Event()
        self._watchers: list[Watcher] = []
        self._failures: list[Exception] = []

    def once(self) -> None:
        """Read everything that is there and commit it."""
        self._settle_outbox()
        for config in self._parts:
            Watcher(config, self._store, self._delivery, self._clock, self._service).once(self._stop)

    def run(self) -> None:
        """Watch until `end` is called or one part fails, whose error is raised."""
        load()  # which takes a moment that the first finding should not wait for
        when_available(self._begin_delivery, self._stop, self._service, self._delivery.announce)
        first, *others = self._parts
        service = self._service.without_systemd()  # a slow server must not starve the watchdog
        threads = [threading.Thread(target=self._watch, args=(part, service), daemon=True) for part in others]
        for thread in threads:
            thread.start()
        self._watch(first, self._service)
        deadline = self._clock.monotonic() + _END_SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - self._clock.monotonic()))
        if self._failures:
            raise self._failures[0]

    def _begin_delivery(self) -> None:
        self._service.health.begin()
        self._store.set_health(dict.fromkeys(self._store.health()))  # an earlier process's
        self._settle_outbox()

    def _settle_outbox(self) -> None:
        """Release what an earlier process deferred, and give up on what waits for sinks that are gone."""
        self._store.outbox.release_all(batch=f"left at {self._clock.now()}")
        names = [sink.name for sink in self._parts[0].sinks]
        self._store.outbox.give_up_on_others(names, self._clock.now())

    def logs(self) -> list[RunLog]:
        """Return the logs under watch. May be called from any thread."""
        return [log for watcher in tuple(self._watchers) for log in watcher.logs()]

    def lags(self) -> dict[str, float]:
        """Return how far runs lag, in seconds by run id. May be called from any thread."""
        return {run: lag for watcher in tuple(self._watchers) for run, lag in watcher.lags().items()}

    def end(self) -> None:
        """Make `run` end soon. May be called from a signal handler."""
        self._stop.set()
        for watcher in tuple(self._watchers):
            watcher.wake()

    def _watch(self, config: Config, service: ServiceManager) -> None:
        """Watch one part until its end, which ends the other parts as well."""
        try:
            store = when_available(
                partial(Store, config.state_dir), self._stop, service, self._delivery.announce
            )
            if store is None:
                return
            with store:
                watcher = Watcher(config, store, self._delivery, self._clock, service)
                self._watchers.append(watcher)
                watcher.run(self._stop)
        except Exception as error:  # noqa: BLE001  raised again where the process can end by it
            self._failures.append(error)
        finally:
            self.end()
