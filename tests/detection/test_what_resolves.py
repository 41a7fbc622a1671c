"""A metric resolves its own incidents: by coming back, and not by being bad for so long that it is usual."""

import json
import random

import pytest

from sentinel.config.file import Config
from sentinel.replays.replaying import replay

pytestmark = pytest.mark.slow

START = 1.7e9
STEPS = 600
FROM = 300
"""The step from which on a metric is bad."""


def loss_of_one_spike(step, noise):
    return {"loss": noise * (5000 if step == FROM else 1)}


def loss_that_stays(step, noise):
    return {"loss": noise * (3.8e4 if step >= FROM else 1)}


def rate_of_a_schedule_that_is_over(step, noise):
    """The plan is almost over when the rate at zero no longer costs much of it."""
    return {"loss": noise, "learning_rate": 1e-3 * max(0.0, 1 - step / FROM)}


def test_a_number_without_a_meaning_is_followed_for_as_long_as_it_is_none(tmp_path):
    rows = [
        {"step": step, "time": START + 60 * step, "loss": 1.0, "vorticity": 1.0 if step < 10 else "NaN"}
        for step in range(120)
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = replay([tmp_path], Config(), lambda *_: None).runs
    (incident,) = (one for one in run.incidents.values() if one.detector == "non-finite-metric")
    assert (incident.onset_step, incident.fired_step, incident.last_step) == (10, 10, 119)
    assert incident.onset_time == START + 600
    assert incident.state == "escalated"


def test_a_loss_that_was_finite_long_ago_is_broken_and_not_without_a_beginning(tmp_path):
    rows = [{"step": step, "loss": 1.0 if step < 100 else "NaN"} for step in range(300)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = replay([tmp_path], Config(), lambda *_: None).runs
    (incident,) = (one for one in run.incidents.values() if one.detector == "non-finite-metric")
    assert (incident.onset_step, incident.last_step) == (100, 299)


@pytest.mark.parametrize(
    ("metrics", "detector", "resolved"),
    [
        (loss_of_one_spike, "loss-spike", True),
        (loss_that_stays, "loss-spike", False),
        (rate_of_a_schedule_that_is_over, "lr-schedule-mismatch", False),
    ],
)
def test_a_metric_that_stays_where_it_is_resolves_nothing(tmp_path, metrics, detector, resolved):
    source = random.Random(1)
    rows = [
        {"step": step, "time": START + step, **metrics(step, source.gauss(1, 0.05))} for step in range(STEPS)
    ]
    settings = {"config": {"max_steps": STEPS}}
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [settings, *rows]))
    (run,) = replay([tmp_path], Config(), lambda *_: None).runs
    (incident,) = (one for one in run.incidents.values() if one.detector == detector)
    assert incident.onset_step == pytest.approx(FROM, abs=2)
    assert (incident.resolved_step is not None) == resolved
