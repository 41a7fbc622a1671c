"""Clocks that jump, machines that sleep, and logs whose own clock is wrong."""

import json
import threading
from pathlib import Path

import pytest

from sentinel.config.file import Config
from sentinel.sinks.delivery import Delivery
from sentinel.storage.store import Store
from sentinel.watch.file_events import Changes
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.watcher import Watcher
from tests.manual_clock import ManualClock

pytestmark = pytest.mark.slow

NOW = 1_767_230_000.0
DAY = 86400.0
GOING = threading.Event()


class House:
    def __init__(self, place: Path) -> None:
        self.runs = place / "runs"
        self.state = place / "state"
        self.clock = ManualClock(NOW)
        self.runs.mkdir()
        self.store = Store(self.state)
        config = Config(paths=[str(self.runs)], sinks=[{"type": "terminal"}], signals={"kl": "kl"})
        delivery = Delivery(self.state, [], self.clock)
        self.watcher = Watcher(config, self.store, delivery, self.clock, ServiceManager())

    def log(self, steps: range, at: float | None = None) -> None:
        begin = self.clock.now() if at is None else at
        with (self.runs / "a.jsonl").open("a") as file:
            for step in steps:
                file.write(json.dumps({"step": step, "time": begin + step, "kl": 9.0}) + "\n")

    def look(self, *changed: Path) -> list[str]:
        before = len(self.store.decisions(1000))
        self.watcher.round({*changed}, GOING)
        made = self.store.decisions(1000)
        new = reversed(made[: len(made) - before])
        return [f"{one.event}: {one.reason}" for one in new if one.detector == "kl-blowup"]


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


@pytest.mark.parametrize("jump", [-400 * DAY, -3 * DAY, 3 * DAY, 400 * DAY])
def test_a_clock_that_jumps_delays_nothing_and_loses_nothing(house, jump):
    house.log(range(30))
    house.look()
    house.clock.jump(jump)
    house.clock.advance(60)
    house.log(range(30, 90))
    assert house.look() == [], "fired before the jump, and silent for a minute only"
    (run,) = house.watcher._runs
    assert run.run_pipeline.log.metadata.points == 90, (
        "a minute awake is a minute, so everything was looked at"
    )
    house.clock.advance(599)
    assert house.look() == []
    house.clock.jump(-jump)
    house.clock.advance(60)
    assert house.look() == ["lost: inhibited"]
    (health,) = house.store.health().values()
    assert health["polled_at"] == house.clock.now()


def test_a_machine_that_sleeps_loses_no_incident(house):
    house.log(range(60))
    assert house.look() == ["firing: first-notification"]
    house.clock.jump(3 * DAY)
    house.clock.advance(60)
    assert "lost: inhibited" not in house.look()


@pytest.mark.parametrize("frozen", [True, False])
def test_a_watch_that_was_frozen_finds_no_run_silent_by_that(house, monkeypatch, frozen):
    stop = threading.Event()
    waits = iter([690.0] if frozen else [10.0] * 69)

    def wait(*_: object) -> set[Path]:
        if (seconds := next(waits, None)) is None:
            stop.set()
        else:
            house.clock.advance(seconds)
        return set()

    monkeypatch.setattr(Changes, "wait", wait)
    house.log(range(60))
    house.watcher.run(stop)
    detectors = {one.detector for one in house.store.decisions(1000)}
    detectors.discard("init-loss-mismatch")  # notes that the KL is high from the first row
    assert detectors == {"kl-blowup"} | (set() if frozen else {"ended-or-stuck"})


def test_a_log_that_grows_is_live_whatever_its_clock_says(house):
    house.look()
    house.log(range(5), at=1e9)
    house.look(house.runs / "a.jsonl")
    house.log(range(5, 60), at=1e9)
    assert house.look(house.runs / "a.jsonl") == ["firing: first-notification"]


@pytest.mark.parametrize("at", [1e9, NOW], ids=["over", "going on"])
def test_a_log_of_long_ago_is_not_expected_to_grow(house, at):
    house.log(range(60), at=at)
    assert house.look() == ["firing: first-notification"]
    house.clock.advance(DAY / 2)
    assert house.look() == ([] if at == 1e9 else ["lost: inhibited"])
    house.log(range(60, 62), at=at)
    house.clock.advance(60)
    house.look()
    house.clock.advance(10 * DAY)
    assert house.look() == ["lost: inhibited"], "it grew, and is a run like any other"
