"""Where one attempt of a stream ends and the next begins.

A training that is resumed writes steps it has written before. Per tag, a step below the last one
begins a new attempt, for all tags; a step that repeats does not. Where the file began anew, a step that
repeats does, too: a log that was rotated goes on behind the last step. Tags may count differently
(optimizer steps, epochs), so steps are only ever compared within a tag. Tags that mean nothing, and
histograms, tell nothing: people give them the number of a batch. Nor do those of the machine, such as
its speed: a validation has them as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sentinel.sources.base import Chunk

MAX_ATTEMPTS = 64
"""A stream that goes back more often has several writers; its steps order nothing any more."""

_FIRST_LOOK = 4096  # points searched for a step that goes back, doubled while there is none


@dataclass
class Attempts:
    """The attempts of one stream so far, and each tag's last step in the present one."""

    number: int = 1
    last_step: dict[str, int] = field(default_factory=dict)
    disordered_at: tuple[int, float] | None = None  # step and time of the point that was too much

    @property
    def disordered(self) -> bool:
        """Whether steps went back so often that nothing more can be judged."""
        return self.number > MAX_ATTEMPTS

    def split(self, chunk: Chunk, telling: NDArray[np.bool_]) -> Iterator[tuple[int, slice]]:
        """The attempts within a chunk: number and slice of points. Ends early once disordered.

        ``telling`` says of each of the chunk's tags whether its steps count.
        """
        if chunk.restarted:
            self.last_step = {tag: step + 1 for tag, step in self.last_step.items()}
        begin, seen, look = 0, 0, _FIRST_LOOK
        total = len(chunk.step)
        while seen < total and not self.disordered:
            end = min(seen + look, total)
            back = self._first_step_back(chunk, telling, slice(seen, end))
            if back is None:
                seen, look = end, 2 * look
                continue
            if back > begin:
                yield self.number, slice(begin, back)
            begin, seen, look = back, back, _FIRST_LOOK
            self._begin()
            if self.disordered:
                self.disordered_at = int(chunk.step[back]), float(chunk.time[back])
        if seen > begin:
            yield self.number, slice(begin, seen)

    def _begin(self) -> None:
        self.number += 1
        self.last_step = {}

    def _first_step_back(self, chunk: Chunk, telling: NDArray[np.bool_], part: slice) -> int | None:
        """Index of the first point in ``part`` whose step goes back; remembers the steps before it."""
        own = np.flatnonzero(telling[chunk.tag[part]])
        if not len(own):
            return None
        tag, step = chunk.tag[part][own], chunk.step[part][own]
        order = np.argsort(tag, kind="stable")
        tag, step = tag[order], step[order]
        starts = np.ones(len(tag), bool)
        np.not_equal(tag[1:], tag[:-1], out=starts[1:])
        first = starts.nonzero()[0]  # where each tag's points begin
        before = np.empty_like(step)
        before[1:] = step[:-1]
        names = [chunk.tags[i] for i in tag[first]]
        before[first] = [
            min(self.last_step.get(n, s), 2**62) for n, s in zip(names, step[first].tolist(), strict=True)
        ]
        goes_back = step < before
        if goes_back.any():
            back = goes_back.nonzero()[0]
            at = int(own[order[back]].min())
            if at > 0:
                self._first_step_back(chunk, telling, slice(part.start, part.start + at))
            return int(part.start) + at
        last = np.append(first[1:], len(step)) - 1
        self.last_step.update(zip(names, step[last].tolist(), strict=True))
        return None

    def dump(self) -> list[Any]:
        """Everything `load` needs."""
        return [self.number, self.last_step, self.disordered_at]

    @classmethod
    def load(cls, state: list[Any]) -> Self:
        """Undo `dump`."""
        return cls(*state)
