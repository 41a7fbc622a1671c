"""Whole logs of runs that do not learn: the first cause is the right one, however the log is read."""

from typing import Any

import numpy as np
import pytest

from sentinel.detectors.discovery import all_detectors
from sentinel.incidents.incident import Incident
from sentinel.pipeline import Pipeline
from sentinel.sources.base import Chunk, PollResult, Run
from sentinel.sources.location import Url

pytestmark = pytest.mark.long  # each replays whole runs

STEPS = 400


class Training:
    """A classifier that guesses among ten classes, with settings and the gradient norm of each step."""

    def __init__(self, settings: dict[str, float], gradient: np.ndarray[Any, Any]) -> None:
        loss = np.log(10) + np.random.default_rng(0).normal(0, 0.005, STEPS)
        self._value = np.column_stack([loss, gradient]).ravel()
        self._settings = settings

    def poll(self, cursor, limit):
        begin = cursor.get("points", 0)
        at = np.arange(begin, min(begin + limit, 2 * STEPS))
        config = {} if begin else self._settings
        tag = (at % 2).astype(np.uint32)
        time = 1.7e9 + at / 2
        chunk = Chunk("", ["loss", "grad_norm"], tag, at // 2, time, self._value[at], config=config)
        return PollResult({"points": begin + len(at)}, [chunk], more=begin + len(at) < 2 * STEPS)


def flat_loss(training: Training, at_once: int) -> Incident:
    """The incident of the flat loss, when it fires."""

    def failed(detector: str, run: str, error: BaseException) -> None:
        raise error

    names = ("flat-loss-at-init", "zero-gradient")
    engine = Pipeline([all_detectors()[name] for name in names], {}, {}, failed)
    run_pipeline = engine.track(Run(Url("memory", ("training",)), "memory", training), "training")
    changes = []
    more = True
    while more:
        (step,) = engine.advance([run_pipeline], at_once)
        assert step.failure is None
        changes += step.changes
        more = step.more
    return next(c.incident for c in changes if c.incident.detector == "flat-loss-at-init")


STEADY = np.full(STEPS, 0.4)


@pytest.mark.parametrize(
    ("settings", "gradient", "first"),
    [
        ({}, 0 * STEADY, "O3"),
        ({}, STEADY, "O4"),
        ({}, STEADY * np.linspace(1, 100, STEPS), "O2"),
        ({"learning_rate": 1e-9}, STEADY, "O7"),
    ],
)
def test_a_flat_loss_names_its_cause(settings, gradient, first):
    training = Training(settings, gradient)
    whole = flat_loss(training, 10_000)
    assert whole.causes[0].id == whole.catalogue[0] == first
    assert whole.causes[0].reason
    assert flat_loss(training, 61) == whole
