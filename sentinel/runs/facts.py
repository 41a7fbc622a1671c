"""What a run's log tells beside its series: how much there is of it, its settings, and whether it ended."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from sentinel.sources.base import Chunk, Ending, Outcome
from sentinel.sources.flattening import MOST_KEYS, Plain

_PAUSES_KEPT = 100
_SHORTEST_LOSS_SECONDS = 600.0  # an evaluation or a checkpoint may well keep a log silent for minutes
_LONG_INTERVALS = 10  # silences of this many long intervals are out of the ordinary
_SUMMARY = "train_runtime"  # Hugging Face's Trainer logs it when it is done, and never before


class Setting(NamedTuple):
    """A setting of a run and where it stands: the log's format, or the name of a file beside it."""

    value: Plain
    origin: str


class Facts(msgspec.Struct):
    """Of one run. Steps and times are None until there are any; times are on the log's clock."""

    points: int = 0
    first_step: int | None = None
    last_step: int | None = None
    first_time: float | None = None
    last_time: float | None = None
    pauses: list[float] = []  # seconds, the last ones
    config: dict[str, Setting] = {}
    plan: dict[str, float] = {}  # by signal, of streams that begin from now on
    told_ending: Ending | None = None
    summary_step: int | None = None

    def count(self, chunk: Chunk) -> None:
        """Take in a chunk that has points."""
        self.points += len(chunk.step)
        low, high = int(chunk.step.min()), int(chunk.step.max())
        self.first_step = low if self.first_step is None else min(self.first_step, low)
        self.last_step = high if self.last_step is None else max(self.last_step, high)
        time = chunk.time[np.isfinite(chunk.time)]
        if len(time):
            self.first_time = float(time[0]) if self.first_time is None else self.first_time
            clock = time if self.last_time is None else np.append(self.last_time, time)
            pauses = clock[1:] - clock[:-1]
            self.pauses = (self.pauses + pauses[pauses > 0][-_PAUSES_KEPT:].tolist())[-_PAUSES_KEPT:]
            self.last_time = max(self.last_time or 0.0, float(time.max()))
        summaries = [i for i, tag in enumerate(chunk.tags) if tag.endswith(_SUMMARY)]
        if summaries and (found := np.isin(chunk.tag, summaries)).any():
            self.summary_step = int(chunk.step[found].max())

    def note(self, settings: Mapping[str, Plain], origin: str) -> None:
        """Remember settings, those of later calls in place of earlier ones."""
        for key, value in settings.items():
            if key in self.config or len(self.config) < MOST_KEYS:
                self.config[key] = Setting(value, origin)

    def ending(self, planned_steps: float | None) -> Ending | None:
        """That the run ended, as far as its log tells."""
        if self.told_ending is not None:
            return self.told_ending
        if self.last_step is None:
            return None
        if self.last_step == self.summary_step:
            return Ending(Outcome.FINISHED, f"its log ends with a summary at step {self.last_step}")
        if self.last_step == planned_steps:
            return Ending(Outcome.FINISHED, f"step {self.last_step} is the last one planned")
        return None

    @property
    def lost_after_seconds(self) -> float:
        """How long the log may be silent, by its own clock."""
        return lost_after_seconds(self.pauses)


def lost_after_seconds(intervals: Sequence[float]) -> float:
    """How long a log may be silent, from the seconds between its last arrivals (any order, may be empty)."""
    if not intervals:
        return _SHORTEST_LOSS_SECONDS
    long_interval = sorted(intervals)[math.ceil(0.95 * len(intervals)) - 1]
    return max(_LONG_INTERVALS * long_interval, _SHORTEST_LOSS_SECONDS)
