"""The simulations: a healthy run is left alone, and each fault is found where the noise is small."""

import numpy as np
import pytest

from detectors.api import Detector
from detectors.discovery import all_detectors
from tests.figures.__main__ import alarms
from tests.figures.streams import SICK, drawn, healthy

RUNS = 10
POINTS = {"loss-spike": 400, "loss-plateau": 200}  # others: 100

each_detector = pytest.mark.parametrize("name", SICK)


def simulated(name, kind, noise):
    detector = all_detectors()[name]
    assert isinstance(detector, Detector)
    random = np.random.default_rng(3)
    shapes = [drawn(random, POINTS.get(name, 100), noise) for _ in range(RUNS)]
    return alarms(detector, [kind(random, shape) for shape in shapes])


@each_detector
@pytest.mark.parametrize("noise", [0.01, 0.2])
def test_leaves_healthy_runs_alone(name, noise):
    assert simulated(name, healthy, noise) == [[]] * RUNS


@each_detector
def test_finds_its_fault(name):
    kind, _ = SICK[name]
    told = simulated(name, kind, 0.01)
    assert sum(map(bool, told)) >= 0.8 * RUNS
