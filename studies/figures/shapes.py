"""How a simulated run is logged, the noise of what it logs, and what is made of it.

Noise multiplies a level. In the logarithm it is an AR(1) process, in every second run with innovations of
Student's t distribution with four degrees of freedom.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentinel.detectors.signals import Signal
from tests.detectors.golden import Stream

Floats = NDArray[np.float64]
Random = np.random.Generator

ONSET = 0.33
"""Share of the run at which the faults begin that do not begin at its start."""

BACK = 0.05
"""Share of the run that a resume goes back, to the last checkpoint."""

FAST = 50
"""Points in which a fault develops that takes a tenth of a short run."""


@dataclass(frozen=True)
class Shape:
    """How a run is logged: its points, the steps between two of them, and its noise (shares of the level).

    ``resumed`` is the share of the run at which a healthy run stops and goes back to its last checkpoint,
    ``BACK`` of the run earlier; 0 if it does not.
    """

    points: int
    every: int
    noise: float
    autocorrelation: float
    heavy: bool
    evaluations: int
    resumed: float

    @property
    def time(self) -> Floats:
        """Share of the run that has passed at each point."""
        return np.linspace(0, 1, self.points)

    @property
    def steps(self) -> int:
        """Steps of the whole run."""
        return self.points * self.every

    @cached_property
    def evaluated(self) -> NDArray[np.int64]:
        """The points at which the run is evaluated."""
        return np.linspace(0, self.points, self.evaluations + 1).astype(int)[1:] - 1

    def since(self, onset: float = ONSET) -> Floats:
        """How far a fault has developed at each point: 0 before its onset, 1 once it is complete."""
        width = min(0.1, FAST / self.points)
        return np.clip((self.time - onset) / width, 0, 1)

    def noisy(self, random: Random, level: Floats | float, share: float = 1.0) -> Floats:
        """The level with a share of the run's noise."""
        level = np.broadcast_to(level, (self.points,)) if np.ndim(level) == 0 else np.asarray(level)
        return level * np.exp(share * self.noise * self.wander(random, len(level)))

    def wander(self, random: Random, n: int | None = None, rho: float | None = None) -> Floats:
        """Noise of variance 1, autocorrelated as the run's is if ``rho`` does not say how."""
        n = self.points if n is None else n
        rho = self.autocorrelation if rho is None else rho
        shocks = random.standard_t(4, n) / 2**0.5 if self.heavy else random.standard_normal(n)
        shocks[1:] *= (1 - rho**2) ** 0.5
        from scipy.signal import lfilter  # it takes a second to import

        return np.asarray(lfilter([1.0], [1.0, -rho], shocks))


def drawn(random: Random, points: int, noise: float, *, each_evaluated: bool, resumes: bool) -> Shape:
    """A shape whose logging interval, autocorrelation and tails are drawn.

    A run is evaluated at each point, or some dozens to a thousand times. Every fourth one that may resume
    does.
    """
    some = int(np.clip(points // 5, min(points, 20), 1000))
    return Shape(
        points,
        int(random.choice([1, 10, 100])),
        noise,
        float(random.choice([0, 0.3, 0.6])),
        bool(random.integers(2)),
        points if each_evaluated else some,
        float(random.uniform(0.3, 0.9)) if resumes and random.random() < 0.25 else 0.0,
    )


@dataclass(frozen=True)
class Run:
    """What a run logs, each signal made when it is asked for.

    A name is a signal's, with a tag behind a colon if it has several. Values stand at every point, or at
    each evaluation.
    """

    shape: Shape
    logged: Mapping[str, Callable[[], Floats]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    again: Mapping[str, Callable[[], Floats]] = field(default_factory=dict)  # other values after a resume

    def but(self, **logged: Callable[[], Floats]) -> "Run":
        """The same run with other values of some signals."""
        return replace(self, logged={**self.logged, **logged})

    def settled(self) -> "Run":
        """The same run, whose values are drawn now: all that ask for a signal get the same."""
        drawn = [{name: values() for name, values in of.items()} for of in (self.logged, self.again)]
        logged, again = ({name: partial(np.copy, values) for name, values in of.items()} for of in drawn)
        return replace(self, logged=logged, again=again)

    def streams(self, signals: set[str]) -> list[Stream]:
        """The run's streams of these signals, in two attempts if it was resumed."""
        found = []
        for name, values in self.logged.items():
            signal, _, tag = name.partition(":")
            if signal in signals:
                value = values()
                again = self.again[name]() if name in self.again else value
                found += self._attempts(Signal(signal), tag, value, again)
        return found

    def _attempts(self, signal: Signal, tag: str, value: Floats, again: Floats) -> Sequence[Stream]:
        shape = self.shape
        step = shape.every * np.arange(1, shape.points + 1)
        if len(value) != shape.points:
            step = step[shape.evaluated]
        if not shape.resumed:
            return [Stream(signal, step, value, tag)]
        first = step <= shape.resumed * shape.steps
        second = step > (shape.resumed - BACK) * shape.steps
        return [
            Stream(signal, step[first], value[first], tag),
            Stream(signal, step[second], again[second], tag, attempt=2),
        ]


Kind = Callable[[Random, Shape], Run]
"""Draws a run of some shape."""
