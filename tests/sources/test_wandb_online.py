"""W&B runs on a server, read with the real client from a server on loopback."""

import inspect
import json
import math
import mmap
import threading
from functools import partial
from pathlib import Path

import pytest
import wandb
from wandb.apis.public import api as client_api
from wandb.apis.public import runs as client_runs

from sentinel.alerts.store import Store
from sentinel.cli.app import main
from sentinel.clock import ManualClock, SystemClock
from sentinel.config import Config
from sentinel.sinks.delivery import Delivery
from sentinel.sources import patience, wandb_online, wandb_server
from sentinel.sources.base import Outcome
from sentinel.sources.discovery import discover, place
from sentinel.sources.places import Url
from sentinel.telemetry import ServiceManager
from sentinel.watching import Watcher
from tests.sources.wandb_backend import KEY, Backend, StoredRun

PROJECT = place("wandb://team/project")


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """A W&B server that the client of this process talks to, and a home without any key."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch, Backend() as backend:
        for name in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DIR", "HOME"):
            patch.setenv(name, str(home))
        patch.setenv("NETRC", str(home / "netrc"))
        patch.setenv("WANDB_ERROR_REPORTING", "false")
        patch.setenv("WANDB_BASE_URL", backend.url)
        patch.setenv("WANDB_API_KEY", KEY)
        yield backend
        wandb.teardown()
        backend.shutdown()
    wandb_server._connect.cache_clear()


@pytest.fixture
def backend(machine):
    machine.runs, machine.failure, machine.key, machine.headers = {}, None, KEY, {}
    machine.asked.clear()
    machine.told.clear()
    return machine


@pytest.fixture
def clock(monkeypatch):
    clock = ManualClock(1e6)
    monkeypatch.setattr(wandb_online, "Project", partial(wandb_server.Project, now=clock.now))
    wandb_online._project.cache_clear()
    yield clock
    wandb_online._project.cache_clear()


class Reader:
    """Polls one run a quarter of a minute after the other."""

    def __init__(self, clock, run):
        self.clock, self.run, self.cursor, self.points, self.restarts = clock, run, {}, [], 0

    def poll(self, limit=1000):
        self.clock.advance(15)
        self.batch = self.run.source.poll(json.loads(json.dumps(self.cursor)), limit)
        self.cursor = self.batch.cursor
        for chunk in self.batch.chunks:
            self.restarts += chunk.restarted
            tags = [chunk.tags[i] for i in chunk.tag]
            self.points += zip(tags, chunk.step.tolist(), chunk.value.tolist(), strict=True)
        return self

    def read(self, limit=1000):
        while self.poll(limit).batch.more:
            pass
        return self


def history(begin, end):
    return [
        {"_step": i, "_timestamp": 1.7e9 + i, "_runtime": i, "loss": 1 / (i + 1)} for i in range(begin, end)
    ]


def losses(begin, end):
    return [("loss", i, 1 / (i + 1)) for i in range(begin, end)]


@pytest.fixture
def live(backend, clock):
    """A run of ten steps that is read."""
    backend.runs["r1"] = StoredRun(rows=history(0, 10), config={"optimizer": {"lr": 0.1}, "name": "x"})
    (run,) = discover([PROJECT]).runs
    return Reader(clock, run).read()


def test_only_what_is_new_is_read(backend, live):
    assert live.points == losses(0, 10)
    assert live.run.path == Url("wandb", ("team", "project", "r1"))
    assert live.run.id == "wandb:wandb://team/project/r1"
    assert live.batch.config == {"optimizer.lr": 0.1, "name": "x"}
    assert live.batch.ending is None
    backend.asked.clear()
    assert not live.poll().batch.chunks
    assert backend.names() == ["Runs"]
    backend.runs["r1"].rows += history(10, 13)
    (chunk,) = live.poll().batch.chunks
    assert chunk.time.tolist() == [1.7e9 + i for i in range(10, 13)]
    assert live.points == losses(0, 13)
    pages = [variables for name, variables in backend.asked if name == "HistoryPage"]
    assert [(page["minStep"], page["maxStep"]) for page in pages] == [(10, 13)]


def test_a_server_is_not_asked_twice_in_a_quarter_of_a_minute(backend, live):
    backend.asked.clear()
    for _ in range(5):
        live.clock.advance(-14)
        live.poll()
    assert backend.names() == []
    assert not live.batch.complaints


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_chunking_changes_nothing(backend, clock, monkeypatch, limit):
    monkeypatch.setattr(wandb_online, "_STEPS_A_PAGE", 5)
    monkeypatch.setattr(wandb_online, "_MOST_PAGES", 2)
    rows = [*history(0, 12), *history(500, 503)]
    backend.runs["r1"] = StoredRun(rows=rows, state="finished")
    (run,) = discover([PROJECT]).runs
    reader = Reader(clock, run).read(limit)
    assert reader.points == losses(0, 12) + losses(500, 503)
    assert reader.batch.ending.outcome is Outcome.FINISHED


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("finished", Outcome.FINISHED),
        ("crashed", Outcome.CRASHED),
        ("failed", Outcome.CRASHED),
        ("killed", Outcome.CRASHED),
        ("preempted", None),
    ],
)
def test_how_a_run_ended(backend, live, state, outcome):
    backend.runs["r1"].state = state
    ending = live.poll().batch.ending
    assert (ending and ending.outcome) == outcome
    assert ending is None or ending.evidence == f"W&B calls it {state}"


def test_names_axes_and_numbers_that_are_not_finite(backend, clock):
    row = {
        "_step": 3,
        "gen": {"reward": 2, "img": {"_type": "image-file"}},
        "x": "NaN",
        "epoch_no": 9,
        "b": True,
    }
    axes = [{"1": "epoch_no", "6": [3]}, {"2": "gen.*", "5": 1, "6": [1]}, {"5": 99}, "?"]
    backend.runs["r1"] = StoredRun(rows=[row], axes=axes)
    (run,) = discover([PROJECT]).runs
    points = {tag: (step, value) for tag, step, value in Reader(clock, run).read().points}
    assert points.pop("x")[0] == 3
    assert points == {"gen.reward": (9, 2.0), "epoch_no": (3, 9.0)}


def test_a_run_that_was_rewound_begins_again(backend, live):
    backend.runs["r1"].rows = history(0, 4)
    live.read()
    assert live.restarts == 1
    assert live.points == losses(0, 10) + losses(0, 4)


def test_runs_that_appear_later_and_go(backend, clock):
    backend.runs = {f"r{i:03}": StoredRun() for i in range(450)}
    assert len(discover([PROJECT]).runs) == 450
    assert backend.names().count("Runs") == 3
    backend.runs = {"late": StoredRun(rows=history(0, 1))}
    clock.advance(60)
    (run,) = discover([PROJECT]).runs
    assert Reader(clock, run).read().points == losses(0, 1)
    backend.runs = {}
    (complaint,) = Reader(clock, run).poll().batch.complaints
    assert "no longer" in str(complaint)


def test_one_run_of_a_project(backend, clock):
    backend.runs = {"r1": StoredRun(), "r2": StoredRun(rows=history(0, 2))}
    (run,) = discover([place("wandb://team/project/r2")]).runs
    assert Reader(clock, run).read().points == losses(0, 2)
    assert run.path.name == "r2"


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
    backend.failure, backend.headers = failure, headers
    backend.runs["r1"].rows += history(10, 12)
    (complaint,) = live.poll().batch.complaints
    assert str(complaint).startswith("wandb://team/project/r1: cannot be read (")
    assert reason in str(complaint)
    assert KEY not in str(complaint)
    backend.asked.clear()
    for _ in range(2):
        live.clock.advance(-8)
        live.poll()
        assert not live.batch.complaints
        assert not live.batch.chunks
    assert not backend.asked
    backend.failure = None
    live.clock.advance(60)
    assert live.poll().points == losses(0, 12)
    backend.failure = 403
    assert len(live.poll().batch.complaints) == 1


def test_a_server_that_bids_to_wait_for_long_holds_nothing_up(backend, live, monkeypatch):
    monkeypatch.setattr(patience, "_ANSWER_SECONDS", 0.2)
    backend.failure, backend.headers = 429, {"Retry-After": "3600"}
    assert len(live.poll().batch.complaints) == 1
    backend.asked.clear()
    assert not live.poll().batch.complaints
    assert not backend.asked


def test_one_run_that_cannot_be_read_does_not_stop_the_others(backend, clock, monkeypatch):
    backend.runs = {"bad": StoredRun(rows=history(0, 3)), "good": StoredRun(rows=history(0, 3))}
    page = backend.answers["HistoryPage"]
    monkeypatch.setitem(
        backend.answers, "HistoryPage", lambda run, name, v: None if name == "bad" else page(run, name, v)
    )
    bad, good = (Reader(clock, run) for run in discover([PROJECT]).runs)
    assert len(bad.poll().batch.complaints) == 1
    assert good.poll().points == losses(0, 3)


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
    home = Path(wandb_server.os.environ["WANDB_CACHE_DIR"])
    assert not any(secret.encode() in file.read_bytes() for file in home.rglob("*") if file.is_file())


def test_no_key_is_said_without_asking(anew, monkeypatch):
    monkeypatch.delenv("WANDB_API_KEY")
    (complaint,) = discover([PROJECT]).complaints
    assert "there is no key for http://127.0.0.1" in str(complaint)
    assert not anew.asked


def test_a_key_in_netrc(anew, monkeypatch):
    monkeypatch.delenv("WANDB_API_KEY")
    netrc = Path(wandb_server.os.environ["NETRC"])
    netrc.write_text(f"machine {anew.url.removeprefix('http://')} login user password {KEY}\n")
    netrc.chmod(0o600)
    anew.runs["r1"] = StoredRun()
    assert len(discover([PROJECT]).runs) == 1
    netrc.unlink()


def test_a_project_that_is_not_there(backend, clock):
    (complaint,) = discover([place("wandb://team/other")]).complaints
    assert "knows no such project" in str(complaint)


@pytest.mark.parametrize("text", ["wandb://", "wandb://team", "wandb://team/project/r1/x", "wandbb://a/b"])
def test_addresses_that_are_none(text):
    with pytest.raises(ValueError, match=r"write wandb://ENTITY/PROJECT|did you mean 'wandb'"):
        place(text)


def test_replay_names_runs_by_their_address(backend, clock, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    backend.runs["r1"] = StoredRun(rows=history(0, 5), state="finished")
    with pytest.raises(SystemExit):
        main(["replay", str(PROJECT), "--format", "json"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert (run["run"], run["path"], run["source"]) == ("team/project/r1", f"{PROJECT}/r1", "wandb")
    assert run["points"] == 5


def test_watch_reads_on(backend, tmp_path, monkeypatch):
    monkeypatch.setattr(wandb_server, "_REFRESH_SECONDS", 0.01)
    wandb_online._project.cache_clear()
    kl = [{"_step": i, "train/kl": 0.01} for i in range(100)]
    backend.runs["r1"] = StoredRun(rows=kl)
    config = Config.model_validate({"paths": [str(PROJECT)], "poll_seconds": 0.02})
    stop = threading.Event()

    def job(watcher):
        backend.told.wait(30)
        backend.told.clear()
        backend.runs["r1"].rows += [{"_step": i, "train/kl": 3.0} for i in range(100, 200)]
        backend.told.wait(30)
        backend.runs["r1"].state = "finished"
        stop.set()
        watcher.wake()

    with Store(tmp_path) as store, Delivery(tmp_path, [], SystemClock()) as delivery:
        watcher = Watcher(config, store, delivery, SystemClock(), ServiceManager())
        training = threading.Thread(target=job, args=(watcher,))
        training.start()
        watcher.run(stop)
        training.join()
        (incident,) = store.incidents(open_only=False)
    assert (incident.run, incident.detector) == (f"wandb:{PROJECT}/r1", "kl-blowup")


def test_the_server_knows_the_queries_of_this_client(backend):
    texts = [inspect.getsource(module).encode() for module in (client_api, client_runs)]
    with (
        open(wandb.util.get_core_path(), "rb") as core,
        mmap.mmap(core.fileno(), 0, prot=mmap.PROT_READ) as data,
    ):
        for operation in backend.answers:
            query = f"query {operation}".encode()
            assert any(query in text for text in texts) or data.find(query) >= 0, operation


def test_time_without_a_timestamp(backend, clock):
    backend.runs["r1"] = StoredRun(rows=[{"_step": 0, "loss": 1}])
    (run,) = discover([PROJECT]).runs
    (chunk,) = Reader(clock, run).poll().batch.chunks
    assert math.isnan(chunk.time[0])
