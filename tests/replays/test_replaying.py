"""What a replay says would have been told, and why the rest would not."""

import json
from collections import Counter
from types import SimpleNamespace

import pytest

from sentinel.config.file import Config
from sentinel.detectors.api import Severity
from sentinel.notifications.decide import SinkPolicy
from sentinel.replays.judged import JudgedRun
from sentinel.replays.replaying import replay, simulate_notifications
from sentinel.report.json import document
from sentinel.run_pipeline import Advance
from sentinel.runs.ingested import NOTHING
from sentinel.sources.identity import RunIdentity
from tests.incidents.timeline import changed, rows, tracker

STEPS = range(60)


def log(path, kl, at=1.7e9):
    rows = [
        {"step": i, "time": at + i, "kl": kl, "reward": 0.5, "reward_std": 0.1, "entropy": 0.4} for i in STEPS
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def told(place, **sink):
    config = Config(sinks=[{"type": "terminal", **sink}], signals={"kl": "kl"})
    runs = document(replay([place], config, lambda *_: None), 2e9)["runs"]
    incidents = [incident for run in runs for incident in run["incidents"]]
    return [one for i in incidents if i["detector"] == "kl-blowup" for one in i["notifications"]]


@pytest.mark.slow
def test_a_sink_that_wants_it_is_told(tmp_path):
    log(tmp_path / "a.jsonl", kl=9.0)
    assert told(tmp_path) == [{"sink": "terminal", "event": "firing", "reason": "first-notification"}]


@pytest.mark.slow
def test_what_is_not_told_has_its_reason(tmp_path):
    log(tmp_path / "a.jsonl", kl=1.0)
    (one,) = told(tmp_path, min_severity="critical")
    assert one["reason"] == "below-sink-severity"


@pytest.mark.slow
def test_an_old_log_is_told_as_it_would_have_been_then(tmp_path):
    log(tmp_path / "a.jsonl", kl=9.0, at=1e9)
    assert [one["reason"] for one in told(tmp_path)] == ["first-notification"]


@pytest.mark.slow
def test_the_earlier_log_of_one_training_tells(tmp_path):
    """Whichever comes first by name: a replay decides in the order in which it happened."""
    log(tmp_path / "metrics.jsonl", kl=9.0)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) | {"time": 1.7e9 + 5 + i} for i, line in enumerate(lines)]
    names = list(rows[0])
    lines = [",".join(names), *(",".join(str(row[name]) for name in names) for row in rows)]
    (tmp_path / "metrics.csv").write_text("\n".join(lines) + "\n")
    runs = document(replay([tmp_path], Config(signals={"kl": "kl"}), lambda *_: None), 2e9)["runs"]
    decided = {
        run["source"]: incident["notifications"][0]["reason"]
        for run in runs
        for incident in run["incidents"]
        if incident["detector"] == "kl-blowup"
    }
    assert decided == {"jsonl": "first-notification", "csv": "told-of-another-log"}


def replayed(verdicts, policies, pieces):
    """What the sinks would have heard of one run whose verdicts came in so many pieces."""
    ours = tracker()
    run_pipeline = SimpleNamespace(
        id="jsonl:/a", log=None, described=lambda: RunIdentity(run="a", path="/a"), tracker=ours
    )
    run = JudgedRun(run_pipeline)
    for piece in range(pieces):
        begin, end = (1000 * part // pieces for part in (piece, piece + 1))
        part = [stretch for stretch in verdicts if begin <= stretch[0].index < end]
        run.add(Advance(run.run_pipeline, NOTHING, ours.advance(part), None, Counter()))
    simulate_notifications([run], policies)
    outcomes = (outcome for decisions in run.notifications.values() for outcome in decisions)
    return {(o.sink, o.incident.detector, str(o.decision.event), str(o.decision.reason)) for o in outcomes}


@pytest.mark.parametrize("pieces", [1, 7, 1000])
def test_what_was_found_before_its_cause_is_told(pieces):
    cause = changed(rows("ww", "loss-scale-collapse", first=500), onset=lambda: (0, None))
    effect = rows("cccc", "flat-loss-at-init", tag="loss")
    sinks = [SinkPolicy("all"), SinkPolicy("pager", Severity.CRITICAL)]
    assert replayed(effect + cause, sinks, pieces) == {
        ("all", "flat-loss-at-init", "firing", "first-notification"),
        ("pager", "flat-loss-at-init", "firing", "first-notification"),
        ("all", "loss-scale-collapse", "firing", "first-notification"),
        ("pager", "loss-scale-collapse", "firing", "below-sink-severity"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [1, 7, 1000])
def test_who_does_not_hear_of_the_cause_hears_of_what_it_explains(pieces):
    cause = rows("w" * 600, "loss-scale-collapse")
    effect = rows("cccc", "flat-loss-at-init", tag="loss", first=500)
    sinks = [SinkPolicy("all"), SinkPolicy("pager", Severity.CRITICAL)]
    assert replayed(effect + cause, sinks, pieces) == {
        ("all", "loss-scale-collapse", "firing", "first-notification"),
        ("pager", "loss-scale-collapse", "firing", "below-sink-severity"),
        ("all", "flat-loss-at-init", "firing", "inhibited"),
        ("pager", "flat-loss-at-init", "firing", "first-notification"),
    }
