"""What a stream logs, once it has been going on long enough to have logged everything that it is going to.

A survey is taken at a position of the stream, so it says the same however the log was cut into polls.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from sentinel.detectors.checks import Survey
from sentinel.detectors.settings import Setting
from sentinel.frames.known import KnownOfStream
from sentinel.sources.base import Chunk

STEPS = 100  # from the first point on
ROWS = 20  # points with a step of their own; a run that logs each 2048th step has seen little after 100


@dataclass
class Surveyor:
    """Waits for the position at which its stream is surveyed, which happens once."""

    first: int | None = None  # step of the first point
    last: int = 0  # step of the last point
    rows: int = 0
    done: bool = False

    def survey(self, stream: str, chunk: Chunk, position: int, known: KnownOfStream) -> Sequence[Survey]:
        """The survey, if the stream gets there in this chunk, whose first point has this position."""
        if self.done or not len(chunk.step):
            return ()
        self.first = int(chunk.step[0]) if self.first is None else self.first
        rows = self.rows + np.cumsum(np.diff(chunk.step, prepend=self.last) != 0)
        there = np.flatnonzero((chunk.step >= self.first + STEPS) & (rows >= ROWS))
        self.last, self.rows, self.done = int(chunk.step[-1]), int(rows[-1]), len(there) > 0
        if not self.done:
            return ()
        place = int(there[0])
        at, step, time = position + place, int(chunk.step[place]), float(chunk.time[place])
        told = {setting.value: known.setting(setting, at, step) for setting in Setting}
        return [
            Survey(
                stream=stream,
                step=step,
                time=None if math.isnan(time) else time,
                framework=known.framework,
                signals=frozenset(signal for signal, begun in known.begun.items() if begun < at),
                settings={name: value for name, value in told.items() if value is not None},
            )
        ]

    def dump(self) -> list[Any]:
        """Everything `load` needs."""
        return [self.first, self.last, self.rows, self.done]

    @classmethod
    def load(cls, state: Sequence[Any]) -> Self:
        """Undo `dump`."""
        return cls(*state)
