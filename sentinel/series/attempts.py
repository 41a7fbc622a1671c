"""Finds where one attempt of a stream ends and the next one begins.

A resumed training writes steps that it wrote before. So if the step of any tag goes back, a new attempt
begins for all tags. A step that repeats begins none, unless the file began anew: the next part of a rotated
log would go on after the last step.

Some tags count optimizer steps and others epochs, so steps are compared only within a tag. The steps of
these tags are not compared at all:

- tags without a meaning and histograms, because people log them at the number of the batch in its epoch,
- tags of the machine, such as its speed, because a validation logs them at steps of its own.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.detectors.signals import Signal
from sentinel.series.buckets import Floats, Steps
from sentinel.sources.base import Chunk, order_by_tag


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
        """Return some of the points, by anything that indexes an array."""
        return Points(
            self.tag, self.signal, self.step[which], self.time[which], self.position[which], self.value[which]
        )

    def with_value(self, value: Floats) -> "Points":
        """Return the points with other values."""
        return Points(self.tag, self.signal, self.step, self.time, self.position, value)

    def tail(self, count: int) -> "Points":
        """Return at most the last ``count`` points, in arrays of their own."""
        return self.take(np.arange(max(0, len(self) - count), len(self)))

    def after(self, earlier: "Points | None") -> "Points":
        """Return these points after ``earlier`` ones of the same tag, without repeated steps."""
        both = self
        if earlier is not None:
            fields = ("step", "time", "position", "value")
            joined = (np.concatenate([getattr(earlier, f), getattr(self, f)]) for f in fields)
            both = Points(self.tag, self.signal, *joined)
        is_new = both.step[1:] != both.step[:-1]
        return both if is_new.all() else both.take(np.append(True, is_new))

    def dump(self) -> list[Any]:
        """Return everything that `load` needs."""
        return [self.tag, self.signal, self.step, self.time, self.position, self.value]

    @classmethod
    def load(cls, state: Sequence[Any]) -> Self:
        """Undo `dump`."""
        tag, signal, *arrays = state
        return cls(tag, Signal(signal), *arrays)


def finite(points: Sequence[Points]) -> Sequence[Points]:
    """Return the points of some tags whose value is finite."""
    if np.isfinite(np.concatenate([np.empty(0), *(part.value for part in points)])).all():
        return points
    return [part.take(np.isfinite(part.value)) for part in points]


MAX_TOLD_ATTEMPTS = 8
"""Attempts up to which the console is believed where the steps do not go back."""

MAX_ATTEMPTS = 64
"""How often a stream may go back. One that does so more often has several writers, and its steps no order."""

_MIN_SEARCH = 4096  # points searched at first for a step that goes back; doubled as long as there is none


class Attempts(msgspec.Struct):
    """The attempts of one stream so far, and the last step of each tag in the present attempt."""

    number: int = 1
    last_step: dict[str, int] = msgspec.field(default_factory=dict)
    disordered_at: tuple[int, float] | None = None  # step and time of the point that went back once too often
    # steps after which the console says that it was resumed
    resumes: list[int] = msgspec.field(default_factory=list)

    @property
    def disordered(self) -> bool:
        """Whether steps went back so often that nothing more can be judged."""
        return self.number > MAX_ATTEMPTS

    def split(self, chunk: Chunk, is_compared: NDArray[np.bool_]) -> Iterator[tuple[int, slice]]:
        """Yield the attempts within a chunk: the number and the slice of points of each.

        ``is_compared`` says for each tag of the chunk whether its steps are compared. Nothing follows once
        the stream is disordered.
        """
        if chunk.restarted:
            self.last_step = {tag: step + 1 for tag, step in self.last_step.items()}
            self.resumes = []
        begin = 0
        while (resumed_at := self._first_resumed(chunk, is_compared, begin)) is not None:
            number = self.number
            yield from self._split(chunk, is_compared, begin, resumed_at)
            self.resumes = self.resumes[1:]
            if number == self.number and self.last_step and number < MAX_TOLD_ATTEMPTS:
                self.number += 1
                self.last_step = {}
            begin = resumed_at
        yield from self._split(chunk, is_compared, begin, len(chunk.step))

    def _first_resumed(self, chunk: Chunk, is_compared: NDArray[np.bool_], begin: int) -> int | None:
        """Return the index of the first point, from ``begin`` on, after the step of the next resume."""
        if not self.resumes:
            return None
        later = np.flatnonzero(is_compared[chunk.tag[begin:]] & (chunk.step[begin:] > self.resumes[0]))
        return begin + int(later[0]) if len(later) else None

    def _split(
        self, chunk: Chunk, is_compared: NDArray[np.bool_], begin: int, total: int
    ) -> Iterator[tuple[int, slice]]:
        """Yield the attempts between two points, as their steps tell. ``begin`` is of the present attempt."""
        searched = begin  # up to here no step goes back
        length = _MIN_SEARCH
        while searched < total and not self.disordered:
            end = min(searched + length, total)
            back = self._first_step_back(chunk, is_compared, slice(searched, end))
            if back is None:
                searched = end
                length *= 2
                continue
            if back > begin:
                yield self.number, slice(begin, back)
            begin = back
            searched = back
            length = _MIN_SEARCH
            self.number += 1
            self.last_step = {}
            self.resumes = []
            if self.disordered:
                self.disordered_at = int(chunk.step[back]), float(chunk.time[back])
        if searched > begin:
            yield self.number, slice(begin, searched)

    def _first_step_back(self, chunk: Chunk, is_compared: NDArray[np.bool_], part: slice) -> int | None:
        """Return the index of the first point in ``part`` whose step goes back; None if there is none.

        Remembers the last step of each tag before that point.
        """
        compared = np.flatnonzero(is_compared[chunk.tag[part]])
        if not len(compared):
            return None
        tag = chunk.tag[part][compared]
        step = chunk.step[part][compared]
        order = order_by_tag(tag)
        tag = tag[order]
        step = step[order]
        starts = np.ones(len(tag), bool)
        np.not_equal(tag[1:], tag[:-1], out=starts[1:])
        first_of_tags = starts.nonzero()[0]  # where each tag's points begin
        previous = np.empty_like(step)
        previous[1:] = step[:-1]
        names = [chunk.tags[code] for code in tag[first_of_tags]]
        previous[first_of_tags] = [
            min(self.last_step.get(name, first_step), 2**62)
            for name, first_step in zip(names, step[first_of_tags].tolist(), strict=True)
        ]
        back = (step < previous).nonzero()[0]
        if len(back):
            index = int(compared[order[back]].min())
            if index > 0:  # remember the steps before it
                self._first_step_back(chunk, is_compared, slice(part.start, part.start + index))
            return int(part.start) + index
        last_of_tags = np.append(first_of_tags[1:], len(step)) - 1
        self.last_step.update(zip(names, step[last_of_tags].tolist(), strict=True))
        return None

    def dump(self) -> list[Any]:
        """Return everything that `load` needs."""
        return [self.number, self.last_step, self.disordered_at, self.resumes]

    @classmethod
    def load(cls, state: Sequence[Any]) -> Self:
        """Undo `dump`."""
        return cls(*state)
