"""Numbers that mean no signal and were alive: which of them freeze, and which leap for good.

A number is *alive* once it has moved up and down, so that counters, constants, schedules and flags never are.
When the first of them freezes, the step after that brings a point of `Signal.FROZEN_METRIC`, and when the
first leaps, one of `Signal.LEAPT_METRIC`, each once in a stream. Its tag names the numbers that did so by
then, and its value counts them. Every point decides at its own place in the stream, so the result is the same
however the log was cut into polls.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sentinel.detectors.signals import Signal
from sentinel.series.attempts import Points
from sentinel.series.buckets import Floats
from sentinel.series.unmapped_nonfinite import as_one_name
from sentinel.sources.base import Chunk, of_each_tag, order_by_tag

STILL = 100
"""Points without a move after which a number is frozen."""

LEAP = 20.0
IN_A_ROW = 3
"""A number leaps if it exceeds its former maximum this many times over, at this many points in a row. A
single point may be a pause or an outlier."""

MIN_MOVES = 50
MOVING = 0.9
TURNING = 0.25
"""A number is alive after this many moves, if at least this share of its points moved and at least this
share of its moves went back."""

MAX_TAGS = 512
"""How many numbers of a stream are followed. Further ones are left out."""

ODD = Signal.FROZEN_METRIC, Signal.LEAPT_METRIC


@dataclass(frozen=True, slots=True)
class Life:
    """What is known of one number up to its last finite point."""

    points: int = 0
    moves: int = 0
    turns: int = 0  # moves that went back
    way: float = 0.0  # sign of the last move
    still: int = 0  # points since the last move
    low: float = np.inf
    high: float = -np.inf
    top: float = 0.0  # largest size before the last points
    last: Sequence[float] = ()  # at most `IN_A_ROW` points

    def then(self, values: Floats) -> tuple["Life", Mapping[Signal, NDArray[np.bool_]]]:
        """Return what is known after more values, and at which of these the number is frozen or has leapt.

        Nothing says the latter of a number that moved too seldom to be alive.
        """
        seen = np.concatenate([self.last, values])
        way = np.sign(np.diff(seen, prepend=seen[0]))[len(self.last) :]
        moved = np.flatnonzero(way)
        ways = np.append(self.way, way[moved])
        turned = moved[ways[1:] * ways[:-1] < 0]
        kept = seen[-IN_A_ROW:].tolist()
        before = np.abs(seen[: len(seen) - len(kept)])
        now = Life(
            points=self.points + len(values),
            moves=self.moves + len(moved),
            turns=self.turns + len(turned),
            way=float(ways[-1]),
            still=int(len(values) - 1 - moved[-1]) if len(moved) else self.still + len(values),
            low=float(values.min(initial=self.low)),
            high=float(values.max(initial=self.high)),
            top=float(before.max(initial=self.top)),
            last=kept,
        )
        return now, self._odd(values, seen, moved, turned) if now.moves >= MIN_MOVES else {}

    def _odd(
        self, values: Floats, seen: Floats, moved: NDArray[np.int64], turned: NDArray[np.int64]
    ) -> Mapping[Signal, NDArray[np.bool_]]:
        """Return at which of the values the number is odd; ``seen`` has the last points before them, too."""
        index = np.arange(len(values))
        moves, turns = (
            count + np.bincount(places, minlength=len(values)).cumsum()
            for count, places in ((self.moves, moved), (self.turns, turned))
        )
        last = np.full(len(values), -1 - self.still)
        last[moved] = moved
        still = index - np.maximum.accumulate(last)
        moving = moves >= MOVING * (self.points + index - still)
        alive = (moves >= MIN_MOVES) & (turns >= TURNING * moves) & moving
        low = np.minimum(np.minimum.accumulate(values), self.low)
        high = np.maximum(np.maximum.accumulate(values), self.high)
        size = np.abs(seen)
        top = np.maximum.accumulate(np.append(self.top, size))  # before each point that was seen
        inside = (low < values) & (values < high)  # elsewhere it may be saturated
        return {
            Signal.FROZEN_METRIC: alive & (still >= STILL) & inside,
            Signal.LEAPT_METRIC: alive & _leaps(size, top)[len(self.last) :],
        }


_UNKNOWN = Life()


def _leaps(size: Floats, top: Floats) -> NDArray[np.bool_]:
    """Return whether each point is the last of some in a row that exceed by far what was before them."""
    count = max(len(size) - IN_A_ROW + 1, 0)
    least = np.min([size[place : place + count] for place in range(IN_A_ROW)], axis=0)
    leaps = (least > LEAP * top[:count]) & (top[:count] > 0)
    return np.append(np.zeros(len(size) - count, bool), leaps)


@dataclass(slots=True)
class UnmappedShape:
    """The numbers of a stream that mean no signal.

    ``waiting`` holds what is to be told at the next step: the present one, and the names. ``told`` holds what
    is never told again.
    """

    lives: dict[str, Life] = field(default_factory=dict)
    waiting: dict[Signal, tuple[int, list[str]]] = field(default_factory=dict)
    reported: list[Signal] = field(default_factory=list)

    def extend(self, chunk: Chunk, part: slice, position: int, unnamed: Sequence[bool]) -> list[Points]:
        """Return what is told in this part of a chunk; ``position`` is that of the chunk.

        ``unnamed`` says for each tag of the chunk whether it means nothing.
        """
        if len(self.reported) == len(ODD) or not any(unnamed):
            return []
        events = self._events(chunk, part, unnamed)
        due = [(signal, events.get(signal, [])) for signal in ODD if signal not in self.reported]
        told = [point for signal, own in due for point in self._report(signal, own, chunk, part, position)]
        return sorted(told, key=lambda points: int(points.position[0]))

    def _events(
        self, chunk: Chunk, part: slice, unnamed: Sequence[bool]
    ) -> dict[Signal, list[tuple[int, str]]]:
        """Return where in the chunk each number is odd first, in order."""
        asked = np.array(unnamed)[chunk.tag[part]] & np.isfinite(chunk.value[part])
        places = np.flatnonzero(asked) + part.start
        places = places[order_by_tag(chunk.tag[places])]
        code = chunk.tag[places]
        events: dict[Signal, list[tuple[int, str]]] = {}
        for of_tag in of_each_tag(code):
            at = places[of_tag]
            tag = chunk.tags[code[of_tag.start]]
            if tag not in self.lives and len(self.lives) == MAX_TAGS:
                continue
            self.lives[tag], odd = self.lives.get(tag, _UNKNOWN).then(chunk.value[at])
            for signal, is_odd in odd.items():
                if is_odd.any():
                    events.setdefault(signal, []).append((int(at[is_odd.argmax()]), tag))
        return {signal: sorted(own) for signal, own in events.items()}

    def _report(
        self, signal: Signal, events: Sequence[tuple[int, str]], chunk: Chunk, part: slice, position: int
    ) -> Iterator[Points]:
        """Yield the point that tells of ``events``, once there is one of another step."""
        begin = part.start
        if signal not in self.waiting:
            if not events:
                return
            begin = events[0][0]
            self.waiting[signal] = int(chunk.step[begin]), []
        step, names = self.waiting[signal]
        others = np.flatnonzero(chunk.step[begin : part.stop] != step)
        end = begin + int(others[0]) if len(others) else part.stop
        names += [tag for place, tag in events if place < end and tag not in names]
        if len(others):
            point = slice(end, end + 1)
            self.reported.append(signal)
            where = np.array([position + end])
            value = np.array([float(len(names))])
            yield Points(as_one_name(names), signal, chunk.step[point], chunk.time[point], where, value)

    def dump(self) -> list[Any]:
        """Return everything `load` needs."""
        return [{tag: astuple(life) for tag, life in self.lives.items()}, self.waiting, self.reported]

    @classmethod
    def load(cls, state: Sequence[Any]) -> Self:
        """Undo `dump`."""
        lives, waiting, told = state
        return cls(
            {tag: Life(*life) for tag, life in lives.items()},
            {Signal(signal): (step, list(names)) for signal, (step, names) in waiting.items()},
            [Signal(signal) for signal in told],
        )
