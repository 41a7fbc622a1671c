"""Answers `/metrics` and `/healthz` over HTTP, in threads beside the watch."""

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import make_wsgi_app

from sentinel.errors import SentinelError, StateError
from sentinel.telemetry.address import Address
from sentinel.telemetry.metrics import Metrics

_REQUEST_SECONDS = 10.0

_Start = Callable[..., Any]
_App = Callable[[dict[str, Any], _Start], Iterable[bytes]]  # WSGI


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Handler(WSGIRequestHandler):
    timeout = _REQUEST_SECONDS  # a client that sends nothing must not hold a thread for ever

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name
        """Log nothing, because a scrape comes every few seconds."""


@contextmanager
def serving(address: Address, metrics: Metrics) -> Iterator[Address]:
    """Serve while the block runs. Gives the address, with the port that was chosen if it was 0.

    Raises SentinelError if the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    server_type = type("_Server", (_Server,), {"address_family": family})
    try:
        server = server_type((address.host, address.port), _Handler)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise SentinelError(
            f"cannot listen on {address}: {why}; name another address with --listen"
        ) from None
    server.set_app(_app(metrics))
    thread = threading.Thread(target=server.serve_forever, name="serve", daemon=True)
    thread.start()
    try:
        yield Address(address.host, server.server_port)
    finally:
        server.shutdown()
        server.server_close()


def _app(metrics: Metrics) -> _App:
    scraped: _App = make_wsgi_app(metrics)

    def app(environ: dict[str, Any], start: _Start) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/metrics":
            try:
                return scraped(environ, start)
            except StateError as error:
                return _plain(start, HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        if path == "/healthz":
            problems = metrics.problems()
            status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
            return _plain(start, status, "\n".join(problems) or "ok")
        return _plain(start, HTTPStatus.NOT_FOUND, "ask for /metrics or /healthz")

    return app


def _plain(start: _Start, status: HTTPStatus, text: str) -> list[bytes]:
    start(f"{status.value} {status.phrase}", [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{text}\n".encode()]
