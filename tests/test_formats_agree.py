"""One training, logged in every format: the same incidents at the same steps, watched or replayed."""

import random
import threading
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import wandb

from sentinel.config.file import Config
from sentinel.incidents.incident import Incident
from sentinel.replays.replaying import replay
from sentinel.sinks.delivery import Delivery
from sentinel.sources.wandb import online as wandb_online
from sentinel.sources.wandb import server as wandb_server
from sentinel.storage.store import Store
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.watcher import Watcher
from tests.manual_clock import ManualClock
from tests.sources.wandb.backend import PROJECT, Backend
from tests.sources.writers import WRITERS, WandbOnlineWriter
from tests.tools.survival import rows

pytestmark = pytest.mark.long

STEPS = 220


@pytest.fixture
def backend(tmp_path, monkeypatch):
    with Backend() as backend:
        for name, value in backend.environment(tmp_path).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(wandb_server, "_REFRESH_SECONDS", 0.0)
        yield backend
        wandb.teardown()
        backend.shutdown()
    wandb_server._connect.cache_clear()
    wandb_online._project.cache_clear()


def told(incidents: list[Incident]) -> list[tuple]:
    return [(i.detector, i.severity, i.onset_step, i.fired_step, i.state, i.summary) for i in incidents]


def test_the_same_training_gives_the_same_incidents_from_every_format(tmp_path: Path, backend) -> None:
    dice = random.Random(3)
    runs = tmp_path / "runs"
    clock = ManualClock(1.7e9)
    logs = [WandbOnlineWriter(backend), *(writer() for writer in WRITERS.values())]
    for log in logs:
        directory = runs / type(log).__name__
        directory.mkdir(parents=True)
        log.start(directory)
    config = Config(paths=[str(runs), str(PROJECT)])

    def watch() -> Watcher:
        return Watcher(config, store, Delivery(tmp_path, [], clock), clock, ServiceManager())

    with Store(tmp_path / "state") as store:
        watcher = watch()
        for step, row in enumerate(islice(rows(random.Random(3)), STEPS)):
            values = {tag: float(np.float32(value)) for tag, value in row.items()}  # all TensorBoard keeps
            for log in logs:
                log.log(step, values)
            if dice.random() < 0.1:
                clock.advance(1)
                watcher = watch() if dice.random() < 0.5 else watcher  # as after a kill
                watcher.round(None, threading.Event())
        for log in logs:
            log.close()
        watcher.once(threading.Event())
        clock.advance(90)  # the end of some runs is read at the look after their last rows
        watcher.once(threading.Event())
        watched = {incident.id: incident for incident in store.incidents()}
    found = replay([runs, PROJECT], Config(), lambda *_: None).runs
    assert len(found) == len(logs)
    assert watched == {i: incident for run in found for i, incident in run.incidents.items()}
    by_run = {run.run_pipeline.id: told([*run.incidents.values()]) for run in found}
    expected = by_run[f"jsonl:{runs / 'JsonlWriter' / 'metrics.jsonl'}"]
    assert {detector for detector, *_ in expected} == {
        "clipped-completion-ratio",
        "kl-blowup",
        "reward-zero-std",
    }
    assert by_run == dict.fromkeys(by_run, expected)
