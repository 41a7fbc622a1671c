"""Points of one tag of one attempt, as the stream holds them."""

from collections.abc import Sequence
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.detectors.signals import Signal
from sentinel.frames.coarse import Floats, Steps


class Points(msgspec.Struct, frozen=True, gc=False):
    """Points of one tag of one attempt, in the order of the stream."""

    tag: str
    signal: Signal
    step: Steps
    time: Floats
    position: NDArray[np.int64]
    value: Floats

    def __len__(self) -> int:
        return len(self.step)

    def take(self, which: Any) -> "Points":
        """Some of the points, by anything that indexes an array."""
        return Points(
            self.tag, self.signal, self.step[which], self.time[which], self.position[which], self.value[which]
        )

    def with_value(self, value: Floats) -> "Points":
        """The same points with other values."""
        return Points(self.tag, self.signal, self.step, self.time, self.position, value)

    def tail(self, count: int) -> "Points":
        """At most the last ``count`` points, in arrays of their own."""
        return self.take(np.arange(max(0, len(self) - count), len(self)))

    def after(self, earlier: "Points | None") -> "Points":
        """These points after ``earlier`` ones of the same tag, without repeated steps."""
        both = self
        if earlier is not None:
            fields = ("step", "time", "position", "value")
            joined = (np.concatenate([getattr(earlier, f), getattr(self, f)]) for f in fields)
            both = Points(self.tag, self.signal, *joined)
        is_new = both.step[1:] != both.step[:-1]
        return both if is_new.all() else both.take(np.append(True, is_new))

    def dump(self) -> list[Any]:
        """Everything the constructor needs."""
        return [self.tag, self.signal, self.step, self.time, self.position, self.value]

    @classmethod
    def load(cls, state: Sequence[Any]) -> Self:
        """Undo `dump`."""
        tag, signal, *arrays = state
        return cls(tag, Signal(signal), *arrays)


def finite(points: Sequence[Points]) -> Sequence[Points]:
    """The points of some tags whose value is finite."""
    if np.isfinite(np.concatenate([np.empty(0), *(one.value for one in points)])).all():
        return points
    return [one.take(np.isfinite(one.value)) for one in points]
