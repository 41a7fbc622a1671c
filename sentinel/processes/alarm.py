"""Wakes a watch when one of the processes that it follows ends, from a thread that waits in the kernel."""

import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self


class Alarm:
    """Calls ``ring`` within milliseconds of the end of a process, until its `with` block ends."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._epoll = select.epoll()
        self._stop = os.eventfd(0)
        self._epoll.register(self._stop, select.EPOLLIN)
        self._thread = threading.Thread(target=self._wait_for_exits, daemon=True)
        self._thread.start()

    def set(self, descriptor: int) -> None:
        """Ring once when a process ends, by its pidfd; one that is closed is forgotten."""
        with suppress(FileExistsError):
            self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLONESHOT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.eventfd_write(self._stop, 1)
        self._thread.join()
        self._epoll.close()
        os.close(self._stop)

    def _wait_for_exits(self) -> None:
        while not any(descriptor == self._stop for descriptor, _ in self._epoll.poll()):
            self._ring()
