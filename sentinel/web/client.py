"""The connection of one client to the live page. Who asks nothing in time, or takes no answer, is let go."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from sentinel.telemetry.connections import Connections

_REQUEST_SECONDS = 10.0
"""How long the header and the body of a request may take, from the connection or the first byte on."""


_ANSWER_SECONDS = 10.0
"""How long a client may take nothing of an answer that waits for it."""


class Client(H11Protocol):
    """uvicorn's connection, as one of a bounded number. See `Connections`."""

    def __init__(self, connections: "Connections[Client]", **theirs: Any) -> None:
        super().__init__(**theirs)
        self.address = ""
        self._connections = connections
        self._late: asyncio.TimerHandle | None = None
        self._untaken: asyncio.TimerHandle | None = None

    @property
    def waits(self) -> bool:
        """Whether it is the client that has something to do: to complete a request, or to take an answer."""
        asks_nothing = self.cycle is None or self.cycle.more_body or self.cycle.response_complete
        return asks_nothing or self._untaken is not None

    def end(self) -> None:
        """Close the connection now."""
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, or end at once if there is no room."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._connections.add(self)
        self._expect()

    def data_received(self, received_bytes: bytes) -> None:
        """Take a part of a request."""
        super().data_received(received_bytes)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room."""
        self._connections.remove(self)
        self._stop_expecting()
        self._stop_waiting()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait until the client has taken what was sent, but not for long."""
        super().pause_writing()
        self._stop_waiting()
        self._untaken = self.loop.call_later(_ANSWER_SECONDS, self.end)

    def resume_writing(self) -> None:
        """Go on: the client took a part."""
        self._stop_waiting()
        super().resume_writing()

    def _expect(self) -> None:
        """End the connection unless the request is complete in time. Further bytes give no more time."""
        if not self.waits:
            self._stop_expecting()
        elif self._late is None:
            self._late = self.loop.call_later(_REQUEST_SECONDS, self.end)

    def _stop_expecting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _stop_waiting(self) -> None:
        if self._untaken is not None:
            self._untaken.cancel()
            self._untaken = None
