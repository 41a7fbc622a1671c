"""Small real trainings that go wrong in one way: a detector finds each, and leaves its healthy twin alone."""

from pathlib import Path

import pytest

from sentinel.config.file import Config
from sentinel.replays.replaying import replay

LOGS = Path(__file__).parent / "trainings"
FOUND = {
    "attention": "attention-logit-growth",
    "experts": "router-collapse",
    "policy": "entropy-explosion",
}


def found(log):
    (run,) = replay([log], Config(), lambda *_: None).runs
    return {incident.detector for incident in run.incidents.values()}


@pytest.mark.parametrize("name", FOUND)
def test_a_training_that_goes_wrong_is_found_and_its_twin_is_not(name):
    (sick,), (healthy,) = LOGS.glob(f"{name}-sick.*"), LOGS.glob(f"{name}-healthy.*")
    assert FOUND[name] in found(sick)
    assert FOUND[name] not in found(healthy)
