"""Sends one request, and decides for all HTTP sinks what its outcome means.

A 2xx status means delivered. 408, 425, 429 and 5xx are transient, and so is everything that fails before
there is a status: names, connections, TLS, timeouts. Every other status is permanent. That includes a
redirect, because following it would send the address's token and the body somewhere else.

The proxies and certificates of the environment apply (``HTTPS_PROXY``, ``NO_PROXY``, ``SSL_CERT_FILE``), but
a loopback address is never reached through a proxy. Proxy settings that cannot be used are transient: after
they are corrected and sentinel is restarted, the waiting notifications are sent.
"""

import contextlib
import ipaddress
import logging
import math
import os
import socket
import ssl
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pydantic import SecretBytes, SecretStr

from sentinel.sinks.base import Permanent, Transient

if TYPE_CHECKING:
    import httpx

_MAX_TEXT_BYTES = 1 << 16  # of the body of an answer
_TRANSIENT_STATUSES = frozenset({408, 425, 429})  # as those from 500 on
_PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")  # also in lower case

# At its usual level this logger writes the address of every request.
logging.getLogger("httpx").setLevel(logging.WARNING)


Body = bytes | SecretBytes
Headers = Mapping[str, str | SecretStr]
"""A header that holds a secret is a `SecretStr`, so that no traceback shows it."""


@dataclass(frozen=True)
class Answer:
    """The receiver's answer: the status, the beginning of the body, and the pause that it asked for."""

    status: int
    text: str = field(repr=False)  # may echo the address
    retry_after_seconds: float | None


def post(url: SecretStr, body: Body, headers: Headers, timeout_seconds: float, now: float) -> Answer:
    """Post JSON and wait for the answer, at most ``timeout_seconds`` in total.

    Raises Transient if no answer came. The error has no cause and no context, because the library's errors
    hold the request.
    """
    json = {"Content-Type": "application/json", **headers}
    return _answer_of(_attempt("POST", url, body, json, timeout_seconds, now))


def get(url: SecretStr, timeout_seconds: float, now: float) -> Answer:
    """Get an address and wait for the answer, as `post` does."""
    return _answer_of(_attempt("GET", url, b"", {}, timeout_seconds, now))


def _answer_of(attempt: Coroutine[Any, Any, Answer | str]) -> Answer:
    import asyncio  # slow to import, and most commands send nothing

    outcome = asyncio.run(attempt)
    if isinstance(outcome, str):
        raise Transient(outcome)
    return outcome


def check(answer: Answer) -> None:
    """Raise Transient or Permanent unless the answer says that the notification arrived."""
    if 200 <= answer.status < 300:
        return
    if is_passing(answer.status):
        raise Transient(f"the receiver answered {answer.status}", answer.retry_after_seconds)
    if 300 <= answer.status < 400:
        raise Permanent(f"the receiver answered {answer.status}, a redirect: configure the final address")
    raise Permanent(f"the receiver answered {answer.status}")


def is_passing(status: int) -> bool:
    """Return whether a retry can help against this status."""
    return status in _TRANSIENT_STATUSES or status >= HTTPStatus.INTERNAL_SERVER_ERROR


async def _attempt(
    method: str, url: SecretStr, body: Body, headers: Headers, timeout_seconds: float, now: float
) -> Answer | str:
    import asyncio

    import httpx

    client_or_error = _client(url, timeout_seconds)
    if isinstance(client_or_error, str):
        return client_or_error
    # What the first try of a process prepares is not the receiver's time. httpx's own timeouts are for each
    # read; a receiver that drips would never exceed them.
    deadline = asyncio.get_running_loop().time() + timeout_seconds
    try:
        async with client_or_error as client:
            request = client.build_request(
                method,
                url.get_secret_value(),
                content=_reveal(body),
                headers={"Accept-Encoding": "identity"} | {k: _reveal(v) for k, v in headers.items()},
            )
            async with asyncio.timeout_at(deadline):
                response = await client.send(request, stream=True)
            text = await _beginning(response, deadline)
    except TimeoutError:
        return f"no answer within {timeout_seconds:g} s"
    except (httpx.HTTPError, OSError) as error:
        return _reason(error)
    retry_after = _retry_after(response.headers.get("Retry-After", ""), now)
    return Answer(response.status_code, text.decode("utf-8", "replace"), retry_after)


def _reveal(value: Any) -> Any:
    return value.get_secret_value() if isinstance(value, SecretStr | SecretBytes) else value


async def _beginning(response: "httpx.Response", deadline: float) -> bytes:
    import asyncio

    import httpx

    text = b""
    # The status has decided already: a body that breaks off must not cause a second send.
    with contextlib.suppress(httpx.HTTPError, TimeoutError):
        async with asyncio.timeout_at(deadline):
            async for part in response.aiter_raw():
                text += part
                if len(text) >= _MAX_TEXT_BYTES:
                    break
    return text[:_MAX_TEXT_BYTES]


def _client(url: SecretStr, timeout_seconds: float) -> "httpx.AsyncClient | str":
    """Return a client with the settings of the environment, or why these settings cannot be used."""
    import httpx

    address = httpx.URL(url.get_secret_value())
    may_use_proxy = not _is_loopback(address.host)
    try:
        trust = _trust() if may_use_proxy or address.scheme == "https" else False  # else nothing is to trust
    except OSError as error:
        reason = error.reason if isinstance(error, ssl.SSLError) else error.strerror
        return f"the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be used ({reason})"
    try:
        return httpx.AsyncClient(verify=trust, timeout=timeout_seconds, trust_env=may_use_proxy)
    except ImportError:
        why = "a SOCKS proxy needs the package `socksio`"
    except (ValueError, httpx.InvalidURL):  # whose texts may hold the proxy's password
        why = "not the address of an HTTP or SOCKS proxy, or not a list of hosts"
    names = [name for name in _PROXY_VARIABLES if os.environ.get(name) or os.environ.get(name.lower())]
    return f"the proxy settings of the environment ({', '.join(names)}) cannot be used: {why}"


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host.rstrip(".") == "localhost" or host.rstrip(".").endswith(".localhost")


@cache
def _trust() -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context()


def _reason(error: BaseException) -> str:
    """Return why there was no answer, in our own words: the library's messages name hosts and proxies."""
    import httpx

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return f"no TLS connection ({cause.reason or 'handshake failed'})"
        if isinstance(cause, socket.gaierror):
            return "the receiver's host name could not be resolved"
        if isinstance(cause, ConnectionRefusedError):
            return "the receiver refused the connection"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx.ConnectError):
        return "the receiver could not be reached"
    return "the connection broke off before there was an answer"


def _retry_after(value: str, now: float) -> float | None:
    """Return seconds from now, from either form of the header; None if the header is missing or invalid."""
    try:
        seconds = float(value) if value.strip().isdigit() else parsedate_to_datetime(value).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
