"""What the W&B client is asked, and what becomes of it when the server, the key or its process fails."""

import inspect
import mmap
import os
from pathlib import Path

import pytest
import wandb

from sentinel.cli.app import main
from sentinel.sources.discovery import discover, location
from sentinel.sources.readers import retry
from sentinel.sources.wandb import server as wandb_server
from tests.sources.reader import Reader
from tests.sources.wandb.backend import KEY, PROJECT, StoredRun, history, losses

pytestmark = pytest.mark.slow


def test_a_server_is_not_asked_twice_in_a_quarter_of_a_minute(backend, live):
    backend.asked.clear()
    for _ in range(5):
        live.clock.advance(-14)
        live.poll()
    assert backend.names() == []
    assert not live.read_issues


@pytest.mark.parametrize(
    ("failure", "headers", "reason"),
    [
        (429, {"Retry-After": "1"}, "fewer requests"),
        (500, {}, "answered 500"),
        ("close", {}, "no answer"),
        (403, {}, "does not let this key"),
    ],
)
def test_an_outage_is_said_once_and_waited_for(backend, live, failure, headers, reason):
    backend.failure = failure
    backend.headers = headers
    backend.runs["r1"].rows += history(10, 12)
    (complaint,) = live.poll().read_issues
    assert complaint.startswith("wandb://team/project/r1: cannot be read (")
    assert reason in complaint
    assert KEY not in complaint
    backend.asked.clear()
    for _ in range(2):
        live.clock.advance(-8)
        assert live.poll().points == losses(0, 10)
    assert not backend.asked
    backend.failure = None
    live.clock.advance(60)
    assert live.poll().points == losses(0, 12)
    assert live.read_issues == [complaint]
    backend.failure = 403
    assert len(live.poll().read_issues) == 2


def test_a_server_that_bids_to_wait_for_long_holds_nothing_up(backend, live, monkeypatch):
    monkeypatch.setattr(retry, "_ANSWER_SECONDS", 0.2)
    backend.failure = 429
    backend.headers = {"Retry-After": "3600"}
    live.poll()
    backend.asked.clear()
    assert len(live.poll().read_issues) == 1
    assert not backend.asked


def test_one_run_that_cannot_be_read_does_not_stop_the_others(backend, clock, monkeypatch):
    backend.runs = {"bad": StoredRun(rows=history(0, 3)), "good": StoredRun(rows=history(0, 3))}
    page = backend.answers["HistoryPage"]
    monkeypatch.setitem(
        backend.answers, "HistoryPage", lambda run, name, v: None if name == "bad" else page(run, name, v)
    )
    reader = Reader(PROJECT, clock).poll()
    assert [complaint.partition(": ")[0] for complaint in reader.read_issues] == [f"{PROJECT}/bad"]
    assert reader.points == losses(0, 3)


@pytest.mark.filterwarnings("ignore:Exception in thread wandb-ServiceFinalizer")  # it has nobody to tell
def test_a_client_whose_process_died_begins_anew(backend, live):
    process = wandb.setup()._connection._proc._process
    process.kill()
    process.wait()
    backend.runs["r1"].rows += history(10, 12)
    expected = losses(0, 12)
    for _ in range(10):  # it notices at a try of its own, and pauses before the next
        if live.poll().points == expected:
            break
    assert live.points == expected


@pytest.fixture
def anew(backend, clock):
    """The client forgets its connection before and after."""

    def forget():
        wandb_server._connect.cache_clear()
        wandb.teardown()

    forget()
    yield backend
    forget()


def test_a_wrong_key_is_said_and_not_shown(anew, monkeypatch, capfd):
    secret = "s3cr" * 10
    monkeypatch.setenv("WANDB_API_KEY", secret)
    with pytest.raises(SystemExit) as ended:
        main(["replay", str(PROJECT)])
    assert ended.value.code == 2
    said = "".join(capfd.readouterr())
    assert said.startswith(
        "sentinel: wandb://team/project: cannot be read (the server does not accept the key;"
    )
    assert secret not in said
    home = Path(os.environ["WANDB_CACHE_DIR"])
    assert not any(secret.encode() in file.read_bytes() for file in home.rglob("*") if file.is_file())


def test_no_key_is_said_without_asking(anew, monkeypatch):
    monkeypatch.delenv("WANDB_API_KEY")
    (complaint,) = discover([PROJECT]).read_issues
    assert "there is no key for http://127.0.0.1" in str(complaint)
    assert not anew.asked


def test_a_key_in_netrc(anew, monkeypatch):
    monkeypatch.delenv("WANDB_API_KEY")
    netrc = Path(os.environ["NETRC"])
    netrc.write_text(f"machine {anew.url.removeprefix('http://')} login user password {KEY}\n")
    netrc.chmod(0o600)
    anew.runs["r1"] = StoredRun()
    assert len(discover([PROJECT]).runs) == 1
    netrc.unlink()


def test_a_project_that_is_not_there(backend, clock):
    (complaint,) = discover([location("wandb://team/other")]).read_issues
    assert "knows no such project" in str(complaint)


def test_the_server_knows_the_queries_of_this_client(backend):
    from wandb.apis.public import api, runs  # a second for each worker, whatever it runs

    texts = [inspect.getsource(module).encode() for module in (api, runs)]
    with (
        open(wandb.util.get_core_path(), "rb") as core,
        mmap.mmap(core.fileno(), 0, prot=mmap.PROT_READ) as data,
    ):
        for operation in backend.answers:
            query = f"query {operation}".encode()
            assert any(query in text for text in texts) or data.find(query) >= 0, operation
