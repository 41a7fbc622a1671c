"""A state directory that fails while a watch goes on: full disks, long locks, rows that were damaged."""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from sentinel.common.errors import StateError, StateUnavailable
from sentinel.config.file import Config
from sentinel.sinks.delivery import Delivery
from sentinel.storage import database
from sentinel.storage.lock import sole_watcher
from sentinel.storage.store import Store
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.watcher import Watcher
from sentinel.watch.watchers import Watchers
from tests.manual_clock import ManualClock
from tests.patience import PATIENCE

GOING = threading.Event()
HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


class Service(ServiceManager):
    """Remembers what systemd would show."""

    def __init__(self) -> None:
        super().__init__(notifies=False)
        self.heard = str

    def ready(self) -> None:
        pass

    def alive(self, status: str) -> None:
        self.status = status
        self.heard(status)


class House:
    def __init__(self, place: Path, state: Path) -> None:
        self.runs = place / "runs"
        self.state = state
        self.clock = ManualClock(1.7e9)
        self.service = Service()
        self.runs.mkdir()

    def log(self, name: str, steps: range) -> None:
        kl = 9.0 + random.Random(name).random()  # its own, or the watch takes a log for a copy of another
        with (self.runs / f"{name}.jsonl").open("a") as file:
            for step in steps:
                file.write(json.dumps({"step": step, "time": 1.7e9 + step, "kl": kl}) + "\n")

    def watch(self) -> Watcher:
        config = Config(paths=[str(self.runs)], sinks=[{"type": "terminal"}], signals={"kl": "kl"})
        self.store = Store(self.state)
        self.heard = []
        delivery = Delivery(self.state, [], self.clock)
        delivery.announce = self.heard.append
        return Watcher(config, self.store, delivery, self.clock, self.service)

    def told(self) -> list[str]:
        return [Path(one.run).stem for one in reversed(self.store.decisions(1000)) if one.sent]

    def edit(self, statement: str) -> None:
        with closing(sqlite3.connect(self.state / "sentinel.sqlite")) as connection, connection:
            connection.execute(statement)


@pytest.fixture
def house(tmp_path):
    return House(tmp_path, tmp_path / "state")


@pytest.mark.long
def test_a_full_disk_is_waited_for(tmp_path, small_disk, caplog):
    house = House(tmp_path, small_disk / "state")
    watcher = house.watch()
    house.log("first", range(60))
    watcher.round(None, GOING)
    free = os.statvfs(small_disk)
    (small_disk / "ballast").write_bytes(bytes(free.f_bavail * free.f_bsize))
    for number in range(40):
        house.log(f"run {number}", range(60))
    before = house.told()
    for _ in range(3):
        house.clock.advance(10)
        watcher.round(None, GOING)
    assert house.told() == before
    assert "the disk is full; free some space" in house.service.status
    assert "the disk is full" in house.service.health.problems(house.clock.monotonic())[0]
    assert caplog.text.count("reading stops until the state can be recorded") == 1
    (small_disk / "ballast").unlink()
    watcher.round(set(), GOING)
    assert len(house.told()) == len({*house.told()}) == 41
    assert house.service.status == "41 runs"
    assert not house.service.health.problems(house.clock.monotonic())
    assert "the state can be recorded again; reading continues" in caplog.text
    assert len(house.heard) == 2, "the sinks hear of it and of its end"
    assert "the disk is full; free some space" in house.heard[0]
    assert house.heard[1] is None


def remove(directory: Path) -> None:
    shutil.rmtree(directory)


def rename(directory: Path) -> None:
    directory.rename(directory.with_name("away"))


def rename_and_make_another(directory: Path) -> None:
    rename(directory)
    Store(directory).close()


def remove_lock(directory: Path) -> None:
    (directory / "watch.lock").unlink()


@pytest.mark.slow
@pytest.mark.parametrize("lose", [remove, rename, rename_and_make_another, remove_lock])
def test_a_state_that_is_moved_or_removed_is_told(house, caplog, lose):
    with sole_watcher(house.state):
        watcher = house.watch()
        watcher.round(None, GOING)
        lose(house.state)
        house.log("first", range(60))
        for _ in range(3):
            house.clock.advance(10)
            watcher.round(None, GOING)
        (problem,) = house.service.health.problems(house.clock.monotonic())
        assert "moved or removed under the running program" in problem
        assert caplog.text.count("reading stops until the state can be recorded") == len(house.heard) == 1
        with pytest.raises(StateError, match="another watch"), sole_watcher(house.state):
            pass
    with sole_watcher(house.state):  # its end frees the path
        pass


@pytest.mark.slow
def test_a_state_that_is_put_back_is_used_again(house):
    with sole_watcher(house.state):
        watcher = house.watch()
        rename(house.state)
        watcher.round(None, GOING)
        house.state.with_name("away").rename(house.state)
        house.log("first", range(60))
        watcher.round(None, GOING)
    assert house.told() == ["first"]
    assert not house.service.health.problems(house.clock.monotonic())
    assert house.heard[1:] == [None]


@pytest.mark.long  # a real process
def test_a_watch_that_begins_on_a_full_disk_waits(tmp_path, small_disk):
    house = House(tmp_path, small_disk / "state")
    rows = [{"step": step, "kl": 9.0} for step in range(60)]
    (house.runs / "sick.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "sentinel.toml").write_text('[signals]\nkl = "kl"\n')
    free = os.statvfs(small_disk)
    (small_disk / "ballast").write_bytes(bytes(free.f_bavail * free.f_bsize))
    words = [sys.executable, "-m", "sentinel", "watch", house.runs, "--state-dir", house.state]
    words += ["--config", tmp_path / "sentinel.toml"]
    once = subprocess.run([*words, "--once"], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (once.returncode, once.stderr.count("\n")) == (2, 1), once.stderr
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        limit = threading.Timer(20, process.kill)
        limit.start()
        assert "nothing is read until the state can be recorded" in process.stderr.readline()
        (small_disk / "ballast").unlink()
        assert any("kl-blowup" in line for line in process.stderr)
        process.terminate()
        assert process.wait() == 0
        limit.cancel()


@pytest.mark.slow
def test_a_watch_that_begins_while_another_program_holds_the_lock_waits(house, monkeypatch):
    monkeypatch.setattr(database, "_BUSY_SECONDS", 0.01)
    with closing(Store(house.state)) as store:
        store.set_health({"watch": "of an earlier process"})
        config = Config(paths=[str(house.runs)], state_dir=house.state)
        service = Service()
        watchers = Watchers(config, store, Delivery(house.state, [], house.clock), house.clock, service)
        command = [sys.executable, "-c", HOLD, house.state / "sentinel.sqlite"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout.readline() == b"held\n"
            service.heard = lambda status: holder.stdin.close() if "locked" in status else watchers.end()
            watchers.run()
        assert "of an earlier process" not in store.health().values()
        assert service.status == "0 runs"


@pytest.mark.slow
def test_a_lock_that_is_held_for_long_is_waited_for(house, monkeypatch):
    monkeypatch.setattr(database, "_BUSY_SECONDS", 0.01)
    watcher = house.watch()
    house.log("first", range(60))
    watcher.round(None, GOING)
    command = [sys.executable, "-c", HOLD, house.state / "sentinel.sqlite"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        house.log("second", range(60))
        for _ in range(3):
            watcher.round(None, GOING)
        assert house.told() == ["first"]
        assert "locked" in house.service.status
        (points,) = {
            run.run_pipeline.log.metadata.points for run in watcher._runs if "second" in run.run_pipeline.id
        }
        house.log("second", range(60, 90))
        watcher.round(None, GOING)
        assert points == 60, "nothing more is read than what can be recorded"
        assert {run.run_pipeline.log.metadata.points for run in watcher._runs} == {60}
        holder.stdin.close()
    watcher.round(None, GOING)
    assert house.told() == ["first", "second"]
    assert {run.run_pipeline.log.metadata.points for run in watcher._runs} == {60, 90}


@pytest.mark.slow
def test_state_that_is_damaged_costs_one_run_a_re_read(house, caplog):
    house.log("good", range(60))
    house.log("bad", range(60))
    house.watch().once(GOING)
    house.edit("UPDATE runs SET state = x'c1c1' WHERE id LIKE '%bad.jsonl'")
    house.edit("UPDATE incidents SET incident = '{' WHERE run LIKE '%bad.jsonl'")
    house.edit("INSERT INTO health VALUES ('x', '{')")
    watcher = house.watch()
    watcher.round(None, GOING)
    assert {run.run_pipeline.log.metadata.points for run in watcher._runs} == {60}
    errors = [one.getMessage() for one in caplog.records if one.levelname == "ERROR"]
    (line,) = (error for error in errors if "bad.jsonl" in error)
    assert "its saved state cannot be used, so its log is read from the start" in line
    assert house.told() == ["bad", "good"]


def test_a_database_that_is_malformed_gets_its_mend(house):
    house.watch()
    path = house.state / "sentinel.sqlite"
    house.store.close()
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(
        StateError, match="keeps it aside, begins a new one and reads all logs again"
    ) as raised:
        Store(house.state)
    assert not isinstance(raised.value, StateUnavailable)
