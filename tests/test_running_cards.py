"""Cards are read while a run goes on: at the same rows however the log grew, and as a replay reads them."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.detectors.api import Detector
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.reading.looks import looks
from sentinel.detectors.reading.opinion import EVIDENCE
from sentinel.incidents.incident import Event
from sentinel.incidents.json_body import incident_body
from sentinel.pipeline import Pipeline
from sentinel.sources.base import Run
from sentinel.sources.json.lines import JsonLines
from tests.test_conclusion import conclude, read


def clean(points: pl.LazyFrame) -> pl.LazyFrame:
    """A rule that finds nothing, so that all is found by cards."""
    return points.with_columns(severity=pl.lit(0))


def of_cards(name: str) -> Detector:
    detector = all_detectors()[name]
    assert isinstance(detector, Detector)
    variants = {claim: detector.variants[claim] for claim in detector.reads}
    return replace(detector, rule=clean, evidence=EVIDENCE, variants=variants)


DETECTORS = tuple(
    of_cards(name)
    for name in ("reward-collapse", "reward-stagnation", "loss-divergence", "generalization-gap")
)

NOISE = np.random.default_rng(3).normal(0, 4, 2000)
RISE = np.linspace(0, 300, 100)
FALL = np.linspace(300, -150, 60)
FELL = np.r_[RISE, FALL, np.full(140, -150.0)]
"""A reward that fell below its start, and stays there."""


def follow(log, detectors=DETECTORS):
    def fail(name, run, error):
        raise error

    pipeline = Pipeline(detectors, {}, {}, fail)
    return pipeline, pipeline.track(Run(log, "jsonl", JsonLines(log)), "a")


def write(log, values, begin=0, tag="rollout/ep_rew_mean"):
    with log.open("a") as file:
        for step, value in enumerate(values, begin):
            file.write(json.dumps({"step": step, tag: value, "train/learning_rate": 0.1}) + "\n")


def reward(*parts):
    values = np.concatenate(parts)
    return (values + NOISE[: len(values)]).tolist()


def test_a_card_fires_while_the_run_goes_on(tmp_path):
    write(tmp_path / "a.jsonl", reward(FELL))
    (fired,) = read(*follow(tmp_path / "a.jsonl"))
    assert fired.incident.detector == "reward-collapse"
    assert fired.incident.fired_step in looks(1)
    assert 140 < fired.incident.fired_step < 260
    assert 95 < fired.incident.onset_step < 120
    assert "pages while it runs from" in fired.incident.summary
    assert "pages while it runs from" in fired.incident.evidence["card"]


@pytest.mark.slow
def test_it_fires_at_the_row_in_a_watch_at_which_a_replay_fires(tmp_path):
    log = tmp_path / "a.jsonl"
    write(log, reward(FELL))
    (replayed,) = read(*follow(log))
    grown = tmp_path / "b.jsonl"
    grown.touch()
    watched = follow(grown)
    fired_at = []
    for step, value in enumerate(reward(FELL)):
        write(grown, [value], step)
        fired_at += [(step, change.incident.summary) for change in read(*watched)]
    # The row is judged when its partner of the same line has come, or the next line.
    assert [(step, summary) for step, summary in fired_at] == [
        (replayed.incident.fired_step, replayed.incident.summary)
    ]


HEALTHY = {
    "rises": reward(np.linspace(0, 300, 600)),
    "a dip that heals": reward(RISE, np.linspace(300, 100, 10), np.linspace(100, 320, 20), np.full(300, 320)),
    "many dips": reward(*[np.r_[np.linspace(0, 300, 60), np.linspace(300, 120, 15)] for _ in range(6)]),
    "slow at first": reward(np.zeros(60), np.linspace(0, 300, 300)),
    "rests at its best": reward(RISE, np.full(400, 300.0)),
    "two rewards, repeated until the next one": [250.0] * 12
    + [20.0] * 14
    + [*np.repeat(RISE[::4] + 120, 13)],
    "met thrice in fifty episodes": [
        -10.45 + 0.1 * (n % 3) + {3: 50, 19: 240, 38: 50}.get(n, 0) for n in range(52)
    ],
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_pages_at_no_look(tmp_path, name):
    write(tmp_path / "a.jsonl", HEALTHY[name])
    assert read(*follow(tmp_path / "a.jsonl")) == []


def test_what_recovers_is_resolved_at_a_look(tmp_path):
    write(tmp_path / "a.jsonl", reward(FELL, np.linspace(-150, 320, 150), np.full(600, 320.0)))
    fired, resolved = read(*follow(tmp_path / "a.jsonl"))
    assert [fired.event, resolved.event] == [Event.FIRING, Event.RESOLVED]
    assert resolved.incident.resolved_step in looks(1)


def test_a_card_that_a_run_ends_with_goes_on_with_it(tmp_path):
    write(tmp_path / "a.jsonl", reward(FELL))
    run = follow(tmp_path / "a.jsonl")
    (fired,) = read(*run)
    assert conclude(*run) == []
    (incident,) = run[1].incidents.open()
    assert incident.id == fired.incident.id


def test_the_end_takes_back_what_a_look_found(tmp_path):
    # The last look is at 448 points; the run is well by the end.
    write(tmp_path / "a.jsonl", reward(FELL, np.linspace(-150, 290, 60), np.linspace(290, 420, 150)))
    run = follow(tmp_path / "a.jsonl")
    changes = read(*run) + conclude(*run)
    assert [change.event for change in changes] == [Event.FIRING, Event.RESOLVED]
    assert run[1].incidents.open() == []


def test_a_loss_beside_a_return_is_no_outcome(tmp_path):
    log = tmp_path / "a.jsonl"
    loss = np.r_[np.linspace(3, 1, 100), np.linspace(1, 9, 60), np.full(200, 9.0)]
    with log.open("w") as file:
        for step, value in enumerate(loss):
            row = {"step": step, "train/loss": value, "rollout/ep_rew_mean": float(step)}
            file.write(json.dumps(row) + "\n")
    assert read(*follow(log)) == []
    write(tmp_path / "b.jsonl", loss.tolist(), tag="train/loss")
    assert [c.incident.detector for c in read(*follow(tmp_path / "b.jsonl"))] == ["loss-divergence"]


@pytest.mark.long  # many examples
@settings(deadline=None, max_examples=25)
@given(
    cuts=st.lists(st.integers(0, 700), max_size=8),
    tail=st.sampled_from(["stays", "recovers", "recovers late"]),
    reload=st.booleans(),
)
def test_a_watch_finds_what_a_replay_finds(tmp_path_factory, cuts, tail, reload):
    ends = {
        "stays": np.full(400, -150.0),
        "recovers": np.r_[np.linspace(-150, 320, 100), np.full(300, 320.0)],
        "recovers late": np.r_[np.full(200, -150.0), np.linspace(-150, 320, 200)],
    }
    values = reward(FELL, ends[tail])
    whole, grown = (tmp_path_factory.mktemp(name) / "a.jsonl" for name in ("whole", "grown"))
    grown.touch()
    write(whole, values)
    once = follow(whole)
    expected = read(*once) + conclude(*once)
    run = follow(grown)
    found = []
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(values)], strict=True):
        write(grown, values[begin:end], begin)
        found += read(*run)
        if reload:
            state = run[1].dump()
            run = follow(grown)
            assert run[1].restore(state)
    found += conclude(*run)
    assert [(c.event, body(c.incident)) for c in found] == [(c.event, body(c.incident)) for c in expected]


OF_A_LOSS = (of_cards("flat-loss-at-init"),)


def write_epochs(log, loss, accuracy, begin=0):
    with log.open("a") as file:
        for epoch in range(begin, len(loss)):
            row = {"step": epoch, "epoch": epoch, "train/loss": loss[epoch], "eval/accuracy": accuracy[epoch]}
            file.write(json.dumps(row) + "\n")


def flat_loss(falls_from, epochs=140):
    late = np.clip((np.arange(epochs) - falls_from) / 40, 0, 1)
    return (2.3 - late + NOISE[:epochs] / 4000).tolist()


def test_a_loss_that_stood_at_its_start_is_told_after_some_epochs_and_resolved_when_it_falls(tmp_path):
    log = tmp_path / "a.jsonl"
    write_epochs(log, flat_loss(60), np.full(140, 0.1).tolist())
    fired, resolved = read(*follow(log, OF_A_LOSS))
    assert (fired.event, fired.incident.fired_step) == (Event.FIRING, 27)
    assert fired.incident.summary.endswith("if it did for 30% of the rows")
    assert resolved.event is Event.RESOLVED
    assert 60 < resolved.incident.resolved_step < 120


@pytest.mark.long  # many examples
@settings(deadline=None, max_examples=15)
@given(
    cuts=st.lists(st.integers(0, 140), max_size=6),
    falls_from=st.sampled_from([10, 60, 140]),
    learns_from=st.sampled_from([0, 30, 140]),
    reload=st.booleans(),
)
def test_a_watch_finds_in_epochs_what_a_replay_finds(tmp_path_factory, cuts, falls_from, learns_from, reload):
    loss = flat_loss(falls_from)
    accuracy = (0.1 + np.clip(np.arange(140) - learns_from, 0, 60) / 100).tolist()
    whole, grown = (tmp_path_factory.mktemp(name) / "a.jsonl" for name in ("whole", "grown"))
    grown.touch()
    write_epochs(whole, loss, accuracy)
    once = follow(whole, OF_A_LOSS)
    expected = read(*once) + conclude(*once)
    run = follow(grown, OF_A_LOSS)
    found = []
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), 140], strict=True):
        write_epochs(grown, loss[:end], accuracy, begin)
        found += read(*run)
        if reload:
            state = run[1].dump()
            run = follow(grown, OF_A_LOSS)
            assert run[1].restore(state)
    found += conclude(*run)
    assert [(c.event, body(c.incident)) for c in found] == [(c.event, body(c.incident)) for c in expected]


def body(incident):
    """An incident without what names its log."""
    stated = incident_body(incident)
    return {key: value for key, value in stated.items() if key not in ("id", "trouble")}
