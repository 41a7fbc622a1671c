"""Who may use the live page."""

import select
import socket
import time
from contextlib import ExitStack, suppress
from urllib.parse import quote

import httpx
import pytest

from sentinel.storage.store import Store
from sentinel.telemetry.connections import MAX_PER_ADDRESS
from sentinel.web import client as connection
from tests.patience import PATIENCE
from tests.web.conftest import TOKEN, serving


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Where a page without runs is served."""
    state = tmp_path_factory.mktemp("state")
    Store(state).close()
    with serving(state) as (client, _):
        yield client.base_url


@pytest.fixture
def served(address):
    """A client that nobody knows yet."""
    with httpx.Client(base_url=address, timeout=PATIENCE, verify=False) as client:
        yield client


@pytest.fixture
def client(served):
    """A client that has the token."""
    served.headers["Authorization"] = f"Bearer {TOKEN}"
    return served


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/", "/events", "/runs/00", "/runs/00/events", "/assets/page.js", "/no"])
def test_nothing_is_shown_without_the_token(served, path):
    answer = served.get(path)
    assert answer.status_code == 401


def test_nothing_is_done_without_the_token(served):
    own = {"Origin": str(served.base_url)}
    for path in ("/runs/00/silence", "/incidents/00/acknowledge", "/silences/00/end"):
        assert served.post(path, headers=own).status_code == 401


@pytest.mark.slow
def test_a_link_with_the_token_is_followed_once_and_leaves_no_token_behind(served):
    answer = served.get("/runs/00", params={"token": TOKEN, "since": "3"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs/00?since=3")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert TOKEN not in answer.headers["set-cookie"]
    assert served.get("/").status_code == 200


@pytest.mark.slow
def test_the_token_can_be_entered(served):
    own = {"Origin": str(served.base_url)}
    assert served.post("/enter", data={"token": "another token"}, headers=own).status_code == 403
    assert served.get("/").status_code == 401
    assert served.post("/enter", data={"token": TOKEN}, headers=own).status_code == 303
    assert served.get("/").status_code == 200


@pytest.mark.parametrize("token", ["x", TOKEN + "x", TOKEN[:-1], "\u00e9" * 20])
def test_another_token_is_refused(served, token):
    assert served.get("/", params={"token": token}).status_code == 403
    cookie = f"sentinel-{served.base_url.port}={TOKEN}"
    assert served.get("/", headers={"Cookie": cookie}).status_code == 401, "the cookie is not the token"


def test_a_link_leads_to_no_other_machine(served):
    there = served.base_url.copy_with(raw_path=f"//elsewhere.example/?token={quote(TOKEN)}".encode())
    assert served.get(there).headers["location"] == "/elsewhere.example/"


@pytest.mark.parametrize("host", ["elsewhere.example", "localhost.elsewhere.example", "", "a b", "[::1"])
def test_a_foreign_name_is_refused(client, host):
    """A page may bind its own name to this address and then read what a browser gets from it."""
    assert client.get("/", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("host", ["localhost:1", "10.0.0.7:8470", "[::1]:8470"])
def test_an_address_is_as_good_as_a_name_of_this_machine(client, host):
    assert client.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    "from_", [{"Origin": "http://127.0.0.1:1"}, {"Origin": "null"}, {}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_a_form_on_another_page_does_nothing(served, from_):
    served.get("/", params={"token": TOKEN})
    assert served.post("/silences/00/end", headers=from_).status_code == 403


def test_only_what_a_browser_asks_for_is_answered(client):
    assert client.delete("/").status_code == 405


def test_a_page_may_load_nothing_from_elsewhere_and_stand_in_no_other_page(client):
    for path in ("/", "/no"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.slow
def test_clients_that_ask_nothing_keep_nobody_out(client, caplog):
    where = client.base_url.host, client.base_url.port
    with ExitStack() as held:
        half_open = [held.enter_context(socket.create_connection(where)) for _ in range(300)]
        half_open[-1].send(b"GET / HTTP/1.1\r\n")
        assert client.get("/").status_code == 200
        half_open[0].settimeout(PATIENCE)
        with suppress(ConnectionResetError):
            assert half_open[0].recv(1) == b"", "the oldest was ended"
    assert not caplog.records


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["", "GET / HTTP/1.1\nHost: x", "POST /enter HTTP/1.1\nHost: x\nContent-Length: 9\n\nt"]
)
def test_a_request_that_does_not_end_is_ended(client, part, monkeypatch):
    monkeypatch.setattr(connection, "_REQUEST_SECONDS", 0.1)
    with socket.create_connection((client.base_url.host, client.base_url.port)) as slow:
        slow.settimeout(PATIENCE)
        slow.send(part.replace("\n", "\r\n").encode())
        with suppress(ConnectionResetError):
            while slow.recv(1 << 16):
                pass
    assert client.get("/").status_code == 200


def first_answer(client):
    """The answer to a client that comes again while those before it do not wait yet."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return client.get("/")
        except httpx.TransportError:
            if time.monotonic() > until:
                raise


def ask_and_take_nothing(where):
    """A connection that sends requests until nothing more is taken, and reads no answer."""
    asking = socket.create_connection(where)
    asking.setblocking(False)
    with suppress(BlockingIOError, ConnectionError):
        for _ in range(200):
            asking.sendall(b"GET /runs/none HTTP/1.1\r\nHost: localhost\r\n\r\n" * 400)
    return asking


@pytest.mark.long
def test_clients_that_take_no_answer_keep_nobody_out(client):
    where = client.base_url.host, client.base_url.port
    with ExitStack() as held:
        asking = [held.enter_context(ask_and_take_nothing(where)) for _ in range(MAX_PER_ADDRESS)]
        assert first_answer(client).status_code == 200
    assert len(asking) == MAX_PER_ADDRESS


@pytest.mark.long
def test_an_answer_that_is_not_taken_is_ended(client, monkeypatch):
    monkeypatch.setattr(connection, "_ANSWER_SECONDS", 0.1)
    with ask_and_take_nothing((client.base_url.host, client.base_url.port)) as asking:
        poll = select.poll()
        poll.register(asking, select.POLLHUP | select.POLLERR)
        assert poll.poll(PATIENCE * 1000), "the server ended the connection"
