"""Pings an address while all is well, so that somebody notices when the watch does not run at all."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pydantic import Field

from sentinel.common.clock import Clock
from sentinel.sinks import http
from sentinel.sinks.base import SinkError
from sentinel.sinks.secrets import Addressed

_log = logging.getLogger(__name__)


class HeartbeatConfig(Addressed):
    """A service that reports when pings stop (a "dead man's switch")."""

    every_seconds: float = Field(60.0, ge=1, description="time between two pings")


@contextmanager
def beating(config: HeartbeatConfig, problems: Callable[[], list[str]], clock: Clock) -> Iterator[None]:
    """Ping in a thread of its own while the block runs and there are no ``problems``.

    Raises ConfigError if the address is missing.
    """
    address = config.address()
    stop = threading.Event()

    def ping() -> str:
        """Ping unless something is wrong. Return why the ping failed; empty if it did not."""
        if problems():
            return ""
        try:
            http.check(http.get(address, config.timeout_seconds, clock.now()))
        except SinkError as error:
            return str(error)
        return ""

    def beat() -> None:
        last = ""
        while not stop.wait(config.every_seconds):
            if (problem := ping()) and not last:
                _log.warning("heartbeat: %s; trying again at the next beat", problem)
            last = problem

    threading.Thread(target=beat, name="heartbeat", daemon=True).start()
    try:
        yield
    finally:
        stop.set()
