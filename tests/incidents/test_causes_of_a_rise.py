"""The first cause of a loss that rose is what its gradient norm and its learning rate say."""

import json
import random

import pytest

from sentinel.config.file import Config
from sentinel.replays.replaying import replay

STEPS = 220
RISE = 120


def calm(step):
    return {"lr": 1e-3, "grad_norm": 1.0 + 0.05 * (step % 5)}


def exploding(step):
    return {"lr": 1e-3, "grad_norm": 1.0 if step < RISE else 300.0}


def at_a_new_rate(step):
    return {"lr": 0.1 if step < RISE - 1 else 60.0}


def nothing(_):
    return {}


@pytest.mark.parametrize(
    ("beside", "first", "absent"),
    [
        (calm, "N-changed-data", {"GE", "G5", "A-learning-rate"}),
        (exploding, "GE", {"A-learning-rate"}),
        (at_a_new_rate, "A-learning-rate", {"G5", "N-changed-data"}),
        (nothing, "GE", set()),
    ],
)
def test_the_first_cause_follows_the_gradient_norm_and_the_rate(tmp_path, beside, first, absent):
    dice = random.Random(1)
    losses = [2.0 * 0.98**step + 0.6 if step < RISE else 4.2 for step in range(STEPS)]
    rows = [
        {"step": step, "loss": loss * dice.uniform(0.97, 1.03), **beside(step)}
        for step, loss in enumerate(losses)
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = replay([tmp_path], Config(), lambda *_: None).runs
    causes = {one.detector: [cause.id for cause in one.causes] for one in run.incidents.values()}
    assert causes["loss-divergence"][0] == first
    assert not absent & set(causes["loss-divergence"])
