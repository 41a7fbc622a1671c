"""`sentinel serve` as a process of its own, and what it refuses."""

import signal
import socket
import subprocess
import sys

import httpx
import pytest

from sentinel.storage.store import Store
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow


@pytest.fixture
def state(tmp_path):
    Store(tmp_path / "state").close()
    return tmp_path / "state"


@pytest.mark.long  # a process of its own
def test_it_prints_a_link_and_ends_when_told_though_a_page_is_open(state):
    command = [sys.executable, "-m", "sentinel", "serve", "--state-dir", state, "--listen", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        link = process.stdout.readline().strip()
        with httpx.Client(follow_redirects=True, timeout=PATIENCE) as client:
            assert client.get(link.partition("?")[0]).status_code == 401
            assert "No open incident" in client.get(link).text
            with client.stream("GET", f"{link.partition('?')[0]}events") as answer:
                next(answer.iter_lines())
                process.send_signal(signal.SIGTERM)
                _, complaints = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in complaints


def test_others_may_reach_it_only_with_a_token_that_was_chosen(sentinel, state):
    ran = sentinel("serve", "--state-dir", state, "--listen", "0.0.0.0:0")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == ("sentinel: others can reach 0.0.0.0:0: set $SENTINEL_TOKEN or name a --token-file\n")


def test_a_token_that_can_be_guessed_is_refused(sentinel, state, tmp_path, monkeypatch):
    (tmp_path / "token").write_text("short\n")
    ran = sentinel("serve", "--state-dir", state, "--token-file", tmp_path / "token")
    assert ran.err == "sentinel: the token needs at least 16 characters\n"
    monkeypatch.setenv("SENTINEL_TOKEN", "short")
    assert sentinel("serve", "--state-dir", state).err == ran.err
    assert "cannot be read as a token" in sentinel("serve", "--state-dir", state, "--token-file", state).err


def test_what_it_needs_is_said_at_once(sentinel, tmp_path, state):
    assert "nothing was watched" in sentinel("serve", "--state-dir", tmp_path / "none").err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = sentinel("serve", "--state-dir", state, "--listen", taken.getsockname()[1])
    assert ran.err.startswith("sentinel: cannot listen on 127.0.0.1:")
    assert "Address already in use" in ran.err
