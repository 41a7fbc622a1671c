"""What follows from logged numbers: signals that nobody logs, and shares that are logged in percent."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from detectors.signals import Signal
from sentinel.frames.coarse import Floats


@dataclass(frozen=True)
class Derived:
    """A signal that is a function of two others at the same step; ``name`` makes a tag of their tags."""

    signal: Signal
    parts: tuple[Signal, Signal]
    name: str
    value: Callable[[Floats, Floats], Floats]


DERIVED = (
    Derived(
        Signal.PAD_FRACTION,
        (Signal.BATCH_TOKENS, Signal.BATCH_SLOTS),
        "1 - {}/{}",
        lambda tokens, slots: 1 - tokens / slots,
    ),
)

SHARES = frozenset(
    {
        *(Signal.ACCURACY, Signal.EVAL_ACCURACY, Signal.PREFERENCE_ACCURACY),
        *(Signal.MEAN_AVERAGE_PRECISION, Signal.MEAN_INTERSECTION_OVER_UNION),
    }
)
"""Signals from 0 to 1 that people log in percent under the same names."""

_MOST = 1.5  # no share is larger, rounding and all


def derived(tags: Mapping[str, Sequence[str]]) -> Iterator[tuple[Signal, str]]:
    """The signals that follow from logged ones, of which ``tags`` holds the tags, and their tags."""
    for one in DERIVED:
        if all(tags.get(part) for part in one.parts):
            yield one.signal, one.name.format(*(tags[part][0] for part in one.parts))


@dataclass
class Units:
    """In which unit the tags of `SHARES` are logged. The first value of a tag that is not 0 tells it."""

    factors: dict[str, float] = field(default_factory=dict)  # by tag

    def shares(self, tag: str, values: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """The values as shares, and which of them can be: a percentage that began below 1.5 shows later."""
        finite = np.isfinite(values)
        telling = values[finite & (values != 0)]
        if tag not in self.factors and len(telling):
            self.factors[tag] = 0.01 if telling[0] > _MOST else 1.0
        found = values * self.factors.get(tag, 1.0)
        return found, ~finite | (found <= _MOST)
