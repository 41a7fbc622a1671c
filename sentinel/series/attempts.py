"""Finds where one attempt of a stream ends and the next one begins.

A resumed training writes steps that it wrote before. So if the step of any tag goes back, a new attempt
begins for all tags. A step that repeats begins none, unless the file began anew: the next part of a rotated
log would go on after the last step.

Some tags count optimizer steps and others epochs, so steps are compared only within a tag. The steps of
these tags are not compared at all:

- tags without a meaning and histograms, because people log them at the number of the batch in its epoch,
- tags of the machine, such as its speed, because a validation logs them at steps of its own.

Steps may also go on through several trainings, as those of a W&B run in which each fold is trained. So an
attempt begins too where epoch and loss begin again: some epochs on, both are back where the attempt began.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.detectors.signals import Signal
from sentinel.series.buckets import Floats, Steps
from sentinel.sources.base import Chunk, order_by_tag


class Points(msgspec.Struct, frozen=True, gc=False, array_like=True):
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


def finite(points: Sequence[Points]) -> Sequence[Points]:
    """Return the points of some tags whose value is finite."""
    if np.isfinite(np.concatenate([np.empty(0), *(part.value for part in points)])).all():
        return points
    return [part.take(np.isfinite(part.value)) for part in points]


MAX_TOLD_ATTEMPTS = 8
"""Attempts up to which the console and the epoch are believed where the steps do not go back."""

MIN_EPOCHS = 3
"""Epochs that an attempt has passed before one that begins again begins another."""

MIN_LEARNED = 0.1
"""Share of its first value by which a loss has fallen that has learned something."""

MAX_ATTEMPTS = 64
"""How often a stream may go back. One that does so more often has several writers, and its steps no order."""


class Epochs(msgspec.Struct, array_like=True):
    """The epochs and the losses of an attempt so far, as each tag logs them.

    The attempt is a training of its own if it ``began_again``, by its epochs and losses or by its steps and
    losses. It goes on with one that had learned something if it ``continues`` its loss. ``falls`` counts the
    epochs that began again while the loss went on, as after a resume that lost the count. ``first_step`` is
    that of each loss of the training.
    """

    attempt: int = 1
    began_again: bool = False
    continues: bool = False
    falls: int = 0
    first: dict[str, float] = msgspec.field(default_factory=dict)
    last: dict[str, float] = msgspec.field(default_factory=dict)
    highest: dict[str, float] = msgspec.field(default_factory=dict)
    lowest: dict[str, float] = msgspec.field(default_factory=dict)
    first_step: dict[str, int] = msgspec.field(default_factory=dict)

    def learn(self, chunk: Chunk, codes: Sequence[int], part: slice) -> None:
        """Remember the values of some tags in a part of a chunk."""
        for code in codes:
            at = part.start + np.flatnonzero(chunk.tag[part] == code)
            at = at[np.isfinite(chunk.value[at])]
            if len(at):
                values = chunk.value[at]
                tag = chunk.tags[code]
                self.first.setdefault(tag, float(values[0]))
                self.first_step.setdefault(tag, int(chunk.step[at[0]]))
                self.last[tag] = float(values[-1])
                self.highest[tag] = max(self.highest.get(tag, -np.inf), float(values.max()))
                self.lowest[tag] = min(self.lowest.get(tag, np.inf), float(values.min()))

    def places_of_falls(self, chunk: Chunk, codes: Sequence[int], part: slice) -> list[int]:
        """Return the indices of the points at which epochs of some tags are back where the attempt began."""
        places: list[int] = []
        for code in codes:
            at = part.start + np.flatnonzero(chunk.tag[part] == code)
            at = at[np.isfinite(chunk.value[at])]
            values = chunk.value[at]
            if len(values):
                first = self.first.get(chunk.tags[code], values[0])
                before = np.append(self.last.get(chunk.tags[code], first), values[:-1])
                places += at[(values <= first) & (before > first)].tolist()
        return sorted(places)

    def begin_again(self, chunk: Chunk, index: int, losses: Sequence[int], row: slice) -> bool:
        """Return whether, some epochs on, all losses in the row of an epoch are nearer to their first values
        than to their last ones.
        """
        tag = chunk.tags[chunk.tag[index]]
        value = float(chunk.value[index])
        is_long = self.highest[tag] >= self.first[tag] + MIN_EPOCHS
        self.highest[tag] = value
        of_row = self._losses_of(chunk, losses, row)
        return is_long and bool(of_row) and all(abs(now - at[0]) < abs(now - at[1]) for now, at in of_row)

    def next(self, number: int, chunk: Chunk, losses: Sequence[int], row: slice) -> "Epochs":
        """Return those of the attempt that begins with a row.

        Its losses go on if they are nearer to their last values than to the first ones of the training. So
        they may in each epoch, if its steps count batches. They begin again if they are nearer to the first
        ones, and their steps are back there, too. One of exactly 0 goes on with nothing.
        """
        of_row = self._losses_of(chunk, losses, row)
        goes_on = [abs(now - last) < abs(now - first) for now, (first, last) in of_row]
        if not goes_on or not all(goes_on):
            return Epochs(number, began_again=not any(goes_on) and self._are_back(chunk, losses, row))
        has_learned = all(
            first - last > MIN_LEARNED * abs(first) and now != 0 for now, (first, last) in of_row
        )
        names = {chunk.tags[code] for code in losses} & self.first.keys()
        first = {name: self.first[name] for name in names}
        first_step = {name: self.first_step[name] for name in names}
        return Epochs(number, continues=has_learned, first=first, last=dict(first), first_step=first_step)

    def _are_back(self, chunk: Chunk, losses: Sequence[int], row: slice) -> bool:
        """Return whether losses in a row stand at the first step of the training, and it is no scatter that
        took them there: they had learned something, or lie further above all values than these lie apart.
        """
        is_back = [
            chunk.step[row.start] <= self.first_step[name]
            and (
                self.first[name] - self.last[name] > MIN_LEARNED * abs(self.first[name])
                or value - self.highest[name] > self.highest[name] - self.lowest[name]
            )
            for code, value in zip(chunk.tag[row].tolist(), chunk.value[row].tolist(), strict=True)
            if code in losses and (name := chunk.tags[code]) in self.first
        ]
        return bool(is_back) and all(is_back)

    def _losses_of(
        self, chunk: Chunk, losses: Sequence[int], row: slice
    ) -> list[tuple[float, tuple[float, float]]]:
        """Return the losses in a row, each with the first and the last value of its tag before."""
        return [
            (value, (self.first[name], self.last[name]))
            for code, value in zip(chunk.tag[row].tolist(), chunk.value[row].tolist(), strict=True)
            if code in losses and (name := chunk.tags[code]) in self.first
        ]


def _row_of(chunk: Chunk, index: int, part: slice) -> slice:
    """Return where the row of a point lies in a part of a chunk.

    A row logs each of its tags once, at one step and one time. It is never cut by a poll. Points that come
    one by one, as in event files, have times of their own, so each is a row.
    """
    tags = {int(chunk.tag[index])}
    begin = index
    while begin > part.start and _is_of_row(chunk, begin) and (tag := int(chunk.tag[begin - 1])) not in tags:
        tags.add(tag)
        begin -= 1
    end = index + 1
    while end < part.stop and _is_of_row(chunk, end) and (tag := int(chunk.tag[end])) not in tags:
        tags.add(tag)
        end += 1
    return slice(begin, end)


def _is_of_row(chunk: Chunk, index: int) -> bool:
    """Return whether a point was logged at the step and the time of the point before."""
    times = chunk.time[index - 1 : index + 1]
    is_same_time = times[0] == times[1] or np.isnan(times).all()
    return bool(is_same_time and chunk.step[index - 1] == chunk.step[index])


_MIN_SEARCH = 4096  # points searched at first for a step that goes back; doubled as long as there is none


class Attempts(msgspec.Struct, array_like=True):
    """The attempts of one stream so far, and the last step of each tag in the present attempt."""

    number: int = 1
    last_step: dict[str, int] = msgspec.field(default_factory=dict)
    disordered_at: tuple[int, float] | None = None  # step and time of the point that went back once too often
    # steps after which the console says that it was resumed
    resumes: list[int] = msgspec.field(default_factory=list)
    epochs: Epochs = msgspec.field(default_factory=Epochs)

    @property
    def goes_on(self) -> bool:
        """Whether the present attempt may go on with the training of the one before."""
        return not self.epochs.began_again

    @property
    def continues(self) -> bool:
        """Whether the present attempt goes on with a loss that had fallen, wherever its steps begin."""
        return self.epochs.continues

    @property
    def disordered(self) -> bool:
        """Whether steps went back so often that nothing more can be judged."""
        return self.number > MAX_ATTEMPTS

    def split(
        self, chunk: Chunk, is_compared: NDArray[np.bool_], signals: Sequence[Signal | None]
    ) -> Iterator[tuple[int, slice]]:
        """Yield the attempts within a chunk: the number and the slice of points of each.

        ``is_compared`` says for each tag of the chunk whether its steps are compared, and ``signals`` have
        its meanings. Nothing follows once the stream is disordered.
        """
        epochs = [code for code, signal in enumerate(signals) if signal is Signal.EPOCH]
        losses = [code for code, signal in enumerate(signals) if signal in (Signal.LOSS, Signal.EVAL_LOSS)]
        for _, part in self._split_by_steps(chunk, is_compared):
            yield from self._split_by_epochs(chunk, epochs, losses, part)

    def _split_by_steps(self, chunk: Chunk, is_compared: NDArray[np.bool_]) -> Iterator[tuple[int, slice]]:
        """Yield the attempts that steps and the console tell."""
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

    def _split_by_epochs(
        self, chunk: Chunk, epochs: Sequence[int], losses: Sequence[int], part: slice
    ) -> Iterator[tuple[int, slice]]:
        """Yield the attempts within one that the steps tell, as its epochs tell."""
        begin: int = part.start
        while (place := self._first_epoch_again(chunk, epochs, losses, slice(begin, part.stop))) is not None:
            if place > begin:
                yield self.number, slice(begin, place)
            self.number += 1
            self.epochs = Epochs(self.number, began_again=True)
            begin = place
        yield self.number, slice(begin, part.stop)

    def _first_epoch_again(
        self, chunk: Chunk, epochs: Sequence[int], losses: Sequence[int], part: slice
    ) -> int | None:
        """Return the index of the first point in ``part`` whose row begins a training of its own."""
        if self.epochs.attempt != self.number:
            self.epochs = self.epochs.next(self.number, chunk, losses, _row_of(chunk, part.start, part))
        begin: int = part.start
        for index in self.epochs.places_of_falls(chunk, epochs, part):
            if max(self.number, self.epochs.falls) >= MAX_TOLD_ATTEMPTS:
                return None
            row = _row_of(chunk, index, part)
            self.epochs.learn(chunk, [*epochs, *losses], slice(begin, row.start))
            begin = row.start
            if self.epochs.begin_again(chunk, index, losses, row):
                return int(row.start)
            self.epochs.falls += 1
        self.epochs.learn(chunk, [*epochs, *losses], slice(begin, part.stop))
        return None
