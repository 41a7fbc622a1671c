"""A live page on loopback, over a state that a watch left."""

import asyncio
import json
import math
import socket
import threading
from contextlib import contextmanager
from functools import partial

import httpx
import pytest
import uvicorn
from typer.testing import CliRunner

from sentinel.cli.app import program
from sentinel.config.file import Config
from sentinel.telemetry.connections import Connections
from sentinel.web.app import LivePage
from sentinel.web.client import Client
from tests.manual_clock import ManualClock
from tests.patience import PATIENCE

TOKEN = "a token of the tests"


@pytest.fixture
def runs(tmp_path):
    """A directory with a run whose loss becomes NaN at step 100, and one that is well."""
    log(tmp_path / "runs" / "sick", range(100))
    log(tmp_path / "runs" / "sick", range(100, 200), loss=math.nan)
    log(tmp_path / "runs" / "well", range(200))
    return tmp_path / "runs"


def log(run, steps, loss=0.0, begin=None):
    """Append rows to the log of a run, a second apart from ``begin`` on (seconds since the epoch)."""
    run.mkdir(parents=True, exist_ok=True)
    rows = [{"step": i, "train/loss": loss + 5 / (i + 9), "train/grad_norm": 1 + i % 3} for i in steps]
    rows = [row if begin is None else {**row, "timestamp": begin + row["step"]} for row in rows]
    with open(run / "metrics.jsonl", "a") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)


@pytest.fixture
def watch(tmp_path):
    """Call to let a watch read everything that is there, or one run into a state of that name."""

    def once(run="", state="state"):
        words = ["watch", str(tmp_path / "runs" / run), "--once", "--state-dir", str(tmp_path / state)]
        assert CliRunner().invoke(program(), words).exit_code == 0

    return once


async def served(server, bound):
    """Serve until the server is to exit, and leave no connection open: a browser keeps one for later."""
    await server.serve(sockets=[bound])
    for connection in server.server_state.connections:
        connection.transport.abort()
    await asyncio.sleep(0)  # the transports close on the loop's next turn


@contextmanager
def serving(*states, now=0.0):
    """The live page over these states while the block runs: a client without the token, and its clock."""
    clock = ManualClock(now)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
        page = LivePage(Config(poll_seconds=0.02), states, clock).app(TOKEN, port)
        client = partial(Client, Connections())
        options = uvicorn.Config(page, http=client, log_level="warning", timeout_graceful_shutdown=1)
        server = uvicorn.Server(options)
        thread = threading.Thread(target=asyncio.run, args=[served(server, bound)])
        thread.start()
        try:
            # Certificates take 50 ms to load, and none is asked for.
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE, verify=False) as client:
                client.get("/")  # is answered once the page has looked at the state
                yield client, clock
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            assert not thread.is_alive()


@pytest.fixture
def client(runs, watch, tmp_path):
    """A client that has the token."""
    watch()
    with serving(tmp_path / "state") as (client, _):
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        yield client
