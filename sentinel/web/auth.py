"""Who may use the live page: whoever holds the token, from a page of ours, under a name of this machine.

Every request needs the token, also on this machine, because all users of a machine share its loopback. A
browser gets a cookie for it. `Host` must be an address or a name of this machine, since a foreign name may
have been bound to this address (DNS rebinding). A form must come from a page of the same origin.
"""

import hmac
import ipaddress
import socket
from collections.abc import Mapping
from hashlib import blake2b
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MIN_CHARACTERS = 16
"""Of a token that a person chooses."""

_CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_FIXED_HEADERS = {
    "Content-Security-Policy": _CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_COOKIE_SECONDS = 30 * 86400
_MAX_FORM_BYTES = 4096
_ENTRANCE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>sentinel</title>
<h1>sentinel</h1><p>Open the link that <code>sentinel serve</code> printed, or enter the token.</p>
<form method="post" action="/enter"><label>Token <input type="password" name="token" required
autocomplete="current-password"></label> <button>Enter</button></form></html>"""


class Access(msgspec.Struct, frozen=True):
    """Middleware that lets only the holder of ``token`` reach ``app``.

    ``port`` names the cookie, because browsers send a cookie to all ports of a machine.
    """

    app: ASGIApp
    token: str
    port: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_FIXED_HEADERS)
            await send(message)

        refusal = self._refusal(scope) or await self._entrance(scope, receive)
        await (refusal or self.app)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that comes by a wrong name or from a foreign page."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not _is_ours(host):
            return _plain_response(
                HTTPStatus.BAD_REQUEST, "this machine has no such name; ask for its address"
            )
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return _plain_response(HTTPStatus.METHOD_NOT_ALLOWED, "ask with GET or POST")
        if scope["method"] == "POST" and not _is_from_us(headers, host):
            return _plain_response(HTTPStatus.FORBIDDEN, "the form stands on a page of another origin")
        return None

    async def _entrance(self, scope: Scope, receive: Receive) -> Response | None:
        """Return the answer to a request without the token, or that brings it; None to one that has it."""
        headers = Headers(scope=scope)
        path = scope["path"]
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        if scope["method"] == "GET" and "token" in query:
            offered = query.pop("token")
            return self._entered(offered, f"{path}{'?' if query else ''}{urlencode(query)}")
        if scope["method"] == "POST" and path == "/enter":
            return self._entered((await form(receive)).get("token", ""), "/")
        if self._is(headers.get("authorization", "").removeprefix("Bearer "), self.token):
            return None
        if self._is(_cookies(headers).get(self._cookie_name, ""), self._cookie):
            return None
        return HTMLResponse(_ENTRANCE, HTTPStatus.UNAUTHORIZED)

    def _entered(self, offered: str, target: str) -> Response:
        if not self._is(offered, self.token):
            return HTMLResponse(_ENTRANCE, HTTPStatus.FORBIDDEN)
        # A path that begins with two slashes would lead to another machine.
        answer = RedirectResponse(f"/{target.lstrip('/')}", HTTPStatus.SEE_OTHER)
        answer.set_cookie(
            self._cookie_name, self._cookie, max_age=_COOKIE_SECONDS, httponly=True, samesite="lax"
        )
        return answer

    @property
    def _cookie_name(self) -> str:
        return f"sentinel-{self.port}"

    @property
    def _cookie(self) -> str:
        """What a browser keeps in place of the token."""
        return blake2b(self.token.encode(), person=b"sentinel-cookie", digest_size=32).hexdigest()

    @staticmethod
    def _is(offered: str, right: str) -> bool:
        return hmac.compare_digest(offered.encode("utf-8", "replace"), right.encode())


async def form(receive: Receive) -> dict[str, str]:
    """Return the fields of a form. Of a body that is too large nothing counts."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > _MAX_FORM_BYTES or message["type"] == "http.disconnect":
            return {}
        if not message.get("more_body"):
            return dict(parse_qsl(body.decode("utf-8", "replace")))


def _cookies(headers: Mapping[str, str]) -> dict[str, str]:
    try:
        return {name: cookie.value for name, cookie in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}


def _is_ours(host: str) -> bool:
    """Return whether a Host header is an address, or a name that this machine has."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        host_name = socket.gethostname().casefold()
        return name.casefold() in {"localhost", host_name, host_name.partition(".")[0]}
    return True


def _is_from_us(headers: Mapping[str, str], host: str) -> bool:
    """Return whether a POST comes from a page of ours, or from no page at all."""
    if "authorization" in headers:
        return True
    if (site := headers.get("sec-fetch-site")) is not None:
        return site == "same-origin"
    return urlsplit(headers.get("origin", "")).netloc == host


def _plain_response(status: HTTPStatus, error_text: str) -> Response:
    return PlainTextResponse(f"{error_text}\n", status)
