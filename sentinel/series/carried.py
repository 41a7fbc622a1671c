"""Tells an evaluation of held-out data from one that rows of batches carry along.

Some trainings log the last evaluation again beside the loss of each batch, as Lightning's progress bar does.
Such rows are no evaluations: ten of them that agree say nothing of a loss that rests. A held-out loss is
carried along where it repeats that of the row before to the last digit, in the same epoch, beside a training
loss that moved. What else of held-out data repeats beside it is, too. The first one of each epoch counts in
any case, so that an evaluation that really rests is told.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.detectors.schedules import HELD_OUT
from sentinel.detectors.signals import Signal
from sentinel.series.attempts import Points
from sentinel.series.buckets import Floats

_RECENT = 3  # points of a tag that later ones may need: of their own row, and of the two before


class Carried(msgspec.Struct, array_like=True):
    """What the last rows of one attempt told of its epoch, its training loss and its held-out data."""

    tags: dict[str, str] = msgspec.field(default_factory=dict)  # signal -> its first tag
    recent: dict[str, Points] = msgspec.field(default_factory=dict)  # by tag
    verdicts: Points | None = None  # of the last held-out loss: 1 where it is carried along

    def without(self, arrived: Sequence[Points]) -> list[Points]:
        """Return the points of some tags without those that are carried along."""
        for points in arrived:
            self.tags.setdefault(points.signal, points.tag)
        beside = [self.tags.get(signal, "") for signal in (Signal.EPOCH, Signal.LOSS)]
        asked = [p for p in arrived if p.tag in beside or p.signal in HELD_OUT]
        if not any(points.signal in HELD_OUT for points in asked):
            self.recent |= {points.tag: _last(points, self.recent.get(points.tag)) for points in asked}
            return [*arrived]
        known = self.recent | {points.tag: points.after(self.recent.get(points.tag)) for points in asked}
        self.recent = {tag: points.tail(_RECENT) for tag, points in known.items()}
        if not all(tag in known for tag in beside):
            return [*arrived]
        epoch, loss = (known[tag] for tag in beside)
        repeats = {p.tag: _repeats(known[p.tag], epoch, loss) for p in asked if p.signal in HELD_OUT}
        first_loss = self.tags.get(Signal.EVAL_LOSS, "")
        if first_loss in repeats:
            self.verdicts = repeats[first_loss].after(self.verdicts)
        kept = [
            points.take(~self._carries(points, repeats[points.tag])) if points.tag in repeats else points
            for points in arrived
        ]
        self.verdicts = self.verdicts and self.verdicts.tail(1)
        return kept

    def _carries(self, points: Points, repeats: Points) -> NDArray[np.bool_]:
        """Return which points of held-out data are carried along, given which of their tag repeat."""
        if self.verdicts is None:
            return np.zeros(len(points), bool)
        return (_value_at(repeats, points) > 0) & (_value_at(self.verdicts, points) > 0)


def _last(points: Points, earlier: Points | None) -> Points:
    """Return the last points after ``earlier`` ones. Most logs have no evaluations for which to join all."""
    last = points.tail(_RECENT + 1)
    is_enough = len(last) > _RECENT and bool(np.diff(last.step).all())
    return (last if is_enough else points.after(earlier)).tail(_RECENT)


def _repeats(evaluations: Points, epochs: Points, training: Points) -> Points:
    """Return 1 for evaluations that repeat the one before, in a row of the same epoch whose training loss
    moved, and 0 for others.
    """
    epoch = np.floor(_value_at(epochs, evaluations))
    is_same = np.append(False, (np.diff(evaluations.value) == 0) & (np.diff(epoch) == 0))
    newest = training.position.searchsorted(evaluations.position) - 1
    moved = training.value.take(newest, mode="clip") != training.value.take(newest - 1, mode="clip")
    before = newest - (training.step.take(newest, mode="clip") == evaluations.step)
    is_next = training.step.take(before, mode="clip") == np.append(-1, evaluations.step[:-1])
    return evaluations.with_value((is_same & is_next & moved & (newest > 0)).astype(float))


def _value_at(points: Points, rows: Points) -> Floats:
    """Return the newest value of ``points`` in the log at each of the rows; NaN where there is none."""
    latest = points.position.searchsorted(rows.position, "right") - 1
    return np.where(latest >= 0, points.value.take(latest, mode="clip"), np.nan)
