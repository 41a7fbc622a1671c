"""A real HTTP server on the loopback whose answers a test programs."""

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.patience import PATIENCE


@dataclass(frozen=True)
class Received:
    path: str
    headers: Message
    body: bytes


Answer = Callable[["_Handler", threading.Event], None]


def status(code: int, text: str = "ok", **headers: str) -> Answer:
    def answer(handler, released):
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text.encode())

    return answer


def hang(handler, released):
    released.wait()


def close(handler, released):
    handler.connection.close()


def garbage(handler, released):
    handler.wfile.write(b"\x00\xffnot HTTP at all\r\n\r\n")


def drip_head(handler, released):
    """Headers that never end, a byte at a time, each well within any timeout for one read."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Drip: ")
    while not released.wait(0.02):
        handler.wfile.write(b"x")


def drip_body(handler, released):
    """A 200 whose body never ends."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    while not released.wait(0.02):
        handler.wfile.write(b"x")


class Receiver:
    """Answers requests with ``answers`` in turn, then with ``default``; keeps what it ``received``."""

    def __init__(self) -> None:
        self.answers: deque[Answer] = deque()
        self.default: Answer = status(200)
        self.received: list[Received] = []
        self.changed = threading.Condition()
        self._released = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.receiver = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Until a request makes ``condition`` true."""
        with self.changed:
            assert self.changed.wait_for(condition, timeout=PATIENCE), f"received only {len(self.received)}"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def take(self, request: Received) -> tuple[Answer, threading.Event]:
        with self.changed:
            self.received.append(request)
            self.changed.notify_all()
            return (self.answers.popleft() if self.answers else self.default), self._released


class _Server(ThreadingHTTPServer):
    receiver: Receiver

    def handle_error(self, request, client_address):
        pass  # clients that give up are what the tests are about


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        if len(body := self.rfile.read(length)) < length:
            return  # the client was killed; no server takes such a request for one
        answer, released = self.server.receiver.take(Received(self.path, self.headers, body))
        with contextlib.suppress(ConnectionError):
            answer(self, released)
        self.close_connection = True

    do_GET = do_POST  # noqa: N815

    def log_message(self, *_):
        pass
