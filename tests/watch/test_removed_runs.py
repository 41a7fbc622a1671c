"""Runs whose logs are removed are let go of after a while, with all that they left."""

import json
import shutil
import threading

import pytest

from sentinel.config.file import Config
from sentinel.sinks.delivery import Delivery
from sentinel.storage.store import Store
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.watcher import Watcher
from tests.manual_clock import ManualClock
from tests.sources.tracker_writers import MlflowDatabaseWriter

pytestmark = pytest.mark.slow

NOW = 1.7e9
GOING = threading.Event()
FIRING = ["firing: first-notification"]


class House:
    def __init__(self, place) -> None:
        self.runs = place / "runs"
        self.state = place / "state"
        self.clock = ManualClock(NOW)
        self.runs.mkdir()
        self.store = Store(self.state)
        self.start()

    def start(self) -> None:
        config = Config(paths=[str(self.runs)], sinks=[{"type": "terminal"}], signals={"kl": "kl"})
        delivery = Delivery(self.state, [], self.clock)
        self.watcher = Watcher(config, self.store, delivery, self.clock, ServiceManager())

    def log(self, name: str, steps: range, kl: float = 9.0) -> None:
        directory = self.runs / name
        directory.mkdir(exist_ok=True)
        with (directory / "log.jsonl").open("a") as file:
            for step in steps:
                file.write(json.dumps({"step": step, "time": self.clock.now() + step - 60, "kl": kl}) + "\n")

    def look(self, seconds: float = 0.0) -> list[str]:
        """What was decided of `kl-blowup` in a round after so many seconds."""
        before = len(self.store.decisions(1000))
        self.clock.advance(seconds)
        self.watcher.round(None, GOING)
        made = self.store.decisions(1000)
        new = reversed(made[: len(made) - before])
        return [f"{one.event}: {one.reason}" for one in new if one.detector == "kl-blowup"]


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


def test_a_run_that_is_gone_for_an_hour_is_let_go_of(house, caplog):
    for name in ("a", "b", "c", "d", "stays"):
        house.log(name, range(60))
    assert house.look() == 5 * FIRING
    over = {one.id for one in house.store.incidents() if one.state == "resolved"}
    for name in ("a", "b", "c", "d"):
        shutil.rmtree(house.runs / name)
    house.look(60)
    (line,) = [line for line in caplog.messages if "gone" in line]
    assert line.startswith("the logs of ")
    assert "and of 1 more runs are gone" in line
    assert not [line for line in caplog.messages if "No such file" in line]
    house.look(3540)
    assert len(house.watcher.logs()) == 5
    assert house.look(60).count("lost: lost") == 4
    assert [log.run.path.parent.name for log in house.watcher.logs()] == ["stays"]
    assert {one.run.split("/")[-2] for one in house.store.incidents(open_only=True)} == {"stays"}
    gone = [one for one in house.store.incidents() if "/stays/" not in one.run and one.id not in over]
    assert len(gone) >= 4
    assert {one.state for one in gone} == {"lost"}
    assert len(house.store.runs()) == 1
    house.clock.advance(31 * 86400)
    house.look()
    assert {one.run.split("/")[-2] for one in house.store.incidents()} == {"stays"}


def test_a_run_that_comes_back_in_time_goes_on(house):
    house.log("a", range(60))
    assert house.look() == FIRING
    (house.runs / "a").rename(house.runs.parent / "away")
    house.look(60)
    (house.runs.parent / "away").rename(house.runs / "a")
    house.look(3000)
    house.look(3000)
    assert len(house.watcher.logs()) == 1
    assert house.store.incidents(open_only=True)


def test_a_run_that_comes_back_later_is_told_once(house):
    house.log("a", range(60))
    assert house.look() == FIRING
    (house.runs / "a").rename(house.runs.parent / "away")
    house.look(60)
    house.look(3600)
    assert house.watcher.logs() == []
    (house.runs.parent / "away").rename(house.runs / "a")
    assert "firing: first-notification" not in house.look(60)
    assert [one.detector for one in house.store.incidents(open_only=True)].count("kl-blowup") == 1


def test_what_vanished_while_no_watch_ran_is_let_go_of(house):
    house.log("a", range(60))
    house.look()
    shutil.rmtree(house.runs / "a")
    house.start()
    house.look()
    assert house.store.incidents(open_only=True)
    assert house.look(3600) == ["lost: lost"]
    assert house.store.incidents(open_only=True) == []
    assert house.store.runs() == []


def test_a_run_that_is_deleted_from_its_database_is_let_go_of(house):
    for run in ("deleted", "stays"):
        writer = MlflowDatabaseWriter()
        writer.run = run
        writer.start(house.runs)
        with writer.database:
            columns = "run_uuid, status, lifecycle_stage"
            insert = f"INSERT OR IGNORE INTO runs ({columns}) VALUES (?, 'RUNNING', 'active')"
            writer.database.execute(insert, (run,))
        for step in range(60):
            writer.log(step, {"kl": 9.0 + (run == "stays")})
    assert house.look() == 2 * FIRING
    with writer.database:
        writer.database.execute("UPDATE runs SET lifecycle_stage = 'deleted' WHERE run_uuid = 'deleted'")
    house.look(60)
    assert len(house.watcher.logs()) == 2
    assert "lost: lost" in house.look(3600)
    assert [log.run.path.name for log in house.watcher.logs()] == ["stays"]


def test_a_database_that_cannot_be_read_now_has_lost_no_run(house):
    writer = MlflowDatabaseWriter()
    writer.start(house.runs)
    for step in range(60):
        writer.log(step, {"kl": 9.0})
    writer.database.close()
    assert house.look() == FIRING
    (house.runs / "mlflow.db").write_bytes(b"no database")
    house.look(60)
    house.look(3600)
    assert len(house.watcher.logs()) == 1
