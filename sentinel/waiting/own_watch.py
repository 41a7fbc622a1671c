"""A watch of one's own, for runs that no other watch follows. It sends nothing and forgets its state."""

import logging
import tempfile
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from sentinel.common.clock import Clock
from sentinel.config.file import Config
from sentinel.sinks.delivery import Delivery
from sentinel.sources.location import Location
from sentinel.storage.store import Store
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.watchers import Watchers

_END_SECONDS = 10.0  # how long the end waits for the watch

_log = logging.getLogger(__name__)


class OwnWatch:
    """Watches the paths in a thread until it is closed. ``state`` is its state directory.

    ``is_read`` is set once everything that lay there at the beginning was read. ``failure`` says why the
    watch ended, and is empty while it goes on.
    """

    def __init__(self, config: Config, paths: Sequence[Location], clock: Clock) -> None:
        self.is_read = threading.Event()
        self.failure = ""
        self._ends = threading.Event()
        self._clock = clock
        self._stack = ExitStack()
        directory = tempfile.TemporaryDirectory(prefix="sentinel-wait-", ignore_cleanup_errors=True)
        self.state = Path(self._stack.enter_context(directory)) / "state"
        settings = {"paths": [*paths], "state_dir": self.state, "sinks": [], "calibration": None}
        self._config = config.model_copy(update=settings)
        self._watchers: Watchers | None = None
        self._thread = threading.Thread(target=self._work, name="sentinel-wait", daemon=True)

    def __enter__(self) -> Self:
        Store(self.state).close()  # so that it can be read from now on
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        if self._watchers is not None:
            self._watchers.end()
        self._thread.join(_END_SECONDS)
        self._stack.close()

    def _work(self) -> None:
        try:
            with Store(self.state) as store, Delivery(self.state, [], self._clock) as delivery:
                service = ServiceManager(notifies=False)
                Watchers(self._config, store, delivery, self._clock, service).once()
                self.is_read.set()
                self._watchers = Watchers(self._config, store, delivery, self._clock, service)
                if not self._ends.is_set():
                    self._watchers.run()
        except Exception as error:  # noqa: BLE001  told to who waits
            self.failure = f"{type(error).__name__}: {error}"
            _log.debug("the watch ended", exc_info=error)
