"""Many seeds of healthy and of failing runs: what a stable detector says of each.

Simulations are as unkind as logs are: heavy-tailed KL estimates, shares of a few groups, noise that
is half of what is measured.
"""

import numpy as np
import polars as pl
import pytest

from sentinel.detectors.api import Severity
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.schema import (
    CONTINUES,
    INDEX,
    NEW,
    SERIES,
    SEVERITY,
    SIGNAL,
    STEP,
    TIME,
    VALUE,
    WINDOW,
)
from sentinel.detectors.signals import Signal

pytestmark = pytest.mark.slow  # many runs

RUNS = 300
POINTS = 300
POINT = np.arange(POINTS)


def alarms(detector, signal, value, reward=None):
    """Share of the runs (rows of ``value``) in which the detector warns, ever."""
    found = judged(all_detectors()[detector], signal, value, reward)
    assert len(found), "no row was judged"
    return found.filter(pl.col(SEVERITY) >= Severity.WARNING)[SERIES].n_unique() / len(value)


def judged(detector, signal, value, reward=None):
    """The verdicts about all rows that the detector can judge."""
    runs, points = value.shape
    names = [*detector.needs, *(use.column for use in detector.uses)]
    context = {name: np.full(value.shape, np.nan) for name in names}
    if reward is not None:
        context[Signal.REWARD][:, 1:] = np.broadcast_to(reward, value.shape)[:, :-1]
    columns = {
        SERIES: np.repeat(np.arange(runs), points),
        SIGNAL: [signal.value] * value.size,
        INDEX: np.tile(np.arange(points), runs),
        STEP: np.tile(np.arange(1, points + 1), runs),
        TIME: np.full(value.size, np.nan),
        NEW: np.ones(value.size, bool),
        CONTINUES: np.zeros(value.size, bool),
        VALUE: value.ravel(),
        **{name: column.ravel() for name, column in context.items()},
    }
    schema = {**WINDOW, **dict.fromkeys(context, pl.Float64)}
    return detector.run(pl.DataFrame(columns, schema=schema, nan_to_null=True))


@pytest.fixture
def random():
    return np.random.default_rng(7)


def noisy(random, level, share):
    """Log-normal noise about a level."""
    return level * np.exp(share * random.standard_normal((RUNS, POINTS)))


def heavy_tailed(random, level):
    """As the k3 estimate of a KL: now and then one token counts more than all others."""
    hit = random.random((RUNS, POINTS)) < 0.03
    return noisy(random, level, 0.3) + hit * 5 * level * random.pareto(1.1, (RUNS, POINTS))


def improving(random, start, end, noise):
    return end + (start - end) * np.exp(-POINT / 100) + noise * random.standard_normal((RUNS, POINTS))


def shares(random, share, of):
    return random.binomial(of, np.broadcast_to(share, (RUNS, POINTS))) / of


@pytest.mark.parametrize("level", [7e-6 + 0.1 * POINT / POINTS, 0.2 * (1 - np.exp(-POINT / 60)), 0.02])
def test_a_kl_that_grows_evenly_or_settles_is_healthy(random, level):
    assert alarms("kl-blowup", Signal.KL, heavy_tailed(random, level)) == 0


@pytest.mark.parametrize("level", [0.005, 0.01, 0.03])
def test_updates_inside_the_trust_region_are_healthy(random, level):
    assert alarms("kl-blowup", Signal.APPROX_KL, noisy(random, level * (1 + POINT / POINTS), 0.4)) == 0


def test_a_kl_that_doubles_every_nine_points_is_found(random):
    level = 0.05 * 1.08 ** np.clip(POINT - 150, 0, 80)
    assert alarms("kl-blowup", Signal.KL, heavy_tailed(random, level)) == 1
    assert alarms("kl-blowup", Signal.KL_UNKNOWN_UNIT, heavy_tailed(random, level)) == 1


@pytest.mark.parametrize(("signal", "end"), [(Signal.ENTROPY, 0.1), (Signal.POLICY_ENTROPY, 0.005)])
def test_entropy_that_buys_reward_is_healthy(random, signal, end):
    entropy = noisy(random, end + (0.6 - end) * np.exp(-POINT / 80), 0.15)
    assert alarms("entropy-collapse", signal, entropy, improving(random, 0.2, 0.7, 0.1)) == 0


def test_entropy_without_reward_in_the_log_is_not_judged(random):
    entropy = noisy(random, 1.5 * 0.97**POINT, 0.1)
    assert judged(all_detectors()["entropy-collapse"], Signal.ENTROPY, entropy).is_empty()


def test_entropy_lost_for_nothing_is_found(random):
    entropy = noisy(random, 0.005 + 0.4 * np.exp(-np.clip(POINT - 100, 0, None) / 30), 0.2)
    assert alarms("entropy-collapse", Signal.ENTROPY, entropy, improving(random, 0.3, 0.3, 0.1)) == 1


@pytest.mark.parametrize("groups", [1, 4, 8, 40])
@pytest.mark.parametrize("share", [0.3, 0.6])
def test_prompt_groups_without_spread_are_healthy_while_others_have_it(random, share, groups):
    assert alarms("reward-zero-std", Signal.FRAC_REWARD_ZERO_STD, shares(random, share, groups)) == 0


@pytest.mark.parametrize("groups", [1, 4, 8, 40])
def test_groups_that_all_lose_their_spread_are_found(random, groups):
    share = shares(random, np.where(POINT < 150, 0.4, 0.97), groups)
    assert alarms("reward-zero-std", Signal.FRAC_REWARD_ZERO_STD, share) == 1


@pytest.mark.parametrize("completions", [8, 64])
def test_some_clipped_completions_are_healthy(random, completions):
    share = shares(random, 0.2, completions)
    assert alarms("clipped-completion-ratio", Signal.CLIPPED_COMPLETION_RATIO, share) == 0


def test_a_base_model_that_learns_to_stop_is_healthy(random):
    share = shares(random, 0.7 * np.exp(-POINT / 30), 8)
    assert alarms("clipped-completion-ratio", Signal.CLIPPED_COMPLETION_RATIO, share) <= 0.01


@pytest.mark.parametrize("completions", [8, 64])
def test_half_of_the_completions_clipped_is_found(random, completions):
    share = shares(random, np.where(POINT < 100, 0.05, 0.5), completions)
    assert alarms("clipped-completion-ratio", Signal.CLIPPED_COMPLETION_RATIO, share) == 1
