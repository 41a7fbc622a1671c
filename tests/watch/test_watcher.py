"""A watch over hours of a clock that stands still until it is moved."""

import json
import threading
import time
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from msgspec.structs import replace

from sentinel.config.file import Config
from sentinel.detectors.discovery import all_detectors
from sentinel.replays.replaying import replay
from sentinel.report.status import status
from sentinel.runs.state import RunState
from sentinel.sinks.delivery import Delivery
from sentinel.sources.json.lines import JsonLines
from sentinel.storage.store import Store
from sentinel.watch.backlog import Backlog
from sentinel.watch.file_events import Changes
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.watcher import Watcher
from sentinel.watch.watchers import Watchers
from tests.chosen_detectors import choose_detectors
from tests.manual_clock import ManualClock
from tests.sinks.samples import first_waiting
from tests.sources.tracker_writers import TrackioWriter
from tests.test_conclusion import high_at_the_end

NOW = 1_767_230_000.0
GOING = threading.Event()


class House:
    """A directory of runs, a state directory, and watches that follow one another on one clock."""

    def __init__(self, place: Path) -> None:
        self.runs = place / "runs"
        self.state = place / "state"
        self.clock = ManualClock(NOW)
        self.runs.mkdir()

    def log(self, name: str, steps: range, kl: float, at: float = NOW, **more: float) -> None:
        with (self.runs / f"{name}.jsonl").open("a") as file:
            for step in steps:
                row = {"step": step, "time": at + step, "reward": 0.5, "kl": kl, "reward_std": 0.1}
                file.write(
                    json.dumps({**row, "completions/clipped_ratio": 0.0, "entropy": 0.4, **more}) + "\n"
                )

    def watch(self, **settings) -> Watcher:
        config = Config(
            paths=[str(self.runs)], sinks=[{"type": "terminal"}], signals={"kl": "kl"}, **settings
        )
        store = Store(self.state)
        return Watcher(config, store, Delivery(self.state, [], self.clock), self.clock, ServiceManager())

    def look(
        self, watcher: Watcher, hours: float = 0.0, detector: str | tuple[str, ...] = "kl-blowup"
    ) -> list[str]:
        """Move the clock, look at everything; what was decided since of some detectors."""
        with Store(self.state) as store:
            before = len(store.decisions(1000))
            self.clock.advance(3600 * hours)
            watcher.round(None, GOING)
            made = store.decisions(1000)
            new = reversed(made[: len(made) - before])
            return [f"{one.event}: {one.reason}" for one in new if one.detector in detector]


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("once", [False, True])
def test_what_runs_that_were_over_show_is_told_in_one_message(house, once):
    for number in range(3):
        house.log(f"old {number}", range(60 + number), kl=9.0, at=NOW - 30 * 86400)
    house.log("going on", range(70), kl=9.0)
    watcher = house.watch()
    watcher.once(GOING) if once else house.look(watcher)
    with Store(house.state) as store:
        worst = store.outbox.worst("terminal", 100)
        batches = Counter(entry.batch for entry in worst)
    assert sorted(batches.values()) == [1, 3]
    assert batches[""] == 1, "what goes on is told at once and alone"


@pytest.mark.slow
def test_a_first_look_that_takes_long_says_how_far_it_is(house, monkeypatch):
    monkeypatch.setattr("sentinel.watch.backlog._MAX_SLICE_RUNS", 64)
    for number in range(130):
        house.log(f"{number}", range(3), kl=0.1)
    watcher = house.watch()
    read = watcher._pipeline.advance
    lines = []

    def slowly(*arguments, **options):
        house.clock.advance(11)
        return read(*arguments, **options)

    monkeypatch.setattr(watcher._pipeline, "advance", slowly)
    monkeypatch.setattr("sentinel.watch.watcher._log.info", lambda text, *values: lines.append(text % values))
    watcher.once(GOING)
    *first, last = [line for line in lines if line.startswith("read ")]
    assert first
    assert last == "read 130 of 130 logs"


@pytest.mark.slow
def test_a_first_look_that_takes_many_rounds_is_one_message(house, monkeypatch):
    monkeypatch.setattr("sentinel.watch.watcher.READING_SECONDS", 0.0)
    monkeypatch.setattr(Backlog, "points", lambda _, runs: 400 * runs)
    for number in range(8):
        house.log(f"old {number}", range(60 + 900 * (number == 3)), kl=9.0, at=NOW - 3600)
    house.log("nan", range(20), kl=0.1, at=NOW - 3600, loss=1.0)
    house.log(
        "nan", range(20, 21), kl=0.1, at=NOW - 3600, loss=float("nan")
    )  # another one would make it worse
    watcher = house.watch(poll_seconds=2)
    rounds = 0
    while not rounds or watcher._new:
        rounds += 1
        house.look(watcher, hours=3 / 3600)
        with Store(house.state) as store:
            worst = store.outbox.worst("terminal", 100)
        assert not worst or not watcher._new
    assert rounds > 2
    assert len(worst) >= 9
    assert len({entry.batch for entry in worst}) == 1


@pytest.mark.slow
def test_a_run_that_appears_after_it_was_over_is_told_of_at_once(house):
    watcher = house.watch()
    house.log("first", range(60), kl=0.1)
    watcher.round(None, GOING)
    house.log("second", range(70), kl=9.0, at=NOW - 86400)
    house.clock.advance(1)
    watcher.round({house.runs / "second.jsonl"}, GOING)
    with Store(house.state) as store:
        assert "over at" in first_waiting(store.outbox, "terminal").batch


@pytest.mark.slow
@pytest.mark.parametrize("last", [{"done": True}, {}], ids=["over", "nothing said"])
def test_a_log_written_whole_a_moment_ago_is_over_as_soon_as_it_is_known_to_be_a_copy(house, last):
    house.clock = ManualClock(time.time())
    rows = [{"step": step, "kl": 0.1} for step in range(100)]
    (house.runs / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, last]))
    watcher = house.watch()

    def state():
        house.look(watcher, hours=11 / 3600)
        with Store(house.state) as store:
            (run,) = status(store, house.state, house.clock.now()).runs
            return run.state

    house.clock.advance(-11)
    assert state() == RunState.RUNNING
    assert state() == (RunState.FINISHED if last else RunState.SILENT)


@pytest.mark.long
def test_the_state_of_a_finished_run_shrinks_and_still_is_where_it_goes_on(house):
    watcher = house.watch()
    log = house.runs / "a.jsonl"
    house.log("a", range(300), kl=0.1, loss=1.0)

    def state():
        house.look(watcher, hours=0.02)
        with Store(house.state) as store:
            (run,) = store.runs()
            return store.run_state(run.id)

    growing = state()
    with log.open("a") as file:
        file.write(json.dumps({"step": 300, "done": True, "kl": 0.1}) + "\n")
    *_, finished = state(), state(), state()
    assert len(finished) < 0.8 * len(growing)
    watcher = house.watch()  # from that state
    with log.open("a") as file:
        file.writelines(
            json.dumps({"step": step, "time": NOW + step, "kl": 9.0}) + "\n" for step in range(301, 360)
        )
    assert house.look(watcher) == ["firing: first-notification"]
    whole = replay([house.runs], Config(signals={"kl": "kl"}), lambda *_: None).runs[0]
    with Store(house.state) as store:
        assert {one.id: one.fired_step for one in store.incidents()} == {
            one.id: one.fired_step for one in whole.incidents.values()
        }


def test_a_watch_rests_after_a_round_that_cost_much(house, monkeypatch):
    watcher = house.watch(poll_seconds=2.0)
    stop = threading.Event()
    waits = []
    monkeypatch.setattr(watcher, "round", lambda *_: house.clock.work(15.0))
    monkeypatch.setattr(Changes, "wait", lambda _, *seconds: waits.append(seconds) or stop.set())
    watcher.run(stop)
    assert waits == [(2.0, 15.0)]


@pytest.mark.slow
def test_what_a_killed_watch_held_is_told_by_the_next(house):
    house.log("old", range(60), kl=9.0, at=NOW - 30 * 86400)
    with Store(house.state) as store:
        watcher = house.watch()
        watcher._review = lambda: None  # it is killed before the first look is done
        house.look(watcher)
        assert first_waiting(store.outbox, "terminal") is None
        config = Config(paths=[str(house.runs)], sinks=[{"type": "terminal"}], state_dir=house.state)
        delivery = Delivery(house.state, [], house.clock)
        Watchers(config, store, delivery, house.clock, ServiceManager()).once()
        assert first_waiting(store.outbox, "terminal") is not None


@pytest.mark.long
def test_a_run_that_falls_silent_is_lost_and_one_that_goes_on_is_repeated(house):
    watcher = house.watch()
    house.log("run", range(60), kl=9.0)
    assert house.look(watcher) == ["firing: first-notification"]
    assert house.look(watcher, hours=1) == ["lost: inhibited"]
    house.log("run", range(60, 70), kl=9.0, at=NOW + 3600)
    assert house.look(watcher) == []
    with Store(house.state) as store:
        for entry in iter(lambda: first_waiting(store.outbox, "terminal"), None):
            store.outbox.sent("terminal", [entry], house.clock.now())
    house.log("run", range(70, 80), kl=12.0, at=NOW + 18000)
    assert house.look(watcher, hours=5) == ["repeat: repeat-due"]
    with Store(house.state) as store:
        summary = json.loads(first_waiting(store.outbox, "terminal").body)["incident"]["summary"]
    assert summary.startswith("the KL to the reference is 12,"), "a reminder has the number of now"


@pytest.mark.long
def test_a_run_that_stops_growing_under_the_watch_stalls_until_it_goes_on(house):
    watcher = house.watch()
    house.log("old", range(60), kl=0.1, at=NOW - 86400)
    (house.runs / "run.jsonl").write_text('{"config": {"max_steps": 900}}\n')
    house.log("run", range(60), kl=0.1)
    assert house.look(watcher, detector="stream-stall") == []
    house.log("run", range(60, 70), kl=0.1)
    assert house.look(watcher, hours=0.01, detector="stream-stall") == []
    assert house.look(watcher, hours=1, detector="stream-stall") == ["firing: first-notification"]
    house.log("run", range(70, 80), kl=0.1, at=NOW + 3600)
    assert house.look(watcher, hours=0.01, detector="stream-stall") == ["resolved: resolved"]


@pytest.mark.slow
def test_a_training_that_dies_of_an_exception_is_told_of_at_once(house):
    watcher = house.watch()
    house.log("run", range(60), kl=0.1)
    assert house.look(watcher, detector="console-error") == []
    (house.runs / "run.log").write_text('Traceback (most recent call last):\n  File "a.py", line 3\nE: x\n')
    assert house.look(watcher, detector="console-error") == ["firing: first-notification"]
    assert house.look(watcher, hours=5, detector="stream-stall") == [], "it ended"


@pytest.mark.slow
def test_an_exception_in_a_file_beside_the_log_is_noticed_when_that_file_changes(house):
    watcher = house.watch()
    house.log("run", range(60), kl=0.1)
    watcher.round(None, GOING)
    (house.runs / "run.log").write_text("Killed\n")
    watcher.round([house.runs / "run.log"], GOING)
    with Store(house.state) as store:
        assert [decision.detector for decision in store.decisions()] == ["console-error"]


@pytest.mark.slow
@pytest.mark.parametrize(("planned", "hours"), [(19, 0.02), (1000, 0.2)], ids=["finished", "lost"])
def test_a_run_that_is_over_is_judged_once_more(house, monkeypatch, planned, hours):
    incidents = {high_at_the_end.name: high_at_the_end}
    choose_detectors(monkeypatch, incidents)
    log = house.runs / "run.jsonl"
    watcher = house.watch()
    rows = ({"step": step, "time": NOW + step, "train/loss": 1.0, "train/lr": 0.1} for step in range(20))
    lines = [json.dumps(row) + "\n" for row in [{"config": {"max_steps": planned}}, *rows]]
    log.write_text("".join(lines[:10]))
    assert house.look(watcher, detector="high-at-the-end") == []
    with log.open("a") as file:
        file.writelines(lines[10:])
    assert house.look(watcher, detector="high-at-the-end") == []
    assert house.look(watcher, hours, "high-at-the-end") == ["firing: first-notification"]
    assert house.look(watcher, 0.01, "high-at-the-end") == []
    more = {"step": 20, "time": NOW + 20, "train/loss": 1.0, "train/lr": 0.1}
    with log.open("a") as file:
        file.write(json.dumps(more) + "\n")
    assert house.look(watcher, detector="high-at-the-end") == ["resolved: resolved"]
    again = house.look(watcher, 20 * hours, "high-at-the-end")
    assert again == ["firing: first-notification"], "another end is another finding"


@pytest.mark.long
def test_one_training_in_two_logs_is_told_once(house):
    house.log("run", range(60), kl=9.0)
    rows = [json.loads(line) for line in (house.runs / "run.jsonl").read_text().splitlines()]
    pl.DataFrame(rows).write_csv(house.runs / "metrics.csv")
    again = "told-of-another-log"
    result = replay([house.runs], Config(sinks=[{"type": "terminal"}], signals={"kl": "kl"}), lambda *_: None)
    outcomes = [
        outcome for run in result.runs for decisions in run.notifications.values() for outcome in decisions
    ]
    decisions = [one.decision for one in outcomes if one.incident.detector == "kl-blowup"]
    assert sorted(f"{one.event}: {one.reason}" for one in decisions) == [
        "firing: first-notification",
        f"firing: {again}",
    ]
    watcher = house.watch()
    assert house.look(watcher) == ["firing: first-notification", f"firing: {again}"]
    assert house.look(watcher, hours=1) == ["lost: inhibited", f"lost: {again}"], "the stall says it"
    assert house.look(house.watch(), hours=5) == []


@pytest.mark.slow
def test_another_configuration_reads_again_and_tells_nothing_twice(house):
    house.log("run", range(60), kl=9.0)
    house.watch().once(GOING)
    with Store(house.state) as store:
        first = {i.id for i in store.incidents()}
    assert first
    watcher = house.watch(detectors={"entropy-collapse": {"enabled": False}})
    assert house.look(watcher) == ["firing: already-sent"]
    with Store(house.state) as store:
        assert {i.id for i in store.incidents()} == first


@pytest.mark.slow
def test_a_detector_in_which_polars_panics_stops_no_other(house, monkeypatch):
    class Panic(BaseException):
        pass

    Panic.__name__ = "PanicException"

    def raising(*_: object, **__: object):
        raise Panic("index out of bounds")

    detectors = all_detectors()
    monkeypatch.setitem(detectors, "entropy-collapse", replace(detectors["entropy-collapse"], rule=raising))
    house.log("good", range(60), kl=9.0)
    assert house.look(house.watch()) == ["firing: first-notification"]
    with Store(house.state) as store:
        assert store.stops.all() == {}


@pytest.mark.slow
def test_a_detector_that_fails_and_a_source_that_fails_stop_nobody(house, monkeypatch, caplog):
    def fail(*_: object, **__: object):
        raise RuntimeError("a defect")

    poll = JsonLines.poll
    monkeypatch.setattr(
        JsonLines, "poll", lambda self, *rest: fail() if self.path.stem == "bad" else poll(self, *rest)
    )
    detectors = all_detectors()
    monkeypatch.setitem(detectors, "entropy-collapse", replace(detectors["entropy-collapse"], rule=fail))
    house.log("bad", range(60), kl=9.0)
    house.log("good", range(60), kl=9.0)
    assert house.look(house.watch()) == ["firing: first-notification"]
    house.look(house.watch(), hours=1)
    with Store(house.state) as store:
        assert store.health()["detector entropy-collapse"] == "RuntimeError: a defect"
    assert "the jsonl reader failed: RuntimeError" in caplog.text


@pytest.mark.slow
def test_a_file_that_becomes_a_log_late_is_soon_found(house):
    watcher = house.watch()
    log = house.runs / "train.log"
    watcher.round(None, GOING)
    for line in ("loading", "step 1: loss 2.0", "step 2: loss 1.5"):
        with log.open("a") as file:
            print(line, file=file)
        watcher.round({log}, GOING)
        assert not len(watcher._runs)
    house.clock.advance(5)
    watcher.round(set(), GOING)
    (watched,) = watcher._runs
    assert watched.run_pipeline.log.metadata.points == 2


@pytest.mark.slow
@pytest.mark.parametrize("changed", ["demo.db", "demo.db-wal"])
def test_a_run_that_begins_in_a_known_database_is_soon_found(house, changed):
    watcher = house.watch()
    writer = TrackioWriter()
    writer.start(house.runs)
    writer.log(1, {"loss": 1.0})
    watcher.round(None, GOING)
    watcher.round({house.runs / changed}, GOING)
    writer.run = "another"
    writer.log(1, {"loss": 1.0})
    house.clock.advance(5)
    watcher.round({house.runs / changed}, GOING)
    assert [watched.run_pipeline.log.metadata.points for watched in watcher._runs] == [1, 1]
    writer.close()


@pytest.mark.slow
def test_changes_of_a_known_run_search_nothing(house, monkeypatch):
    watcher = house.watch()
    path = house.runs / "run.jsonl"
    house.log("run", range(3), kl=0.1)
    watcher.round(None, GOING)
    watcher.round({path}, GOING)
    monkeypatch.setattr("sentinel.watch.watcher.discover", None)
    house.clock.advance(30)
    house.log("run", range(3, 6), kl=0.1)
    watcher.round({path}, GOING)
    (watched,) = watcher._runs
    assert watched.run_pipeline.log.metadata.last_step == 5
