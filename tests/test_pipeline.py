"""The pipeline as a training could drive it: the source is in memory, and there is no configuration."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
import polars
import pytest
from msgspec.structs import replace

from sentinel.detection import row_detection
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.skip_reason import SkipReason
from sentinel.incidents.duplicates import KnownIncidents
from sentinel.notifications.decide import SinkPolicy
from sentinel.notifications.routing import RoutingContext
from sentinel.pipeline import Pipeline
from sentinel.runs.inactivity import Inactivity
from sentinel.sources.base import Chunk, PollResult, Run
from sentinel.sources.location import Url

START = 1.7e9


class Memory:
    """Points that are handed over as they come."""

    def __init__(self) -> None:
        self._points: list[tuple[int, float]] = []

    def log(self, step: int, kl: float) -> None:
        self._points.append((step, kl))

    def poll(self, cursor, limit):
        begin = cursor.get("points", 0)
        points = np.array(self._points[begin : begin + limit]).reshape(-1, 2)
        step = points[:, 0]
        value = points[:, 1]
        tag = np.zeros(len(points), np.uint32)
        chunk = Chunk("", ["kl"], tag, step.astype(np.int64), START + step, value)
        end = begin + len(points)
        return PollResult({"points": end}, [chunk], more=end < len(self._points))


def pipeline(names: Iterable[str] = ("kl-blowup",), meaning: str = "kl") -> Pipeline:
    def failed(detector: str, run: str, error: Exception) -> None:
        raise error

    chosen = [all_detectors()[name] for name in names]
    return Pipeline(chosen, {"kl-blowup": {"critical_per_token": 2.0}}, {"kl": meaning}, failed)


@pytest.mark.long
def test_a_callback_drives_it_without_files_or_configuration():
    source = Memory()
    engine = pipeline()
    sent = []
    run_pipeline = engine.track(Run(Url("memory", ("training",)), "memory", source), "training")
    audience = RoutingContext([SinkPolicy("pager")], (), {}, KnownIncidents([]))
    for number in range(60):
        source.log(number, 0.01 if number < 40 else 5.0)
        (advance,) = engine.advance([run_pipeline])
        assert advance.failure is None
        sent += run_pipeline.route(advance.changes, audience, now=START + number)
    assert [(one.sink, one.incident.detector, one.decision.event, one.decision.reason) for one in sent] == [
        ("pager", "kl-blowup", "firing", "first-notification")
    ]
    assert 40 <= sent[0].incident.fired_step < 60
    assert sent[0].body["run"] == {
        "run": "training",
        "path": "memory://training",
        "framework": None,
        "location": "memory://training",
        "host": None,
        "planned_steps": None,
        "world_size": None,
        "owner": None,
        "label": {"project": "", "name": ""},
    }


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_it_makes_no_difference_how_much_is_read_at_once(at_once):
    source = Memory()
    engine = pipeline()
    changes = []
    for number in range(100):
        source.log(number, 0.01 if number < 40 else 5.0)
    run_pipeline = engine.track(Run(Url("memory", ("training",)), "memory", source), "training")
    more = True
    while more:
        (advance,) = engine.advance([run_pipeline], at_once)
        changes += advance.changes
        more = advance.more
    assert [(c.event, c.incident.fired_step) for c in changes] == [("firing", changes[0].incident.fired_step)]


@pytest.mark.long
@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_steps_that_order_nothing_are_told_where_judging_stopped(at_once):
    source = Memory()
    engine = pipeline(["kl-blowup", "judging-stopped"])
    changes = []
    for pair in range(100):
        source.log(pair, 0.01)
        source.log(1000 + pair, 0.01)
    run_pipeline = engine.track(Run(Url("memory", ("training",)), "memory", source), "training")
    more = True
    while more:
        (advance,) = engine.advance([run_pipeline], at_once)
        changes += advance.changes
        changes += engine.review(run_pipeline, Inactivity(0.0))
        more = advance.more
    (change,) = changes
    results = change.incident
    assert (results.detector, results.severity, results.fired_step, results.findings) == (
        "judging-stopped",
        1,
        64,
        1,
    )
    assert "went back more than 64 times" in results.summary
    assert run_pipeline.log.stopped in results.summary


class Layers(Memory):
    """Many tags that mean the same, of which each step logs one more."""

    def poll(self, cursor, limit):
        begin = cursor.get("points", 0)
        end = min(cursor.get("points", 0) + limit, 300)
        step = np.arange(begin, end)
        tags = [f"kl/{layer}" for layer in step]
        chunk = Chunk(
            "", tags, (step - begin).astype(np.uint32), step, START + step, np.full(len(step), 0.01)
        )
        return PollResult({"points": end}, [chunk], more=end < 300)


@pytest.mark.long
@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_tags_that_are_too_many_are_said_once_where_they_begin(at_once):
    engine = Pipeline(all_detectors().values(), {}, {"kl/*": "kl"}, print)
    changes = []
    run_pipeline = engine.track(Run(Url("memory", ("training",)), "memory", Layers()), "training")
    more = True
    while more:
        (step,) = engine.advance([run_pipeline], at_once)
        changes += step.changes
        state = run_pipeline.dump()
        more = step.more
        run_pipeline = engine.track(run_pipeline.log.run, "training")
        assert run_pipeline.restore(state)
    (results,) = [change.incident for change in changes if change.incident.detector == "judging-stopped"]
    assert (results.severity, results.fired_step, results.fired_time, results.findings) == (
        1,
        128,
        START + 128,
        1,
    )
    assert "kl has more than 128 tags" in results.summary
    assert run_pipeline.log.stopped is None, "all else is judged"


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [7, 300_000])
def test_rows_that_a_detector_looked_at_are_counted_once(at_once):
    source = Memory()
    engine = pipeline()
    row_counts = Counter()
    run_pipeline = engine.track(Run(Url("memory", ("training",)), "memory", source), "training")
    for number in range(60):
        source.log(number, 0.01)
    more = True
    while more:
        (advance,) = engine.advance([run_pipeline], at_once)
        row_counts.update(advance.row_counts)
        more = advance.more
    assert row_counts == {("kl-blowup", SkipReason.FEW_POINTS): 9, ("kl-blowup", ""): 51}


@pytest.mark.parametrize("rows", [3, 4])
def test_the_last_row_is_not_skipped_twice(rows):
    source = Memory()
    engine = pipeline(["zero-gradient"], "grad_norm")
    run_pipeline = engine.track(Run(Url("memory", ("training",)), "memory", source), "training")
    for number in range(rows):
        source.log(number, 0.0)
    (advance,) = engine.advance([run_pipeline])
    assert bool(advance.row_counts) == (rows > 3), "three are too few to know what they are"
    row_counts = advance.row_counts + engine.finalize([run_pipeline])[0].row_counts
    assert row_counts == {("zero-gradient", SkipReason.FEW_POINTS): rows}


@pytest.mark.parametrize("at_once", [7, 300_000])
def test_a_run_that_is_over_is_judged_with_its_end_and_alike(monkeypatch, at_once):
    judged = []
    frame = row_detection.frame

    def counted(detector, series):
        judged.append(detector.name)
        return frame(detector, series)

    monkeypatch.setattr(row_detection, "frame", counted)

    def told(*, are_over):
        judged.clear()
        source = Memory()
        for number in range(60):
            source.log(number, 0.0 if number > 30 else 1.0)
        engine = pipeline(["zero-gradient"], "grad_norm")
        run_pipeline = engine.track(Run(Url("memory", ("training",)), "memory", source), "training")
        changes = []
        row_counts = Counter()
        more = True
        while more:
            (advance,) = engine.advance([run_pipeline], at_once, are_over=are_over)
            changes += advance.changes
            row_counts += advance.row_counts
            more = advance.more
        if not are_over:
            (advance,) = engine.finalize([run_pipeline])
            changes += advance.changes
            row_counts += advance.row_counts
        return changes, row_counts, len(judged)

    *apart, judgements_apart = told(are_over=False)
    *together, judgements = told(are_over=True)
    assert together == apart
    assert judgements == judgements_apart - 1


@pytest.mark.slow
def test_detectors_that_judge_at_once_find_the_same(monkeypatch):
    def broken(points, **_):
        raise ValueError("broken")

    failed = []
    results = []
    kl = all_detectors()["kl-blowup"]
    detectors = [replace(kl, name="broken", rule=broken), kl, replace(kl, name="kl-blowup-again")]
    source = Memory()
    for number in range(200):
        source.log(number, 0.01 if number % 80 < 40 else 5.0)
    for threads, worth in (1, 10_000), (2, 0):
        monkeypatch.setattr(polars, "thread_pool_size", lambda threads=threads: threads)
        monkeypatch.setattr(row_detection, "_MIN_ROWS_FOR_THREADS", worth)
        engine = Pipeline(detectors, {}, {"kl": "kl"}, lambda name, *_: failed.append(name))
        run_pipeline = engine.track(Run(Url("memory", ("training",)), "memory", source), "training")
        (advance,) = engine.advance([run_pipeline])
        results.append((advance.changes, advance.row_counts))
    assert failed == ["broken", "broken"]
    assert results[0] == results[1]
    assert {change.incident.detector for change in results[0][0]} == {"kl-blowup", "kl-blowup-again"}
