"""Curves that healthy runs log, whatever is trained: losses, learning rates, gradient norms, loss scales."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from studies.figures.shapes import Floats, Random, Shape

SOON = 0.3, 1000
"""Share of the fall of a loss that is over soon, and steps in which all but 1/e of it is."""


def learning(random: Random, shape: Shape, wait: float = 0.0) -> Floats:
    """A loss that falls fast at first, then slowly, or by a power law; not before a share of the run.

    Three tenths of the fall take some 1,000 steps at most, however long the run is. What is learned first,
    such as how frequent tokens and classes are, does not depend on the plan. Of 200 healthy trainings of real
    projects, nine in ten lost 5 % of their loss within 300 steps, and 19 in 20 within 1,050. Without this
    part, the loss of a run of ten million steps would rest for 30,000 of them.
    """
    start = random.uniform(1, 10)
    floor = random.uniform(0.02, 0.7)
    time = shape.time
    since = np.maximum(0, time - wait)
    if random.random() < 0.5:
        left = np.exp(-since / random.uniform(0.02, 0.3))
        drift = 1 - 0.3 * time
    else:
        left = (1 + since / 0.005) ** -random.uniform(0.2, 0.8)
        drift = np.ones_like(time)
    share, steps = SOON
    soon = np.minimum(left, np.exp(-since * shape.steps / steps))
    return start * (floor + (1 - floor) * (left + share * (soon - left))) * drift


def _restarts(time: Floats, parts: int) -> Floats:
    return (1 + np.cos(np.pi * (parts * time % 1))) / 2


SCHEDULES: Mapping[str, Callable[[Floats], Floats]] = {
    "constant": np.ones_like,
    "linear": lambda time: 1 - time,
    "cosine": lambda time: (1 + np.cos(np.pi * time)) / 2,
    "cosine_with_restarts": lambda time: _restarts(time, 4),
    "cosine_with_min_lr": lambda time: 0.1 + 0.45 * (1 + np.cos(np.pi * time)),
    "polynomial": lambda time: (1 - time) ** 2,
    "exponential": lambda time: 1e-3**time,
    "multistep": lambda time: 0.1 ** np.digitize(time, [0.5, 0.75, 0.9]),
    "inverse_sqrt": lambda time: (1 + 50 * time) ** -0.5,
    "warmup_stable_decay": lambda time: np.minimum(1, (1 - time) / 0.2),
    "plateau": lambda time: 0.3 ** np.digitize(time, [0.4, 0.7]),
    "onecycle": lambda time: np.interp(time, [0, 0.3, 1], [0.04, 1, 0]),
}


def scheduled(random: Random, shape: Shape) -> tuple[Floats, dict[str, Any], float]:
    """A learning rate of a usual scheduler, what the settings say of it, and the share of its warm-up."""
    name = str(random.choice(list(SCHEDULES)))
    warm_up = 0 if name == "onecycle" else float(random.choice([0, 0.03, 0.1]))
    peak = 10 ** random.uniform(-6, -1)
    time = np.arange(shape.points) / shape.points
    rate = SCHEDULES[name](np.maximum(0, time - warm_up) / (1 - warm_up))
    rate = peak * rate * (np.minimum(1, (time + 1 / shape.points) / warm_up) if warm_up else 1)
    settings: dict[str, Any] = {}
    if random.random() < 0.5:
        settings |= {"max_steps": shape.steps, "warmup_ratio": warm_up}
    if random.random() < 0.5:
        settings |= {"lr_scheduler_type": name, "learning_rate": peak}
    return rate, settings, warm_up


def norms(random: Random, shape: Shape) -> Callable[[], Floats]:
    """Gradient norms of any size: even, falling or growing threefold, with a high start or none."""
    size = 10 ** random.uniform(-2, 3)
    change = random.choice([1 / 3, 1, 3])
    high = random.choice([1, 5])
    level = size * change**shape.time * (1 + (high - 1) * np.exp(-shape.time / 0.02))
    return lambda: shape.noisy(random, level * np.exp(0.2 * shape.wander(random)), 2)


def scaler(random: Random, shape: Shape, fall: Floats | float = 0.0) -> Floats:
    """A loss scale that backs off where a gradient overflows and doubles after 2000 good steps.

    ``fall`` lowers the binary logarithm of what the run bears.
    """
    drift = 0.002 * np.cumsum(random.standard_normal(shape.points))
    bad = (random.random(shape.points) < 0.001) * 4 * random.random(shape.points)
    limits = random.uniform(8, 22) + drift + 0.5 * random.standard_normal(shape.points) - bad - fall
    level = 16
    good = 0
    patience = max(1, 2000 // shape.every)
    levels = []
    for limit in limits.tolist():
        if level > limit:
            level = max(level - 1, int(limit))
            good = 0
        elif (good := good + 1) >= patience:
            level = level + 1
            good = 0
        levels.append(level)
    return 2.0 ** np.array(levels)
