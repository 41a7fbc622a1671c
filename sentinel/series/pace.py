"""How long a step takes, where no metric of the speed says it: by what else in the log tells the time.

Such a clock is the seconds since the start of the training, a speed that is averaged since then, or the times
of the rows themselves. Each makes a series of `Signal.PACE`: the seconds from one of its points to the next,
divided by the steps between them.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.detectors.signals import Signal
from sentinel.series.attempts import Points
from sentinel.series.buckets import Floats, Steps
from sentinel.sources.base import Chunk

MIN_WHOLE_SECONDS = 5.0
"""Seconds over which a clock of whole seconds tells the pace, so that it is right to a fifth."""

MIN_SECONDS = 1e-6
"""Seconds from one point to the next, so that a clock that stands still tells nothing."""

MAX_RECENT = 64
"""Points of a clock within which that many seconds must pass."""

_SECONDS_OF_UNIT = {"ms": 0.001, "min": 60.0, "mins": 60.0, "minutes": 60.0, "h": 3600.0, "hours": 3600.0}
_ELAPSED = lazy_pattern(
    r"(?:.*/)?(?:time[ _/])?(?:elapsed|total[ _]time|run[ _]?time|wall[ _]?time)(?:[ _]time)?"
    r"[ _]?\(?(?P<unit>ms|s|secs?|seconds|mins?|minutes|h|hours)?\)?",
    re.IGNORECASE,
)
_AVERAGE = lazy_pattern(
    r"(?:.*/)?(?:train_speed\((?P<speed>iter/s|s/it)\)|(?:avg|average|mean|overall|cumulative)[ _]"
    r"(?:(?:it|iters?|iterations|steps|samples|examples|tokens)(?:/s|[ _]per[ _]sec(?:ond)?)|throughput))",
    re.IGNORECASE,
)

Seconds = Callable[[Floats, Steps], Floats]
"""Makes seconds since the start of values and their steps."""


@lru_cache(maxsize=4096)
def elapsed_seconds(tag: str) -> Seconds | None:
    """Return how the values of a tag tell the time; None if they do not."""
    if elapsed := _ELAPSED.fullmatch(tag):
        seconds = _SECONDS_OF_UNIT.get((elapsed["unit"] or "s").lower(), 1.0)
        return lambda values, _: values * seconds
    if average := _AVERAGE.fullmatch(tag):
        if (average["speed"] or "").lower() == "s/it":
            return lambda values, steps: values * steps
        return lambda values, steps: steps / values
    return None


class Clock(msgspec.Struct, array_like=True):
    """The last points of one clock, and whether it showed whole seconds so far."""

    steps: list[int] = msgspec.field(default_factory=list)
    seconds: list[float] = msgspec.field(default_factory=list)
    whole: bool = True

    def paces(self, steps: Steps, seconds: Floats) -> tuple[NDArray[np.int64], Floats]:
        """Return the new points at which the pace is known, and the pace there."""
        if self.whole or not self._go_on(steps, seconds):
            return self._paces_one_by_one(steps, seconds)
        all_steps = np.append(self.steps[-1:], steps)
        all_seconds = np.append(self.seconds[-1:], seconds)
        self.steps = [*self.steps, *steps[-2:].tolist()][-2:]
        self.seconds = [*self.seconds, *seconds[-2:].tolist()][-2:]
        return np.arange(len(steps)), np.diff(all_seconds) / np.diff(all_steps)

    def _go_on(self, steps: Steps, seconds: Floats) -> bool:
        """Return whether steps and seconds rise from each point to the next."""
        all_seconds = np.append(self.seconds, seconds)
        rises = (np.diff(all_seconds) >= MIN_SECONDS) & (np.diff(np.append(self.steps, steps)) > 0)
        return bool(self.steps) and bool(rises.all())

    def _paces_one_by_one(self, steps: Steps, seconds: Floats) -> tuple[NDArray[np.int64], Floats]:
        indices: list[int] = []
        paces: list[float] = []
        for index, (step, at) in enumerate(zip(steps.tolist(), seconds.tolist(), strict=True)):
            if not np.isfinite(at):
                continue
            self.whole = self.whole and at == int(at)
            if self.steps and (step < self.steps[-1] or at < self.seconds[-1]):
                self.steps.clear()
                self.seconds.clear()
            least = MIN_WHOLE_SECONDS if self.whole else MIN_SECONDS
            while len(self.steps) > 1 and self.steps[1] < step and at - self.seconds[1] >= least:
                del self.steps[0], self.seconds[0]
            if self.steps and step > self.steps[0] and at - self.seconds[0] >= least:
                indices.append(index)
                paces.append((at - self.seconds[0]) / (step - self.steps[0]))
            self.steps = [*self.steps, step][-MAX_RECENT:]
            self.seconds = [*self.seconds, at][-MAX_RECENT:]
        return np.array(indices, dtype=np.int64), np.array(paces)


class Pace(msgspec.Struct, array_like=True):
    """The clocks of an attempt of a stream, by the names of their series."""

    attempt: int = 0
    clocks: dict[str, Clock] = msgspec.field(default_factory=dict)

    def extend(
        self, chunk: Chunk, part: slice, position: int, attempt: int, losses: Sequence[bool]
    ) -> list[Points]:
        """Return the points of the clocks in this part of a chunk; ``position`` is the chunk's.

        ``losses`` says for each tag of the chunk whether its times are those of training steps.
        """
        if attempt != self.attempt:
            self.attempt = attempt
            self.clocks = {}
        paces = []
        for code, tag in enumerate(chunk.tags):
            seconds_of = elapsed_seconds(tag)
            if seconds_of is None and not losses[code]:
                continue
            name = f"pace by the times of {tag}" if seconds_of is None else f"pace by {tag}"
            indices = np.flatnonzero(chunk.tag[part] == code) + part.start
            steps = chunk.step[indices]
            with np.errstate(all="ignore"):
                seconds = (
                    chunk.time[indices] if seconds_of is None else seconds_of(chunk.value[indices], steps)
                )
            which, pace = self.clocks.setdefault(name, Clock()).paces(steps, seconds)
            at = indices[which]
            paces.append(
                Points(
                    tag=name,
                    signal=Signal.PACE,
                    step=chunk.step[at],
                    time=chunk.time[at],
                    position=position + at,
                    value=pace,
                )
            )
        return [points for points in paces if len(points)]
