"""W&B runs on a server, read with the real client from a server on loopback."""

import json
import math
import threading

import pytest

from sentinel.cli.app import main
from sentinel.common.clock import SystemClock
from sentinel.config.file import Config
from sentinel.sinks.delivery import Delivery
from sentinel.sources.base import EndKind
from sentinel.sources.discovery import discover, location
from sentinel.sources.location import Url
from sentinel.sources.wandb import online as wandb_online
from sentinel.sources.wandb import server as wandb_server
from sentinel.storage.store import Store
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.watcher import Watcher
from tests.patience import PATIENCE
from tests.sources.reader import Reader
from tests.sources.wandb.backend import PROJECT, StoredRun, history, losses


@pytest.mark.slow
def test_only_what_is_new_is_read(backend, live):
    assert live.points == losses(0, 10)
    (run,) = live.runs.values()
    assert run.path == Url("wandb", ("team", "project", "r1"))
    assert run.id == "wandb:wandb://team/project/r1"
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


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_chunking_changes_nothing(backend, clock, monkeypatch, limit):
    monkeypatch.setattr(wandb_online, "_STEPS_A_PAGE", 5)
    monkeypatch.setattr(wandb_online, "_MAX_PAGES", 2)
    rows = [*history(0, 12), *history(500, 503)]
    backend.runs["r1"] = StoredRun(rows=rows, state="finished")
    reader = Reader(PROJECT, clock).poll(limit)
    assert reader.points == losses(0, 12) + losses(500, 503)
    assert reader.batch.ending.outcome is EndKind.FINISHED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("finished", EndKind.FINISHED),
        ("crashed", EndKind.CRASHED),
        ("failed", EndKind.CRASHED),
        ("killed", EndKind.CRASHED),
        ("preempted", EndKind.PREEMPTED),
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
    points = Reader(PROJECT, clock).poll().points
    assert sorted(points) == [("epoch_no", 3, "9.0"), ("gen.reward", 9, "2.0"), ("x", 3, "nan")]


def test_time_without_a_timestamp(backend, clock):
    backend.runs["r1"] = StoredRun(rows=[{"_step": 0, "loss": 1}])
    assert math.isnan(Reader(PROJECT, clock).poll().times[0])


def test_a_run_that_was_rewound_begins_again(backend, live):
    backend.runs["r1"].rows = history(0, 4)
    live.poll()
    assert live.restarts == 1
    assert live.points == losses(0, 10) + losses(0, 4)


@pytest.mark.slow
def test_runs_that_appear_later_and_go(backend, clock):
    backend.runs = {f"r{i:03}": StoredRun() for i in range(450)}
    assert len(discover([PROJECT]).runs) == 450
    assert backend.names().count("Runs") == 3
    backend.runs = {"late": StoredRun(rows=history(0, 1))}
    clock.advance(45)
    reader = Reader(PROJECT, clock).poll()
    assert reader.points == losses(0, 1)
    backend.runs = {}
    (complaint,) = reader.poll().read_issues
    assert "no longer" in complaint


def test_one_run_of_a_project(backend, clock):
    backend.runs = {"r1": StoredRun(), "r2": StoredRun(rows=history(0, 2))}
    reader = Reader(PROJECT / "r2", clock).poll()
    assert reader.points == losses(0, 2)
    assert [run.path.name for run in reader.runs.values()] == ["r2"]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["wandb://", "wandb://team", "wandb://team/project/r1/x", "wandbb://a/b"])
def test_addresses_that_are_none(text):
    with pytest.raises(ValueError, match=r"write wandb://ENTITY/PROJECT|did you mean 'wandb'"):
        location(text)


@pytest.mark.slow
def test_replay_names_runs_by_their_address(backend, clock, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    backend.runs["r1"] = StoredRun(rows=history(0, 5), state="finished")
    with pytest.raises(SystemExit):
        main(["replay", str(PROJECT), "--format", "json"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert (run["run"], run["path"], run["source"]) == ("team/project/r1", f"{PROJECT}/r1", "wandb")
    assert run["points"] == 5


@pytest.mark.slow  # a watch in real time
def test_watch_reads_on(backend, tmp_path, monkeypatch):
    monkeypatch.setattr(wandb_server, "_REFRESH_SECONDS", 0.01)
    wandb_online._project.cache_clear()
    kl = [{"_step": i, "train/kl": 0.01} for i in range(100)]
    backend.runs["r1"] = StoredRun(rows=kl)
    config = Config.model_validate({"paths": [str(PROJECT)], "poll_seconds": 0.02})
    stop = threading.Event()

    def job(watcher):
        assert backend.told.wait(PATIENCE)
        backend.told.clear()
        backend.runs["r1"].rows += [{"_step": i, "train/kl": 3.0} for i in range(100, 200)]
        assert backend.told.wait(PATIENCE)
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
