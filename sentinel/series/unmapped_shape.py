"""Numbers that mean no signal and were alive: which of them freeze, and which leap for good.

A number is *alive* once it has moved up and down, so that counters, constants, schedules and flags never are.
When the first of them freezes, the step after that brings a point of `Signal.FROZEN_METRIC`, and when the
first leaps, one of `Signal.LEAPT_METRIC`, each once in a stream. Its tag names the numbers that did so by
then, and its value counts them. Every point decides at its own place in the stream, so the result is the same
however the log was cut into polls.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
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
"""A number leaps if it exceeds its former maximum this many times over."""

IN_A_ROW = 3
"""Points in a row at which a number must leap. A single point may be a pause or an outlier."""

MIN_MOVES = 50
"""Moves of a number before it is alive."""

MIN_MOVING_SHARE = 0.9
"""Share of the points of a living number that move."""

MIN_TURNING_SHARE = 0.25
"""Share of the moves of a living number that go back."""

MAX_TAGS = 512
"""How many numbers of a stream are followed. Further ones are left out."""

ODD = Signal.FROZEN_METRIC, Signal.LEAPT_METRIC
"""What a number without a meaning can do."""


class Life(msgspec.Struct, frozen=True, array_like=True):
    """What one number did up to its last finite point."""

    points: int = 0
    moves: int = 0
    turns: int = 0  # moves that went back
    direction: float = 0.0  # sign of the last move
    still_points: int = 0  # since the last move
    low: float = np.inf
    high: float = -np.inf
    top: float = 0.0  # largest size before the last points
    last: Sequence[float] = ()  # at most `IN_A_ROW` points

    def after(self, values: Floats) -> tuple["Life", Mapping[Signal, NDArray[np.bool_]]]:
        """Return the life after more values, and at which of these the number is frozen or has leapt.

        A number that moved too seldom to be alive never is either.
        """
        recent = np.concatenate([self.last, values])
        direction = np.sign(np.diff(recent, prepend=recent[0]))[len(self.last) :]
        moves_at = np.flatnonzero(direction)
        directions = np.append(self.direction, direction[moves_at])
        turns_at = moves_at[directions[1:] * directions[:-1] < 0]
        last = recent[-IN_A_ROW:].tolist()
        before_last = np.abs(recent[: len(recent) - len(last)])
        still_points = self.still_points + len(values)
        if len(moves_at):
            still_points = int(len(values) - 1 - moves_at[-1])
        life = Life(
            points=self.points + len(values),
            moves=self.moves + len(moves_at),
            turns=self.turns + len(turns_at),
            direction=float(directions[-1]),
            still_points=still_points,
            low=float(values.min(initial=self.low)),
            high=float(values.max(initial=self.high)),
            top=float(before_last.max(initial=self.top)),
            last=last,
        )
        return life, self._odd(values, recent, moves_at, turns_at) if life.moves >= MIN_MOVES else {}

    def _odd(
        self, values: Floats, recent: Floats, moves_at: NDArray[np.int64], turns_at: NDArray[np.int64]
    ) -> Mapping[Signal, NDArray[np.bool_]]:
        """Return at which of the values the number is odd. ``recent`` has the last points before, too."""
        index = np.arange(len(values))
        moves = self.moves + np.bincount(moves_at, minlength=len(values)).cumsum()
        turns = self.turns + np.bincount(turns_at, minlength=len(values)).cumsum()
        last_move = np.full(len(values), -1 - self.still_points)
        last_move[moves_at] = moves_at
        still_points = index - np.maximum.accumulate(last_move)
        is_moving = moves >= MIN_MOVING_SHARE * (self.points + index - still_points)
        is_alive = (moves >= MIN_MOVES) & (turns >= MIN_TURNING_SHARE * moves) & is_moving
        low = np.minimum(np.minimum.accumulate(values), self.low)
        high = np.maximum(np.maximum.accumulate(values), self.high)
        size = np.abs(recent)
        top = np.maximum.accumulate(np.append(self.top, size))  # before each of the recent points
        is_inside = (low < values) & (values < high)  # elsewhere it may be saturated
        return {
            Signal.FROZEN_METRIC: is_alive & (still_points >= STILL) & is_inside,
            Signal.LEAPT_METRIC: is_alive & _leaps(size, top)[len(self.last) :],
        }


_NEW = Life()


def _leaps(size: Floats, top: Floats) -> NDArray[np.bool_]:
    """Return whether each point is the last of some in a row that exceed by far what was before them."""
    count = max(len(size) - IN_A_ROW + 1, 0)
    least = np.min([size[shift : shift + count] for shift in range(IN_A_ROW)], axis=0)
    leaps = (least > LEAP * top[:count]) & (top[:count] > 0)
    return np.append(np.zeros(len(size) - count, bool), leaps)


class UnmappedShape(msgspec.Struct, array_like=True):
    """The numbers of a stream that mean no signal.

    ``waiting`` holds what is to be reported at the next step: the present step, and the names. What is in
    ``reported`` is not reported again.
    """

    lives: dict[str, Life] = msgspec.field(default_factory=dict)
    waiting: dict[Signal, tuple[int, list[str]]] = msgspec.field(default_factory=dict)
    reported: list[Signal] = msgspec.field(default_factory=list)

    def extend(self, chunk: Chunk, part: slice, position: int, unnamed: Sequence[bool]) -> list[Points]:
        """Return the points that report what is due in this part of a chunk; ``position`` is the chunk's.

        ``unnamed`` says for each tag of the chunk whether it means nothing.
        """
        if len(self.reported) == len(ODD) or not any(unnamed):
            return []
        events = self._events(chunk, part, unnamed)
        due_signals = [signal for signal in ODD if signal not in self.reported]
        reports = [
            report
            for signal in due_signals
            for report in self._report(signal, events.get(signal, []), chunk, part, position)
        ]
        return sorted(reports, key=lambda points: int(points.position[0]))

    def _events(
        self, chunk: Chunk, part: slice, unnamed: Sequence[bool]
    ) -> dict[Signal, list[tuple[int, str]]]:
        """Return where in the chunk each number is odd first, in order."""
        is_followed = np.array(unnamed)[chunk.tag[part]] & np.isfinite(chunk.value[part])
        all_indices = np.flatnonzero(is_followed) + part.start
        all_indices = all_indices[order_by_tag(chunk.tag[all_indices])]
        code = chunk.tag[all_indices]
        events: dict[Signal, list[tuple[int, str]]] = {}
        for tag_part in of_each_tag(code):
            indices = all_indices[tag_part]
            tag = chunk.tags[code[tag_part.start]]
            if tag not in self.lives and len(self.lives) == MAX_TAGS:
                continue
            self.lives[tag], odd = self.lives.get(tag, _NEW).after(chunk.value[indices])
            for signal, is_odd in odd.items():
                if is_odd.any():
                    events.setdefault(signal, []).append((int(indices[is_odd.argmax()]), tag))
        return {signal: sorted(tags_by_row) for signal, tags_by_row in events.items()}

    def _report(
        self, signal: Signal, events: Sequence[tuple[int, str]], chunk: Chunk, part: slice, position: int
    ) -> Iterator[Points]:
        """Yield the point that reports the ``events``, once there is one of another step."""
        begin = part.start
        if signal not in self.waiting:
            if not events:
                return
            begin = events[0][0]
            self.waiting[signal] = int(chunk.step[begin]), []
        step, names = self.waiting[signal]
        others = np.flatnonzero(chunk.step[begin : part.stop] != step)
        end = begin + int(others[0]) if len(others) else part.stop
        names += [tag for index, tag in events if index < end and tag not in names]
        if len(others):
            point = slice(end, end + 1)
            self.reported.append(signal)
            yield Points(
                tag=as_one_name(names),
                signal=signal,
                step=chunk.step[point],
                time=chunk.time[point],
                position=np.array([position + end]),
                value=np.array([float(len(names))]),
            )
