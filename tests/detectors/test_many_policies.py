"""Many seeds of healthy and of failing policies: what the detectors of rewards, updates and gradients say.

Rewards carry the autocorrelation of a mean over the last episodes; gradients are heavy-tailed.
"""

import numpy as np
import pytest

from sentinel.detectors.api import Detector
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.signals import Signal
from tests.detectors.test_many_supervised_runs import alarms

pytestmark = pytest.mark.slow  # many runs

JUDGE_NORMS = [
    d.name for d in all_detectors().values() if isinstance(d, Detector) and Signal.GRAD_NORM in d.judges
]
RUNS = 30
POINTS = 200
TIME = np.arange(POINTS) / POINTS


@pytest.fixture
def random():
    return np.random.default_rng(11)


def correlated(random, share, lag):
    """Noise of that standard deviation, of which the share ``lag`` is carried to the next point."""
    noise = np.empty(POINTS)
    now = 0.0
    for i, news in enumerate(random.standard_normal(POINTS)):
        now = lag * now + np.sqrt(1 - lag**2) * news
        noise[i] = share * now
    return noise


def rewards(random, curve, share, lag, scale=300.0):
    return [{"reward": scale * (curve + correlated(random, share, lag))} for _ in range(RUNS)]


LEARNS = 1 - np.exp(-5 * TIME)


@pytest.mark.parametrize("lag", [0, 0.9])
@pytest.mark.parametrize("detector", ["reward-collapse", "reward-stagnation"])
def test_a_reward_that_rises_with_noise_is_healthy(random, detector, lag):
    assert not alarms(detector, rewards(random, 0.2 + LEARNS, 0.1, lag))


def test_a_reward_that_falls_back_for_good_is_found(random):
    lost = 0.2 + LEARNS * np.where(TIME < 0.5, 1, np.maximum(0, 1 - 20 * (TIME - 0.5)))
    assert alarms("reward-collapse", rewards(random, lost, 0.05, 0.5)) == 1


def test_a_reward_that_rests_below_its_best_is_found(random):
    stuck = np.where(TIME < 0.2, LEARNS, 0.05)
    runs = [
        {"reward": 300 * (stuck + np.where(TIME < 0.2, correlated(random, 0.05, 0), 0))} for _ in range(5)
    ]
    assert alarms("reward-stagnation", runs) == 1


@pytest.mark.parametrize("clipped", [0.05, 0.15])
def test_the_usual_share_of_clipped_samples_is_healthy(random, clipped):
    runs = [{"clip_fraction": np.clip(clipped + correlated(random, 0.06, 0.7), 0, 1)} for _ in range(RUNS)]
    assert not alarms("clip-fraction-saturation", runs)


CAPS = {
    "sequence_mask": lambda ratio: np.where(ratio > 3, 0, ratio),
    "sequence_truncate": lambda ratio: np.minimum(ratio, 3),
    "none": lambda ratio: ratio,
}


@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("length", [1000, 4000, 16000])
def test_ratios_of_long_completions_are_healthy(random, cap, length):
    """Each of 64 completions multiplies the ratios of its tokens, which are 1 on average."""
    gap = 0.024
    spread = gap * np.sqrt(np.pi / 2 * length)
    runs = [
        {
            "importance_ratio_mean": CAPS[cap](
                np.exp(random.normal(-(spread**2) / 2, spread, (POINTS, 64)))
            ).mean(axis=1),
            "sampling_logp_difference": gap * np.exp(correlated(random, 0.1, 0)),
        }
        for _ in range(RUNS)
    ]
    assert not alarms("off-policy-drift", runs)


@pytest.mark.parametrize("detector", JUDGE_NORMS)
@pytest.mark.parametrize("level", [1e-3, 1.0, 1e5])
def test_heavy_tailed_norms_of_any_size_are_healthy(random, detector, level):
    loss = 2.3 * (0.3 + 0.7 * np.exp(-6 * TIME))
    tails = [np.exp(0.5 * random.standard_t(3, POINTS)) for _ in range(RUNS)]
    runs = [
        {"grad_norm": level * tail, "loss": loss * (1 + 0.05 * correlated(random, 1, 0))} for tail in tails
    ]
    assert not alarms(detector, runs)
