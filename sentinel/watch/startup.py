"""Waits for a state directory that cannot be used yet when a watch begins."""

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from sentinel.common.errors import StateUnavailable
from sentinel.watch.systemd import ServiceManager

_RETRY_SECONDS = 1.0  # between two tries

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


def when_available(
    open_state: Callable[[], _T],
    stop: threading.Event,
    service: ServiceManager,
    announce: Callable[[str | None], None] = lambda _: None,
) -> _T | None:
    """Return the result of ``open_state`` as soon as the state directory allows it; None where ``stop`` is
    set before that.

    ``announce`` is called with an error, and with None when that is over. Raises StateError where waiting is
    of no use.
    """
    announced = False
    never = threading.Event()
    while True:
        try:
            opened_state = open_state()
        except StateUnavailable as error:
            if not announced:
                _log.error("nothing is read until the state can be recorded: %s", error)
                announce(str(error))
            if stop.is_set():
                return None
            announced = True
            service.ready()  # a service manager would end what takes long to begin
            service.alive(f"reads nothing: {error}")
            never.wait(_RETRY_SECONDS)  # a signal handler that sets `stop` must not meet a wait for it
        else:
            announce(None)
            return opened_state
