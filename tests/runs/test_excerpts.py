import json

import pytest

from sentinel.detectors.discovery import all_detectors
from sentinel.incidents.duplicates import KnownIncidents
from sentinel.notifications.decide import SinkPolicy
from sentinel.notifications.routing import RoutingContext
from sentinel.pipeline import Pipeline
from sentinel.sinks.batching import notification
from sentinel.sources.base import Run
from sentinel.sources.json.lines import JsonLines


@pytest.fixture
def advanced(tmp_path):
    """A run whose KL explodes at step 100, and the change that says so."""
    log = tmp_path / "log.jsonl"
    rows = [
        {"step": step, "kl": 0.04 if step < 100 else 5.0, "reward": 0.3, "entropy": 1.0}
        for step in range(300)
    ]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pipeline = Pipeline([all_detectors()["kl-blowup"]], {}, {}, lambda *_: None)
    run_pipeline = pipeline.track(Run(log, "jsonl", JsonLines(log)), "a")
    (advance,) = pipeline.advance([run_pipeline])
    return run_pipeline, advance.changes[0]


@pytest.mark.slow
def test_the_judged_signal_comes_first_with_what_the_detector_sees_beside_it(advanced):
    run_pipeline, change = advanced
    first, *others = run_pipeline.excerpts(change.incident)
    assert (first.label, first.tag) == ("KL, unit unknown", "kl")
    assert len(first.step) == len(first.mean) == len(first.low) == len(first.high) <= 64
    assert (first.low[0], first.high[-1]) == (0.04, 5.0)
    assert len(first.last_step) == len(first.last) <= 200
    assert (first.last_step[-1], first.last[-1]) == (299, 5.0)
    assert [other.label for other in others] == ["reward"]
    assert others[0].last[-1] == 0.3


@pytest.mark.slow
def test_an_attempt_that_is_over_has_no_curves(advanced):
    run_pipeline, change = advanced
    assert run_pipeline.excerpts(change.incident.replace(attempt=7)) == []
    assert run_pipeline.excerpts(change.incident.replace(tag="gone")) == []
    assert run_pipeline.excerpts(change.incident.replace(stream="")) == []


@pytest.mark.slow
@pytest.mark.parametrize(("plots", "count"), [(True, 2), (False, 0)])
def test_only_a_sink_that_shows_plots_gets_them(advanced, plots, count):
    run_pipeline, change = advanced
    audience = RoutingContext([SinkPolicy("a", plots=plots)], [], {}, KnownIncidents([]))
    (sent,) = [
        one for one in run_pipeline.route([change], audience, 0.0) if one.incident.id == change.incident.id
    ]
    stored = notification(json.dumps(sent.body, allow_nan=False))
    assert [*stored.excerpts] == run_pipeline.excerpts(change.incident)[:count]
