"""Bounds the connections of a server, so that no client keeps the others out."""

import threading
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

MAX_PER_ADDRESS = 64  # connections; a page takes one, and a proxy has one address for all its clients
MAX_CONNECTIONS = 256  # of all addresses


class Connection(Protocol):
    """A connection that was accepted."""

    address: str

    @property
    def waits(self) -> bool:
        """Whether its request is not complete."""

    def end(self) -> None:
        """Close it. Any thread may call this."""


_C = TypeVar("_C", bound=Connection)


class Connections(Generic[_C]):
    """The open connections: at most 64 of an address and 256 in all.

    One more ends the one that has waited longest for its request, and is refused if none waits. So clients
    that send no request keep nobody out.
    """

    def __init__(self) -> None:
        self._open: dict[_C, None] = {}  # the oldest first
        self._lock = threading.Lock()

    def add(self, new: _C) -> bool:
        """Add a connection. Return False if it was refused and ended."""
        with self._lock:
            crowd = [connection for connection in self._open if connection.address == new.address]
            if len(crowd) < MAX_PER_ADDRESS:
                crowd = [*self._open] if len(self._open) >= MAX_CONNECTIONS else []
            surplus = next((connection for connection in crowd if connection.waits), new) if crowd else None
            if surplus is not new:
                self._open[new] = None
            if surplus is not None:
                self._open.pop(surplus, None)
                surplus.end()
        return surplus is not new

    def remove(self, connection: _C) -> None:
        """Forget a connection that was closed."""
        with self._lock:
            self._open.pop(connection, None)

    def __iter__(self) -> Iterator[_C]:
        with self._lock:
            return iter([*self._open])
