"""The ``onset`` block at the head of a golden: a metric that leaves a good level for a bad one.

    ```onset
    signal = "kl"
    good = 0.02
    bad = 3.0
    beside = { reward = [1.0, 0.2] }
    ```

``beside`` are the levels of other metrics, before and after. ``by_factors`` lets the metric change in equal
factors rather than in equal parts, ``learns_from`` is the level from which it first comes to the good one,
``noise`` is its share of the level, and ``jumps_only`` says why it cannot climb or slide. A detector whose
metric does not leave a good level says why:

    ```onset
    none = "it judges that a metric does not move"
    ```

`test_onsets` lets the metric jump, climb and slide; `studies.figures` makes sick runs of it where it has no
simulation of its own.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sentinel.detectors.api import Detector
from sentinel.detectors.signals import Signal
from tests.detectors.golden import path_of

LEARNING_ROWS = 100
"""Rows of a metric that has to become good first."""

_BLOCK = re.compile(r"\A# .+\n\n```onset\n((?:.*\n)*?)```$", re.MULTILINE)


@dataclass(frozen=True)
class Onset:
    """How the metric of a detector goes wrong."""

    detector: str
    signal: Signal
    good: float
    bad: float
    beside: Mapping[Signal, tuple[float, float]] = field(default_factory=dict)
    by_factors: bool = False
    learns_from: float | None = None
    noise: float = 0.01  # share of the level
    jumps_only: str = ""

    def level(self, row: int, share: float) -> float:
        """The metric in a row when this share of the change has happened."""
        if self.learns_from is not None and row < LEARNING_ROWS:
            return self.learns_from + row / LEARNING_ROWS * (self.good - self.learns_from)
        if share == 0:
            return self.good
        if self.by_factors:
            return self.good * (self.bad / self.good) ** share
        return self.good + share * (self.bad - self.good)


def block(detector: Detector) -> Mapping[str, Any]:
    """What the golden says. Raises ValueError if it has no ``onset`` block below its title."""
    page = path_of(detector)
    found = _BLOCK.search(page.read_text()) if page.exists() else None
    if found is None:
        raise ValueError(f"{page.name} has no onset block below its title; see tests/detectors/onsets.py")
    return tomllib.loads(found[1])


def onset(detector: Detector) -> Onset | None:
    """How the metric goes wrong; None if the golden says why it does not."""
    keys = dict(block(detector))
    if keys.keys() == {"none"}:
        return None
    beside = {Signal(name): (float(good), float(bad)) for name, (good, bad) in keys.pop("beside", {}).items()}
    return Onset(detector.name, Signal(keys.pop("signal")), beside=beside, **keys)
