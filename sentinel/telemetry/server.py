"""Answers `/metrics` and `/healthz` over HTTP, in threads beside the watch."""

import logging
import math
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import make_wsgi_app

from sentinel.common.address import Address
from sentinel.common.clock import Clock
from sentinel.common.errors import SentinelError, StateError
from sentinel.telemetry.connections import Connections
from sentinel.telemetry.metrics import Metrics

_MAX_IDLE_SECONDS = 10.0  # for which a client may send or take nothing
_MAX_REQUEST_SECONDS = 30.0  # for a request and its answer
_ERROR_SECONDS = 60.0  # between two errors in the log

_Start = Callable[..., Any]
_App = Callable[[dict[str, Any], _Start], Iterable[bytes]]  # WSGI

_log = logging.getLogger(__name__)


class _OpenConnection:
    """One client, whom a thread answers. ``started_at`` is in time awake."""

    def __init__(self, client: socket.socket, address: str, started_at: float) -> None:
        self.address = address
        self.waits = True
        self.started_at = started_at
        self._client = client

    def end(self) -> None:
        """Let the thread see the end of its input."""
        with suppress(OSError):
            self._client.shutdown(socket.SHUT_RDWR)


class _MetricsServer(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 64  # clients that wait to be accepted; one more waits for a second and asks again
    clock: Clock

    def __init__(self, address: tuple[str, int], handler: type[WSGIRequestHandler]) -> None:
        super().__init__(address, handler)
        self.by_client: dict[Any, _OpenConnection] = {}
        self._connections = Connections[_OpenConnection]()
        self._logged_at = -math.inf  # time awake of the last error

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Return whether there is room for the client."""
        connection = _OpenConnection(request, client_address[0], self.clock.monotonic())
        self.by_client[request] = connection
        return self._connections.add(connection)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self._connections.remove(self.by_client.pop(request))
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End what takes too long. Called twice a second, and after each connection."""
        oldest = self.clock.monotonic() - _MAX_REQUEST_SECONDS
        for connection in self._connections:
            if connection.started_at < oldest:
                connection.end()

    def handle_error(self, *_: object) -> None:
        """Log an error of this program. A broken connection is not one: the client ended it."""
        if not isinstance(sys.exc_info()[1], OSError):
            self.log_error()

    def log_error(self) -> None:
        """Log the present error, once a minute at most."""
        awake = self.clock.monotonic()
        if awake - self._logged_at >= _ERROR_SECONDS:
            self._logged_at = awake
            _log.exception("a request could not be answered")


class _MetricsHandler(WSGIRequestHandler):
    timeout = _MAX_IDLE_SECONDS
    server: _MetricsServer

    def parse_request(self) -> bool:
        """Read the header, after which the client waits for us."""
        is_valid = super().parse_request()
        self.server.by_client[self.connection].waits = False
        return is_valid

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name
        """Log nothing, because a scrape comes every few seconds."""


@contextmanager
def serving(address: Address, metrics: Metrics, clock: Clock) -> Iterator[Address]:
    """Serve while the block runs. Yields the address, with the port that was chosen if it was 0.

    Raises SentinelError if the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    server_type = type("_MetricsServer", (_MetricsServer,), {"address_family": family, "clock": clock})
    try:
        server = server_type((address.host, address.port), _MetricsHandler)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise SentinelError(
            f"cannot listen on {address}: {why}; name another address with --listen"
        ) from None
    server.set_app(_app(metrics, server.log_error))
    thread = threading.Thread(target=server.serve_forever, name="serve", daemon=True)
    thread.start()
    try:
        yield Address(address.host, server.server_port)
    finally:
        server.shutdown()
        server.server_close()


def _app(metrics: Metrics, log_error: Callable[[], None]) -> _App:
    scrape: _App = make_wsgi_app(metrics)

    def answer(environ: dict[str, Any], start: _Start) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/metrics":
            return scrape(environ, start)
        if path == "/healthz":
            problems = metrics.problems()
            status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
            return _plain_response(start, status, "\n".join(problems) or "ok")
        return _plain_response(start, HTTPStatus.NOT_FOUND, "ask for /metrics or /healthz")

    def app(environ: dict[str, Any], start: _Start) -> Iterable[bytes]:
        try:
            return answer(environ, start)
        except StateError as error:
            return _plain_response(start, HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except Exception:  # noqa: BLE001  wsgiref would print each traceback
            log_error()
            return _plain_response(start, HTTPStatus.INTERNAL_SERVER_ERROR, "the watch logged why")

    return app


def _plain_response(start: _Start, status: HTTPStatus, text: str) -> list[bytes]:
    start(f"{status.value} {status.phrase}", [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{text}\n".encode()]
