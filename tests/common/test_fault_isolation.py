"""Whatever stage raises for one of five runs, the other four are judged, recorded and told as ever."""

import json
import threading
from pathlib import Path

import pytest

from sentinel.config.file import Config
from sentinel.detection.row_detection import RowDetection
from sentinel.incidents.lifecycle import IncidentTracker
from sentinel.replays.listing import list_runs
from sentinel.replays.replaying import replay
from sentinel.report.status import status
from sentinel.run_pipeline import RunPipeline
from sentinel.runs import state
from sentinel.runs.log import RunLog
from sentinel.series.stream import Stream
from sentinel.sinks.delivery import Delivery
from sentinel.sources.json.lines import JsonLines
from sentinel.sources.registry import Format, formats
from sentinel.storage.store import Store
from sentinel.telemetry.health import Health
from sentinel.telemetry.metrics import Metrics
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.watched import WatchedRun
from sentinel.watch.watcher import Watcher
from tests.manual_clock import ManualClock

NOW = 1.7e9
GOING = threading.Event()
SIGNALS = {"kl": "kl"}
BAD = "c.jsonl"
NAMES = ["a.jsonl", "b.jsonl", BAD, "d.jsonl", "e.jsonl"]


class Panic(BaseException):
    """Stands for polars' own, which is no Exception either."""


Panic.__name__ = "PanicException"


@pytest.fixture
def runs(tmp_path):
    place = tmp_path / "runs"
    place.mkdir()
    for number, name in enumerate(NAMES):
        grow(place / name, range(60), 5.0 + number)
    return place


def grow(path: Path, steps: range, kl: float) -> None:
    with path.open("a") as file:
        for step in steps:
            row = {"step": step, "time": NOW + step, "kl": kl}
            file.write(json.dumps(row) + "\n")


def fail(error: type[BaseException] = RuntimeError):
    raise error("a defect")


def find(monkeypatch):
    original = formats()["jsonl"].find
    broken = Format(lambda where, names: fail() if BAD in names else original(where, names))
    monkeypatch.setitem(formats(), "jsonl", broken)


def poll(monkeypatch):
    original = JsonLines.poll
    monkeypatch.setattr(
        JsonLines, "poll", lambda self, *rest: fail() if self.path.name == BAD else original(self, *rest)
    )


def absorb(monkeypatch):
    original = RunLog.ingest
    monkeypatch.setattr(
        RunLog,
        "ingest",
        lambda self, *arguments: fail(Panic) if self.name == BAD else original(self, *arguments),
    )


def name(monkeypatch):
    original = Stream.extend

    def extend(self, chunk, read_at):
        if chunk.value[0] == 5.0 + NAMES.index(BAD) or 5.0 + NAMES.index(BAD) in chunk.value[:5]:
            fail()
        return original(self, chunk, read_at)

    monkeypatch.setattr(Stream, "extend", extend)


def judge(monkeypatch):
    original = RowDetection.segments

    def stretches(self, arrived, awake):
        results = [*original(self, arrived, awake)]
        if any(one.run.endswith(BAD) for one in arrived):
            fail(Panic)  # after all runs were judged at once, so that each is judged again
        return results

    monkeypatch.setattr(RowDetection, "segments", stretches)


def advance(monkeypatch):
    original = IncidentTracker.advance
    monkeypatch.setattr(
        IncidentTracker,
        "advance",
        lambda self, results: fail() if self._run.endswith(BAD) else original(self, results),
    )


def tell(monkeypatch):
    original = RunPipeline.route
    monkeypatch.setattr(
        RunPipeline, "route", lambda self, *news: fail() if self.log.name == BAD else original(self, *news)
    )


def dump(monkeypatch):
    original = RunPipeline.dump
    monkeypatch.setattr(
        RunPipeline, "dump", lambda self: {1: fail()} if self.log.name == BAD else original(self)
    )


def review(monkeypatch):
    original = state.last_write
    monkeypatch.setattr(state, "last_write", lambda path: fail() if path.name == BAD else original(path))


STAGES = [poll, absorb, name, judge, advance, tell, dump]


class House:
    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.state = runs.parent / "state"
        self.clock = ManualClock(NOW)

    def watch(self) -> Watcher:
        config = Config(paths=[str(self.runs)], sinks=[{"type": "terminal"}], signals=SIGNALS)
        store = Store(self.state)
        return Watcher(config, store, Delivery(self.state, [], self.clock), self.clock, ServiceManager())

    def told(self, detector: str = "kl-blowup") -> dict[str, list[str]]:
        """What was decided of each run about the incidents of one detector, oldest first."""
        results: dict[str, list[str]] = {}
        with Store(self.state) as store:
            for one in reversed(store.decisions(1000)):
                if one.detector != detector:
                    continue
                results.setdefault(Path(one.run).name, []).append(f"{one.event}: {one.reason}")
        return results

    def stopped(self) -> dict[str, str]:
        with Store(self.state) as store:
            return {Path(stop.path).name: stop.reason for stop in store.stops.all().values()}


@pytest.fixture
def house(runs):
    return House(runs)


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_in_a_watch(house, monkeypatch, stage, caplog):
    with monkeypatch.context() as broken:
        stage(broken)
        watcher = house.watch()
        watcher.round(None, GOING)
        others = {name: ["firing: first-notification"] for name in NAMES if name != BAD}
        assert house.told() == others
        (reason,) = house.stopped().values()
        assert "a defect" in reason
        assert [line for line in caplog.text.splitlines() if BAD in line and "a defect" in line]
        house.clock.advance(59)
        watcher.round(None, GOING)
    watcher.round(None, GOING)
    assert house.told() == others, "a run that failed rests before it is tried again"
    house.clock.advance(1)
    watcher.round(None, GOING)
    assert house.told() == others | {BAD: ["firing: first-notification"]}
    assert house.stopped() == {}
    reports = house.told("judging-stopped")
    if stage not in (advance, tell, dump):  # without these there is no incident of a run
        assert reports == {BAD: ["firing: below-sink-severity", "resolved: not-sent-before"]}


@pytest.mark.slow
def test_state_that_cannot_be_restored_costs_that_run_a_re_read(house, monkeypatch, caplog):
    house.watch().once(GOING)
    for name in NAMES:
        grow(house.runs / name, range(60, 70), 9.0)
    with monkeypatch.context() as broken:
        original = RunPipeline.restore
        broken.setattr(
            RunPipeline,
            "restore",
            lambda self, state: fail() if self.log.name == BAD else original(self, state),
        )
        watcher = house.watch()
        watcher.round(None, GOING)
    assert {run.run_pipeline.log.metadata.points for run in watcher._runs} == {70}
    assert caplog.text.count("its saved state cannot be used") == 1
    assert house.stopped() == {}
    assert all(expected[0] == "firing: first-notification" for expected in house.told().values())


@pytest.mark.slow
def test_a_search_that_fails_at_one_file_finds_the_others(house, monkeypatch, caplog):
    with monkeypatch.context() as broken:
        find(broken)
        watcher = house.watch()
        watcher.round(None, GOING)
    assert sorted(house.told()) == [name for name in NAMES if name != BAD]
    assert caplog.text.count(f"{BAD}: cannot be searched (RuntimeError)") == 1
    watcher.round(None, GOING)
    assert sorted(house.told()) == NAMES


@pytest.mark.slow
@pytest.mark.parametrize("stage", [poll, absorb, name, judge, advance])
def test_in_a_replay(runs, monkeypatch, stage):
    stage(monkeypatch)
    results = replay([runs], Config(signals=SIGNALS), lambda *_: None).runs
    assert {
        run.run_pipeline.log.name: sum(one.detector == "kl-blowup" for one in run.incidents.values())
        for run in results
        if not run.stopped
    } == dict.fromkeys((n for n in NAMES if n != BAD), 1)
    (bad,) = (run for run in results if run.stopped)
    assert "a defect" in bad.stopped
    if stage is not advance:
        summaries = [i.summary for i in bad.incidents.values() if i.detector == "judging-stopped"]
        assert [f"the run is not judged at present: {bad.failure}"] == summaries


@pytest.mark.slow
def test_in_the_review_of_a_watch(house, monkeypatch, caplog):
    with monkeypatch.context() as broken:
        review(broken)
        watcher = house.watch()
        watcher.round(None, GOING)
        expected = {name: ["firing: first-notification"] for name in NAMES}
        assert house.told() == expected, "it was judged before"
        assert [line for line in caplog.text.splitlines() if f"{BAD} is not judged" in line]
        assert [*house.stopped()] == [BAD]
    house.clock.advance(3600)
    watcher.round(None, GOING)
    assert house.stopped() == {}


@pytest.mark.slow
def test_in_status_and_metrics(house, monkeypatch):
    watcher = house.watch()
    watcher.once(GOING)
    metrics = Metrics(house.state, Health(), house.clock)
    metrics.logs = watcher.logs
    review(monkeypatch)
    with Store(house.state) as store:
        page = status(store, house.state, NOW)
    unknown = {run.row.path: run.evidence for run in page.runs if run.state == "unknown"}
    assert unknown == {str(house.runs / BAD): "it cannot be looked at: RuntimeError: a defect"}
    assert len(page.incidents) == len(NAMES)
    results = {metric.name: metric for metric in metrics.collect()}
    assert sum(sample.value for sample in results["sentinel_runs"].samples) == len(NAMES) - 1
    assert results["sentinel_runs_not_judged"].samples[0].value == 1


@pytest.mark.slow
@pytest.mark.parametrize("stage", [poll, absorb, name, review])
def test_in_a_listing(runs, monkeypatch, stage):
    stage(monkeypatch)
    results = list_runs([runs], {}, (), NOW).runs
    assert [run.overview.name for run in results] == NAMES
    assert [run.overview.name for run in results if run.stopped] == [BAD]


@pytest.mark.long
def test_a_run_that_goes_on_failing_is_tried_ever_less(house, monkeypatch):
    poll(monkeypatch)
    watcher = house.watch()
    tried = []
    failed = WatchedRun.failed
    monkeypatch.setattr(
        WatchedRun, "failed", lambda self, *how: tried.append(house.clock.monotonic()) or failed(self, *how)
    )
    for _ in range(40):
        watcher.round(None, GOING)
        house.clock.advance(60)
    assert tried == [0, 60, 180, 420, 900, 1860]
