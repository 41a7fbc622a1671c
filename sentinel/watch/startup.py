"""Waits for a state directory that cannot be used yet when a watch begins."""

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from sentinel.common.errors import StateUnavailable
from sentinel.watch.systemd import ServiceManager

_AGAIN_SECONDS = 1.0

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


def when_available(
    work: Callable[[], _T],
    stop: threading.Event,
    service: ServiceManager,
    announce: Callable[[str | None], None] = lambda _: None,
) -> _T | None:
    """Return what the work gives as soon as the state directory allows it; None where ``stop`` is set before
    that.

    ``announce`` hears of an error, and with None that it is over. Raises StateError where waiting is of no
    use.
    """
    said = False
    never = threading.Event()
    while True:
        try:
            done = work()
        except StateUnavailable as error:
            if not said:
                _log.error("nothing is read until the state can be recorded: %s", error)
                announce(str(error))
            if stop.is_set():
                return None
            said = True
            service.ready()  # a service manager would end what takes long to begin
            service.alive(f"reads nothing: {error}")
            never.wait(_AGAIN_SECONDS)  # a signal handler that sets `stop` must not meet a wait for it
        else:
            announce(None)
            return done
