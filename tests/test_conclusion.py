"""What is undecided while a run goes on is decided when it is over, and a replay decides the same."""

import json

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.detectors.api import Cause, Detector, History, Maturity, Severity, Variant, detector
from sentinel.detectors.evidence import Measure, Unit
from sentinel.detectors.schema import ENDED, INDEX, SERIES, VALUE
from sentinel.detectors.signals import Signal
from sentinel.detectors.skip_reason import SkipReason
from sentinel.detectors.verdict import verdicts
from sentinel.incidents.incident import State
from sentinel.incidents.json_body import incident_body
from sentinel.pipeline import Pipeline
from sentinel.sources.base import Run
from sentinel.sources.json.lines import JsonLines


@detector(
    judges=(Signal.LOSS,),
    history=History(recent=3, head=2),
    variants={"high": Variant("ends at {value:.1f}, {mean:.2f} on average over {rows} rows", ())},
    evidence={"mean": Measure("mean", Unit.SAME), "rows": Measure("averaged over", Unit.POINTS)},
    maturity=Maturity.STABLE,
    at_end=True,
    every=4,
)
def high_at_the_end(points: pl.LazyFrame) -> pl.LazyFrame:
    """A high loss, of which nobody knows before the end whether it is one."""
    recent = pl.col(VALUE).rolling_mean(4, min_samples=1).over(SERIES)
    return verdicts(
        points.with_columns(mean=recent, rows=pl.len().over(SERIES)),
        found={"high": pl.col(ENDED) & (pl.col(VALUE) > 0.5)},
        judged={SkipReason.FEW_POINTS: pl.col(INDEX) >= 3},
    )


def follow(log, detectors: tuple[Detector, ...] = (high_at_the_end,)):
    def fail(name, run, error):
        raise error

    pipeline = Pipeline(detectors, {}, {}, fail)
    return pipeline, pipeline.track(Run(log, "jsonl", JsonLines(log)), "a")


def write(log, values, begin=0):
    with log.open("a") as file:
        for step, value in enumerate(values, begin):
            file.write(json.dumps({"step": step, "train/loss": value, "train/lr": 0.1}) + "\n")


def read(pipeline, run_pipeline):
    changes = []
    more = True
    while more:
        (advance,) = pipeline.advance([run_pipeline])
        assert advance.failure is None
        changes = [*changes, *advance.changes]
        more = advance.more
    return changes


def conclude(pipeline, run_pipeline):
    (advance,) = pipeline.finalize([run_pipeline])
    assert advance.failure is None
    return [*advance.changes]


@pytest.mark.slow
def test_nothing_is_said_before_the_end_and_all_of_it_then(tmp_path):
    write(tmp_path / "a.jsonl", [1.0] * 42)
    pipeline, run_pipeline = follow(tmp_path / "a.jsonl")
    assert read(pipeline, run_pipeline) == []
    (change,) = conclude(pipeline, run_pipeline)
    incident = change.incident
    assert (incident.fired_step, incident.summary) == (41, "ends at 1.0, 1.00 on average over 6 rows")
    assert conclude(pipeline, run_pipeline) == [], "it was said"


@pytest.mark.slow
def test_a_log_too_short_to_be_named_is_judged_at_its_end(tmp_path):
    write(tmp_path / "a.jsonl", [1.0] * 4)
    pipeline, run_pipeline = follow(tmp_path / "a.jsonl")
    assert read(pipeline, run_pipeline) == []
    assert [change.incident.fired_step for change in conclude(pipeline, run_pipeline)] == [3]


def test_who_is_not_asked_at_the_end_has_no_more_rows(tmp_path):
    write(tmp_path / "a.jsonl", [1.0] * 42)

    @detector(judges=(Signal.LOSS,), history=History(), variants={"any": Variant("", ())})
    def everything(points):
        assert ENDED not in points.collect_schema()
        return points.with_columns(severity=pl.lit(2), variant=pl.lit("any"))

    pipeline, run_pipeline = follow(tmp_path / "a.jsonl", (everything,))
    assert len(read(pipeline, run_pipeline)) == 1
    (before,) = run_pipeline.incidents.open()
    assert conclude(pipeline, run_pipeline) == []
    assert run_pipeline.incidents.open() == [before]


@pytest.mark.long  # many examples
@settings(deadline=None, max_examples=30)
@given(length=st.integers(0, 60), cuts=st.lists(st.integers(0, 60), max_size=5), reload=st.booleans())
def test_the_end_is_the_same_however_the_log_grew(tmp_path_factory, length, cuts, reload):
    values = [1.0 - 0.01 * (step % 7) for step in range(length)]
    whole, grown = (tmp_path_factory.mktemp(name) / "a.jsonl" for name in ("whole", "grown"))
    for log in (whole, grown):
        log.touch()
    write(whole, values)
    expected = follow(whole)
    assert read(*expected) == []
    pipeline, run_pipeline = follow(grown)
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), length], strict=True):
        write(grown, values[begin:end], begin)
        assert read(pipeline, run_pipeline) == []
        if reload:
            state = run_pipeline.dump()
            pipeline, run_pipeline = follow(grown)
            assert run_pipeline.restore(state)
    said = [
        [(c.event, c.incident.fired_step, c.incident.summary, c.incident.findings) for c in changes]
        for changes in (conclude(*expected), conclude(pipeline, run_pipeline))
    ]
    assert said[0] == said[1]
    assert len(said[0]) == (length >= 4)


@detector(
    judges=(Signal.LOSS,),
    history=History(),
    variants={"high": Variant("is at {value:.1f}", (), (Severity.WARNING, Severity.CRITICAL))},
    cause=Cause.LOSS_SHAPE,
    inhibits=(Cause.LOSS_SHAPE,),
    clear=3,
    at_end=True,
)
def high(points: pl.LazyFrame) -> pl.LazyFrame:
    """A high loss; one that ends high is worse."""
    worse = pl.col(ENDED) & (pl.col(VALUE) > 0.6)
    return verdicts(
        points, found={"high": (pl.col(VALUE) > 0.8) | worse}, severities={Severity.CRITICAL: worse}
    )


BOTH = replace(high_at_the_end, cause=Cause.LOSS_SHAPE, every=1), high


@pytest.mark.long  # many examples
@settings(deadline=None, max_examples=40)
@example(parts=[[0.1, 0.9, 0.9, 0.1], [0.1, 0.7], [0.1]], names=["train/lr"], reload=False)
@given(
    parts=st.lists(st.lists(st.sampled_from([0.1, 0.7, 0.9]), max_size=8), min_size=1, max_size=5),
    names=st.sampled_from([["train/lr"], ["train/lr", "train/epoch", "eval/loss"]]),
    reload=st.booleans(),
)
def test_a_run_that_goes_on_after_it_seemed_over_has_the_incidents_of_a_replay(
    tmp_path_factory, parts, names, reload
):
    """Also one that was too short to be named at its first end, and one that begins anew."""
    log = tmp_path_factory.mktemp("run") / "a.jsonl"
    log.touch()
    pipeline, run_pipeline = follow(log, BOTH)
    watched = {}
    for number, values in enumerate(parts):
        with log.open("a") as file:
            for step, value in enumerate(values, 0 if number == 3 else 10 * number):
                row = {"step": step, "train/loss": value, **dict.fromkeys(names[: number + 1], 0.5)}
                file.write(json.dumps(row) + "\n")
        for change in [
            *read(pipeline, run_pipeline),
            *conclude(pipeline, run_pipeline),
            *conclude(pipeline, run_pipeline),
        ]:
            watched[change.incident.id] = change.incident
        if reload:
            state = run_pipeline.dump()
            pipeline, run_pipeline = follow(log, BOTH)
            assert run_pipeline.restore(state)
        watched |= {incident.id: incident for incident in run_pipeline.incidents.open()}
    once = follow(log, BOTH)
    changes = [*read(*once), *conclude(*once)]
    replayed = {change.incident.id: change.incident for change in changes}
    replayed |= {incident.id: incident for incident in once[1].incidents.open()}
    kept = {key: one for key, one in watched.items() if one.state is not State.WITHDRAWN}
    assert {key: incident_body(one) for key, one in kept.items()} == {
        key: incident_body(one) for key, one in replayed.items()
    }
    assert [*run_pipeline.incidents.open()] == [*once[1].incidents.open()]


@pytest.mark.slow
def test_what_was_found_at_an_end_is_withdrawn_when_the_run_goes_on(tmp_path):
    log = tmp_path / "a.jsonl"
    write(log, [1.0] * 42)
    pipeline, run_pipeline = follow(log)
    read(pipeline, run_pipeline)
    (found,) = conclude(pipeline, run_pipeline)
    write(log, [1.0] * 2, begin=42)
    (change,) = read(pipeline, run_pipeline)
    assert (change.event, change.incident.state) == ("resolved", "withdrawn")
    assert change.incident.id == found.incident.id
    assert run_pipeline.incidents.open() == []
    (again,) = conclude(pipeline, run_pipeline)
    assert again.event == "firing"
    assert again.incident.id != found.incident.id, "so that it is told, although the other was withdrawn"


@pytest.mark.slow
def test_nothing_is_lost_that_was_found_because_the_log_went_silent(tmp_path):
    write(tmp_path / "a.jsonl", [1.0] * 42)
    pipeline, run_pipeline = follow(tmp_path / "a.jsonl")
    read(pipeline, run_pipeline)
    conclude(pipeline, run_pipeline)
    assert run_pipeline.incidents.silent(1000, 600) == []


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [1, 2])
def test_only_the_last_attempt_is_judged_again(tmp_path, restarts):
    for _ in range(restarts):
        write(tmp_path / "a.jsonl", [1.0] * 42)
    write(tmp_path / "a.jsonl", [0.1] * 42)
    pipeline, run_pipeline = follow(tmp_path / "a.jsonl")
    assert read(pipeline, run_pipeline) == []
    assert conclude(pipeline, run_pipeline) == []
