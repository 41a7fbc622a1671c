"""Many seeds of healthy and of failing supervised runs: what the four detectors for them say.

Learning rates are the formulas of the schedulers in common use; the loss scale is that of a simulated
scaler, which backs off when a gradient overflows and doubles after enough good steps.
"""

import numpy as np
import pytest
from scipy.signal import lfilter

from sentinel.detectors.api import Severity
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.schema import SERIES, SEVERITY
from sentinel.detectors.signals import Signal
from sentinel.series.attempt import Attempt
from sentinel.series.attempts import Points
from sentinel.series.plan import Plans
from sentinel.series.specs import series_specs
from sentinel.series.windows import frame
from tests.detectors.golden import Stream, windows

pytestmark = pytest.mark.slow

RUNS = 30


def alarms(detector, runs, every=1):
    """Share of the runs, each a mapping from signal to values, in which the detector warns, ever."""
    detector = all_detectors()[detector]
    shown = []
    owner = []
    for number, run in enumerate(runs):
        streams = [Stream(Signal(n), every * np.arange(len(v)), np.asarray(v, float)) for n, v in run.items()]
        seen = windows(detector, streams)
        shown += seen
        owner += [number] * len(seen)
    found = detector.run(frame(detector, shown))
    assert len(found), "no row was judged"
    warned = found[SERIES].to_numpy()[found[SEVERITY].to_numpy() >= Severity.WARNING]
    return len({owner[i] for i in warned}) / len(runs)


@pytest.fixture
def random():
    return np.random.default_rng(5)


# flat-loss-at-init


def losses(random, curve, noise):
    return [{"loss": curve * (1 + noise * random.standard_normal(len(curve)))} for _ in range(RUNS)]


@pytest.mark.parametrize(("noise", "points"), [(0.01, 150), (0.02, 300), (0.03, 600)])
def test_finds_flat_losses(random, noise, points):
    assert alarms("flat-loss-at-init", losses(random, np.full(points, 2.0), noise), every=30) > 0.9


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.2, 0.6])
@pytest.mark.parametrize("fall", [0.1, 0.3])
@pytest.mark.parametrize("share", [0.05, 0.3])
def test_leaves_learning_runs_alone(random, noise, fall, share):
    curve = 2 * (1 - fall * (1 - np.exp(-np.arange(400) / (400 * share))))
    assert alarms("flat-loss-at-init", losses(random, curve, noise), every=5) <= 0.02


@pytest.mark.parametrize("noise", [0.01, 0.03, 0.1])
@pytest.mark.parametrize("fall", [0.05, 0.1])
def test_leaves_slow_learning_alone(random, noise, fall):
    curve = 2 * (1 - fall * np.arange(1000) / 1000)
    assert alarms("flat-loss-at-init", losses(random, curve, noise), every=10) <= 0.02


# loss-divergence


def averaged(loss, decay, every):
    """The moving average of a loss, from 0 on and without a correction for that, at each so many steps."""
    return lfilter([1 - decay], [1, -decay], loss)[::every]


SETTLED = 4_000
"""Steps after which the slowest average has come down to the loss, so that it is judged."""

LEARNS = 1.5 + 2.5 * np.exp(-np.arange(20_000) / 3_000)


@pytest.mark.parametrize("noise", [0, 0.05, 0.2])
@pytest.mark.parametrize("every", [1, 10, 50])
@pytest.mark.parametrize("decay", [0.9, 0.98, 0.99, 0.999])
def test_an_average_that_climbs_from_zero_does_not_diverge(random, noise, every, decay):
    curves = [run["loss"] for run in losses(random, LEARNS[: max(400 * every, SETTLED)], noise)]
    assert not alarms("loss-divergence", [{"loss": averaged(c, decay, every)} for c in curves], every)


@pytest.mark.parametrize("decay", [0.9, 0.98, 0.99])
def test_a_divergence_of_such_an_average_is_found(random, decay):
    grows = LEARNS * np.exp(np.clip(np.arange(20_000) - 3_000, 0, 1_000) / 500)
    curves = [run["loss"] for run in losses(random, grows[:5_000], 0.1)]
    assert alarms("loss-divergence", [{"loss": averaged(c, decay, 10)} for c in curves], every=10) == 1


@pytest.mark.parametrize("growth", [1.1, 1.3, 1.6])
def test_a_divergence_from_the_first_row_on_is_found(random, growth):
    grows = 2.3 * np.minimum(growth ** np.arange(60), 50)
    assert alarms("loss-divergence", losses(random, grows, 0.1)) == 1


# saturated-gradient-clipping


def test_a_small_norm_is_clipped_where_it_rests_and_not_where_it_grows():
    clipped = np.minimum(0.05, 0.01 * np.arange(1, 200))
    assert alarms("saturated-gradient-clipping", [{"grad_norm": clipped}]) == 1
    assert alarms("saturated-gradient-clipping", [{"grad_norm": 0.0004 * np.arange(1, 200)}]) == 0


# lr-schedule-mismatch

TIME = np.arange(400) / 400
COSINE = (1 + np.cos(np.pi * TIME)) / 2
RISE = np.minimum(1, TIME / 0.1)

HEALTHY_SCHEDULES = {
    "constant": np.ones(400),
    "constant after warm-up": RISE,
    "linear": RISE * (1 - TIME),
    "cosine": RISE * COSINE,
    "cosine to a tenth by 80 %": 0.1 + 0.45 * (1 + np.cos(np.pi * np.minimum(1, TIME / 0.8))),
    "cosine, cyclic": (1 + np.cos(10 * np.pi * TIME)) / 2,
    "warm restarts": (1 + np.cos(np.pi * (5 * TIME % 1))) / 2,
    "triangular": np.abs((4 * TIME) % 2 - 1),
    "one cycle, half up": 1 - np.abs(2 * TIME - 1),
    "steps": 0.1 ** np.floor(4 * TIME),
    "halved thirty times": 0.5 ** np.floor(30 * TIME),
    "exponential": 1e-8**TIME,
    "exponential by epochs": 0.3 ** np.floor(12 * TIME),
    "inverse square root": np.minimum(TIME / 0.1, (0.1 / np.maximum(TIME, 1e-3)) ** 0.5),
    "warmup-stable-decay": RISE * np.minimum(1, (1 - TIME) / 0.15),
    "range test": 1e-5 ** (1 - TIME),
    "rounded to four digits": np.round(1e-3 * (1 - TIME), 4),
}


@pytest.mark.parametrize("schedule", HEALTHY_SCHEDULES)
@pytest.mark.parametrize("planned", [{}, {"total_steps": np.full(400, 4000)}], ids=["no plan", "plan"])
def test_leaves_schedules_alone(schedule, planned):
    run = {"learning_rate": 3e-4 * HEALTHY_SCHEDULES[schedule], **planned}
    assert not alarms("lr-schedule-mismatch", [run], every=10)


@pytest.mark.parametrize("times", [2, 3, 4, 8])
@pytest.mark.parametrize(
    "shape", [lambda t: 1 - t, lambda t: (1 + np.cos(np.pi * t)) / 2], ids=["line", "cosine"]
)
@pytest.mark.parametrize("planned", [{}, {"total_steps": np.full(400, 4000)}], ids=["no plan", "plan"])
def test_finds_schedules_that_end_early(times, shape, planned):
    run = {"learning_rate": 1e-4 * shape(np.minimum(1, times * TIME)), **planned}
    assert alarms("lr-schedule-mismatch", [run], every=10)


def test_a_frozen_group_beside_one_that_learns_is_no_finding():
    detector = all_detectors()["lr-schedule-mismatch"]
    step = np.arange(250)
    no_time = np.full(250, np.nan)
    groups = [
        Points(f"lr/{i}", Signal.LEARNING_RATE, step, no_time, 2 * step + i, np.full(250, rate))
        for i, rate in enumerate([1e-4, 0.0])
    ]
    attempt = Attempt(1)
    shown = [(view, window) for view, _, window in attempt.windows(groups, series_specs([detector]), Plans())]
    assert len(shown) == 2
    assert not detector.run(frame(detector, shown))[SEVERITY].sum()


# loss-scale-collapse


def scaler(limits, start=16, growth=2000, floor=-np.inf):
    """The loss scale after each step; a gradient overflows where it exceeds 2^limit."""
    exponent = start
    good = 0
    scale = np.empty(len(limits))
    for step, limit in enumerate(limits):
        if exponent > limit:
            exponent = max(exponent - 1, floor)
            good = 0
        elif (good := good + 1) == growth:
            exponent = exponent + 1
            good = 0
        scale[step] = 2.0**exponent
    return scale


def limits(random, steps=4000):
    """What an ordinary run bears: a level that drifts, noise, and now and then a bad batch."""
    drift = np.cumsum(0.002 * random.standard_normal(steps)) + 2 * np.exp(-np.arange(steps) / 300)
    bad = (random.random(steps) < 0.001) * 4 * random.random(steps)
    return random.uniform(6, 22) + drift + 0.6 * random.standard_normal(steps) - bad


@pytest.mark.parametrize("every", [1, 10, 50])
@pytest.mark.parametrize("kind", [{}, {"start": 32, "growth": 1000, "floor": 0}], ids=["torch", "deepspeed"])
def test_leaves_scalers_alone(random, every, kind):
    runs = [{"loss_scale": scaler(limits(random), **kind)[::every]} for _ in range(10)]
    assert not alarms("loss-scale-collapse", runs, every)


@pytest.mark.parametrize("every", [1, 10, 50])
@pytest.mark.parametrize("kind", [{}, {"start": 32, "growth": 1000, "floor": 0}], ids=["torch", "deepspeed"])
@pytest.mark.parametrize("speed", [1 / 150, 0.3, 1e6])
def test_finds_collapses(random, every, kind, speed):
    falling = speed * np.maximum(0, np.arange(4000) - 2000)
    runs = [{"loss_scale": scaler(limits(random) - falling, **kind)[::every]} for _ in range(3)]
    assert alarms("loss-scale-collapse", runs, every) == 1


# loss-scales-with-padding


def batches(random, points=200, size=8):
    length = np.clip(random.lognormal(5, 0.6, (points, size)), 8, 2048)
    return length, 1 - length.sum(axis=1) / (size * length.max(axis=1))


@pytest.mark.parametrize("noise", [0.02, 0.1, 0.2])
@pytest.mark.parametrize("ease", [0, 0.3])
@pytest.mark.parametrize("counted", [False, True])
def test_tells_counted_padding_from_easy_short_texts(random, noise, ease, counted):
    runs = []
    for _ in range(RUNS):
        length, padding = batches(random)
        loss = 2 * 0.997 ** np.arange(len(padding)) * (length**ease).mean(axis=1)
        loss *= np.exp(noise * random.standard_normal(len(padding)))
        runs.append({"pad_fraction": padding, "loss": loss * (1 - padding) ** counted})
    assert alarms("loss-scales-with-padding", runs) == counted


# pretrained-regression


@pytest.mark.long
@pytest.mark.parametrize("noise", [0.002, 0.01, 0.03])
def test_a_fine_tuning_whose_evaluations_rest_is_healthy(random, noise):
    """A million points may ring a few times; these are 40,000 of each noise."""
    runs = [
        {
            "eval_loss": 2 * (1 + noise * random.standard_normal(20)),
            "eval_accuracy": 0.8 + noise * random.standard_normal(20),
        }
        for _ in range(1000)
    ]
    assert not alarms("pretrained-regression", runs, every=100)
