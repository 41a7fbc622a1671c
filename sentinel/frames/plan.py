"""The plan of a training, as its settings tell it: counts that a log is compared with but seldom holds."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from operator import or_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detectors.signals import Signal
from sentinel.frames.coarse import Floats, Steps

_NAMES = {
    Signal.TOTAL_STEPS: {
        *("max_steps", "total_steps", "max_train_steps", "num_train_steps", "total_train_steps"),
        *("num_training_steps", "total_num_steps", "train_iters", "max_iters"),
    },
    Signal.WARMUP_STEPS: {
        *("warmup_steps", "num_warmup_steps", "lr_warmup_steps", "warmup_num_steps"),
        *("warmup_iters", "lr_warmup_iters"),
    },
}
_TABLES = {
    *("args", "arguments", "config", "fit_loop", "hparams", "params", "train", "trainer", "training"),
    *("training_args", "optim", "optimizer", "sched", "scheduler", "lr_scheduler"),
}
"""Where they may stand; ``env.max_steps`` is the length of an episode."""


def planned(settings: Mapping[str, Any]) -> dict[str, float]:
    """What flat settings say of the plan, by signal. A count is left out where it is named twice with
    different values, or as -1, 0 or a word, by which frameworks say that it is not known.
    """
    found: dict[str, set[float]] = {}
    for key, value in settings.items():
        *tables, name = key.casefold().replace("/", ".").split(".")
        for signal, names in _NAMES.items():
            if name in names and _TABLES.issuperset(tables) and (count := _count(value)) is not None:
                found.setdefault(signal, set()).add(count)
    return {signal: counts.pop() for signal, counts in found.items() if len(counts) == 1}


def _count(value: Any) -> float | None:
    try:
        count = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return count if 0 < count < math.inf else None


@dataclass
class Plans:
    """The plans of one stream: ``first`` from its beginning, others from a position in it on."""

    first: dict[str, float] = field(default_factory=dict)
    later: list[tuple[int, dict[str, float]]] = field(default_factory=list)

    def hold(self, position: int, settings: Mapping[str, Any]) -> None:
        """The settings hold from this position on."""
        news = planned(settings)
        if self.now | news != self.now:
            self.later = [entry for entry in self.later if entry[0] < position] + [(position, news)]

    @property
    def now(self) -> dict[str, float]:
        """The plan that holds at the end."""
        return self._all()[-1]

    def _all(self) -> list[dict[str, float]]:
        return list(accumulate((self.first, *(news for _, news in self.later)), or_))

    def column(self, signal: Signal, position: NDArray[np.int64], step: Steps) -> Floats | None:
        """The count that is planned at each row; None where nothing is.

        A plan that the rows have passed is none, or one that counts something else than they do.
        """
        if signal not in _NAMES or not (self.first or self.later):
            return None
        counts = np.array([plan.get(signal, np.nan) for plan in self._all()])
        count = counts[np.searchsorted([at for at, _ in self.later], position, side="right")]
        if signal is Signal.TOTAL_STEPS:
            count = np.where(step > count, np.nan, count)
        return count

    def dump(self) -> list[Any]:
        """Everything the constructor needs."""
        return [self.first, self.later]
