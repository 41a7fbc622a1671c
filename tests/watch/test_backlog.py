"""A log that is large, or grows fast, keeps no other run waiting, and it is said how far it is behind."""

import json
import math
import re
import threading
from itertools import pairwise

import pytest

from sentinel.common.processor_budget import ProcessorBudget
from sentinel.config.file import Config
from sentinel.detectors.discovery import all_detectors
from sentinel.pipeline import MAX_POINTS, Pipeline
from sentinel.report.status import status
from sentinel.report.status_body import document
from sentinel.report.status_lines import lines
from sentinel.sinks.delivery import Delivery
from sentinel.sources.json.lines import JsonLines
from sentinel.storage.store import Store
from sentinel.telemetry.metrics import Metrics
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.watcher import Watcher
from tests.chosen_detectors import choose_detectors
from tests.manual_clock import ManualClock

pytestmark = pytest.mark.slow

NOW = 1.7e9
GOING = threading.Event()
SLICE = 100  # points


class House:
    """A watch for which each slice of reading takes some time."""

    def __init__(self, place, monkeypatch) -> None:
        self.runs = place / "runs"
        self.state = place / "state"
        self.clock = ManualClock(NOW)
        self.runs.mkdir()
        self.read: list[list[str]] = []  # the runs of each slice
        self.points: list[int] = []  # the most of each slice
        # of each slice
        self.seconds = 0.5
        self.seconds_a_run = 0.0
        self.slice = SLICE  # points; 0: as many as the watch asks for
        every = all_detectors()
        choose_detectors(monkeypatch, {name: every[name] for name in ("non-finite-metric", "stream-stall")})
        original = Pipeline.advance

        def advance(pipeline, run_pipelines, points_at_once, **when):
            self.read.append(sorted(run_pipeline.log.name for run_pipeline in run_pipelines))
            self.points.append(points_at_once)
            self.clock.work(self.seconds + self.seconds_a_run * len(run_pipelines))
            return original(pipeline, run_pipelines, self.slice or points_at_once, **when)

        monkeypatch.setattr(Pipeline, "advance", advance)
        self.store = Store(self.state)
        self.service = ServiceManager()
        self.watcher = self.watch(self.store)

    def watch(self, store: Store) -> Watcher:
        config = Config(paths=[str(self.runs)], sinks=[{"type": "terminal"}])
        delivery = Delivery(self.state, [], self.clock)
        return Watcher(config, store, delivery, self.clock, self.service)

    def log(self, name: str, steps: range, loss: float) -> None:
        with (self.runs / f"{name}.jsonl").open("a") as file:
            for step in steps:
                file.write(json.dumps({"step": step, "time": NOW + step, "loss": loss}) + "\n")

    def look(self) -> list[list[str]]:
        self.read = []
        self.watcher.round({path for path in self.runs.iterdir() if path.name != "large.jsonl"}, GOING)
        return self.read


@pytest.fixture
def house(tmp_path, monkeypatch):
    return House(tmp_path, monkeypatch)


def test_each_round_reads_what_changed_first_and_then_slices_of_what_is_behind(house):
    house.log("large", range(1000), 1.0)
    house.log("small", range(10), 1.0)
    assert house.look() == [["large.jsonl", "small.jsonl"], ["large.jsonl"]]
    for begin in range(10, 40, 10):
        house.log("small", range(begin, begin + 10), 1.0)
        assert house.look() == [["small.jsonl"], ["large.jsonl"]]
    house.log("small", range(40, 44), math.nan)
    house.look()
    assert {one.run.rpartition("/")[2] for one in house.store.incidents()} == {"small.jsonl"}


def test_a_run_that_is_far_behind_is_said_everywhere_and_is_not_silent(house):
    house.log("large", range(2500), 1.0)
    metrics = Metrics(house.state, house.service.health, house.clock)
    metrics.lags = house.watcher.lags
    house.look()
    assert metrics.problems() == []
    while house.clock.monotonic() < 1000:
        house.look()
        house.clock.advance(99)
    house.watcher._reports.record(immediately=True)
    assert metrics.problems() == [], "a first look at a large log takes long"
    (lag,) = next(one for one in metrics.collect() if one.name == "sentinel_run_lag_seconds").samples
    assert lag.value == pytest.approx(1000, rel=0.02)
    overview = status(house.store, house.state, house.clock.now())
    (run,) = document(overview)["runs"]
    assert run["lag_seconds"] == pytest.approx(1000, rel=0.02)
    text = " ".join(line for _, line in lines(overview))
    assert "1 log not read to the end yet, " in text
    assert "read only in part: its end was not reached for 16 min 41 s" in text
    assert house.store.incidents() == [], "a log that is not read to its end is not silent"
    house.clock.advance(2700)
    house.look()
    (problem,) = metrics.problems()
    assert "large.jsonl was not read to its end for 1 h" in problem
    house.watcher.once(GOING)
    assert house.look() == []
    assert metrics.problems() == []
    house.log("large", range(2500, 5000), 1.0)
    house.watcher.round(None, GOING)
    assert metrics.problems() == []
    house.clock.advance(70)
    house.look()
    (problem,) = metrics.problems()
    assert "large.jsonl was not read to its end for 1 min" in problem


def test_slices_are_smaller_while_they_take_long(house):
    for number in range(40):  # each of which may read so much that only their sum is limited
        house.log(f"run {number}", range(40), 1.0)
    for house.seconds in (5.0, 5.0, 5.0, 0.5, *[0.1] * 8):
        for number in range(40):
            house.log(f"run {number}", range(40, 41), 1.0)
        house.look()
    most = [points / MAX_POINTS for points in dict.fromkeys(house.points)]
    assert most[:3] == [1, 1 / 2, 1 / 4]
    assert min(most) > 1 / 64
    assert house.points[-1] == MAX_POINTS


@pytest.mark.long
def test_many_runs_on_a_slow_machine_are_all_read_to_their_ends(house):
    house.slice = 0
    house.seconds_a_run = 0.05
    for begin, end in pairwise([*range(6), 400, 800]):
        for number in range(70):
            house.log(f"run {number}", range(begin, end), 1.0)
        house.look()
    assert house.points[-1] < MAX_POINTS / 4
    for _ in range(20):
        house.watcher.round((), GOING)
    assert house.watcher.lags() == {}


@pytest.mark.long
def test_a_fleet_is_read_in_rounds_between_which_the_watch_may_rest(house):
    house.slice = 0
    house.seconds = 40.0
    for number in range(200):
        house.log(f"run {number:03}", range(3), 1.0)
    house.look()
    for _ in range(8):
        house.watcher.round((), GOING)
    assert house.watcher.lags() == {}
    for number in range(200):
        house.log(f"run {number:03}", range(3, 6), math.nan if number == 150 else 1.0)
    first = house.look()
    assert len(first) == 1
    assert "run 150.jsonl" in first[0], "its number is seen before its turn"
    assert [one.detector for one in house.store.incidents()] == ["non-finite-metric"]
    assert sorted(house.watcher.lags().values()) == [40.0] * (200 - len(first[0]))
    house.seconds = 2.0
    first_read = {*first[0]}
    while any(watched.due_since is not None for watched in house.watcher._runs):
        house.read = []
        house.watcher.round((), GOING)
        first_read.update(*house.read)
    assert len(first_read) == 200
    assert house.watcher.lags() == {}


def test_a_log_that_changed_and_waits_to_be_read_is_not_silent(house):
    (house.runs / "small.jsonl").write_text('{"config": {"max_steps": 900}}\n')
    for begin in range(0, 100, 10):
        house.log("small", range(begin, begin + 10), 1.0)
        house.look()
        house.clock.advance(9.5)
    runs = house.watcher._runs
    house.watcher._backlog.add_changed(runs)
    house.clock.advance(5000)
    house.watcher._review_runs(runs)
    assert house.store.incidents() == []
    house.watcher._backlog.note(*runs, has_more=False, awake=house.clock.monotonic())
    house.watcher._review_runs(runs)
    assert [one.detector for one in house.store.incidents()] == ["stream-stall"]


def test_verdicts_are_the_same_however_the_rounds_are_cut(house):
    for name in ("large", "larger"):
        house.log(name, range(200), 1.0)
        house.log(name, range(200, 210), math.nan)
    house.look()
    while house.watcher.lags():
        house.look()
    recorded = {one.id: one.fired_step for one in house.store.incidents()}
    with Store(house.runs.parent / "another") as another:
        house.watch(another).once(GOING)
        assert recorded == {one.id: one.fired_step for one in another.incidents()}
    assert {one.run.rpartition("/")[2] for one in house.store.incidents()} == {"large.jsonl", "larger.jsonl"}


def test_a_log_that_takes_the_processor_costs_itself_alone(house, monkeypatch):
    monkeypatch.setattr(house.watcher, "_budget", ProcessorBudget(0.2))
    monkeypatch.setattr(house.watcher._pipeline, "_budget", house.watcher._budget)
    original = JsonLines.poll

    def poll(log, cursor, limit):
        if log.path.name == "large.jsonl":
            re.fullmatch("(a+)+", "a" * 60 + "b")  # would take longer than the universe is old
        return original(log, cursor, limit)

    monkeypatch.setattr(JsonLines, "poll", poll)
    house.log("large", range(10), 1.0)
    house.log("small", range(10), 1.0)
    house.look()
    house.log("large", range(10, 20), 1.0)
    house.log("small", range(10, 14), math.nan)
    house.look()
    found = {one.run.rpartition("/")[2]: one.detector for one in house.store.incidents()}
    assert found["small.jsonl"] == "non-finite-metric"
    (stop,) = house.store.stops.all().values()
    assert "the jsonl reader failed: ProcessorTimeExceeded: more than 0 s of the processor" in stop.reason


def test_a_log_that_grows_fast_is_read_in_slices_of_less_than_a_second(house):
    house.slice = 0
    house.seconds = 3.0
    for begin in range(0, 5000, 1000):
        house.log("fast", range(begin, begin + 1000), 1.0)
        house.look()
    assert house.points[-1] == 1 << 13
    house.seconds = 0.01
    for begin in range(5000, 9000, 1000):
        house.log("fast", range(begin, begin + 1000), 1.0)
        house.look()
    assert house.points[-1] > 1 << 13
