"""Simulated supervised runs, healthy and sick, with the noise that logs have.

A run is a mapping from signal to its points. Noise multiplies the level: in the logarithm it is an AR(1)
process, in every second run with Student's t innovations of four degrees of freedom.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from tests.detectors.golden import Stream

Run = Mapping[str, tuple[np.ndarray, np.ndarray]]  # signal -> steps, values
Kind = Callable[[np.random.Generator, "Shape"], Run]

ONSET = 0.33
"""Share of the run at which the faults begin that do not begin at the start."""


@dataclass(frozen=True)
class Shape:
    """How a run is logged: its points, the steps between two of them, and its noise (shares of the level)."""

    points: int
    every: int
    noise: float
    autocorrelation: float
    heavy: bool

    @property
    def evaluations(self) -> int:
        """One a point in a log of epochs, else some dozens to a thousand."""
        return int(np.clip(self.points // 5, min(self.points, 20), 1000))

    @property
    def time(self) -> np.ndarray:
        """Share of the run that has passed at each point."""
        return np.linspace(0, 1, self.points)


def drawn(random: np.random.Generator, points: int, noise: float) -> Shape:
    """A shape whose logging interval, autocorrelation and tails are drawn."""
    every, autocorrelation = random.choice([1, 10, 50]), random.choice([0, 0.3, 0.6])
    return Shape(points, int(every), noise, float(autocorrelation), bool(random.integers(2)))


def streams(run: Run, signals: set[str]) -> list[Stream]:
    """The run's streams of these signals."""
    return [Stream(name, step, value) for name, (step, value) in run.items() if name in signals]


def noisy(random: np.random.Generator, level: np.ndarray, shape: Shape, share: float = 1.0) -> np.ndarray:
    """The level with a share of the shape's noise."""
    n, rho = len(level), shape.autocorrelation
    shocks = random.standard_t(4, n) / 2**0.5 if shape.heavy else random.standard_normal(n)
    shocks[1:] *= (1 - rho**2) ** 0.5
    wander = np.fromiter(accumulate(shocks, lambda last, shock: rho * last + shock), float, n)
    return level * np.exp(share * shape.noise * wander)


def learning(random: np.random.Generator, time: np.ndarray) -> np.ndarray:
    """A healthy loss: fast at first, then slowly, after a warm-up or none."""
    start, floor, speed = random.uniform(1, 10), random.uniform(0.02, 0.7), random.uniform(0.02, 0.3)
    since = np.maximum(0, time - random.choice([0, 0.03]))
    return start * (floor + (1 - floor) * np.exp(-since / speed)) * (1 - 0.3 * time)


def supervised(
    random: np.random.Generator, shape: Shape, loss: np.ndarray, held_out: np.ndarray | None = None
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """A run with these curves of training and held-out loss, and what is logged beside them."""
    step = shape.every * np.arange(1, shape.points + 1)
    at = np.linspace(0, shape.points - 1, shape.evaluations + 1).astype(int)[1:]
    held_out = loss * random.uniform(1, 1.3) if held_out is None else held_out
    rate = np.minimum(1, shape.time / 0.03) * (1 + np.cos(np.pi * shape.time)) / 2
    learned = 1 - np.clip(loss / loss.max(), 0, 1)
    return {
        "loss": (step, noisy(random, loss, shape)),
        "eval_loss": (step[at], noisy(random, held_out[at], shape, share=0.3)),
        "eval_accuracy": (step[at], random.binomial(500, 0.1 + 0.8 * learned[at]) / 500),
        "mean_average_precision": (step[at], 0.7 * learned[at]),
        "learning_rate": (step, 3e-4 * np.maximum(rate, 1e-3)),
        "grad_norm": (step, noisy(random, np.ones(shape.points), shape, share=3)),
        "total_steps": (step[:1], np.array([float(step[-1])])),
    }


def healthy(random: np.random.Generator, shape: Shape) -> Run:
    """A run that learns."""
    return supervised(random, shape, learning(random, shape.time))


def overfits(random: np.random.Generator, shape: Shape) -> Run:
    """The held-out loss turns round and rises by a half."""
    curve = learning(random, shape.time)
    best = np.interp(ONSET, shape.time, curve)
    rising = best * (1 + 0.75 * (shape.time - ONSET))
    return supervised(random, shape, curve, np.where(shape.time < ONSET, curve, rising))


def stands(random: np.random.Generator, shape: Shape) -> Run:
    """The loss stays where it began."""
    return supervised(random, shape, np.full(shape.points, random.choice([np.log(10), 4.4])))


def rests(random: np.random.Generator, shape: Shape) -> Run:
    """The loss falls for a twentieth of the run and rests at seven tenths of its start."""
    curve = 5 * (0.7 + 0.3 * np.exp(-shape.time / 0.02))
    run = supervised(random, shape, curve)
    return run | {"learning_rate": (run["loss"][0], np.full(shape.points, 3e-4))}


def diverges(random: np.random.Generator, shape: Shape) -> Run:
    """The loss rises to three times its level within a tenth of the run."""
    curve = learning(random, shape.time)
    level = np.interp(ONSET, shape.time, curve)
    rise = 1 + 2 * np.clip((shape.time - ONSET) / 0.1, 0, 1)
    return supervised(random, shape, np.where(shape.time < ONSET, curve, level * rise))


def spikes(random: np.random.Generator, shape: Shape) -> Run:
    """One point in fifty is six times as high."""
    run = supervised(random, shape, learning(random, shape.time))
    step, loss = run["loss"]
    hit = (shape.time > ONSET) & (random.random(shape.points) < 0.02)
    return run | {"loss": (step, np.where(hit, 6 * loss, loss))}


def breaks(random: np.random.Generator, shape: Shape) -> Run:
    """The loss is NaN from the onset on."""
    run = supervised(random, shape, learning(random, shape.time))
    step, loss = run["loss"]
    return run | {"loss": (step, np.where(shape.time < ONSET, loss, np.nan))}


def answers_alike(random: np.random.Generator, shape: Shape) -> Run:
    """The accuracy is the share of one class."""
    run = supervised(random, shape, learning(random, shape.time))
    step, accuracy = run["eval_accuracy"]
    return run | {"eval_accuracy": (step, np.full(len(accuracy), 0.5276))}


def finds_nothing(random: np.random.Generator, shape: Shape) -> Run:
    """No box counts."""
    run = supervised(random, shape, learning(random, shape.time))
    step, precision = run["mean_average_precision"]
    return run | {"mean_average_precision": (step, 0 * precision)}


SICK: Mapping[str, tuple[Kind, float]] = {
    "class-collapse": (answers_alike, 0),
    "flat-loss-at-init": (stands, 0),
    "generalization-gap": (overfits, ONSET),
    "loss-divergence": (diverges, ONSET),
    "loss-plateau": (rests, 0.05),
    "loss-spike": (spikes, ONSET),
    "non-finite-metric": (breaks, ONSET),
    "zero-eval-metric": (finds_nothing, 0),
}
"""By detector: the fault that it is made for, and the share of the run at which that begins."""
