"""Which number of a record counts the steps."""

import math
import re
from typing import Any

import msgspec

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.readers.plain import MAX_STEP

_COUNT_TEXT = lazy_pattern(r"\s*(\d{1,18})\s*(?:/\s*(\d{1,18})\s*)?", re.ASCII)


class Axis(msgspec.Struct):
    """Decides what the step of each record is, from the records so far.

    1. If the record has a step, that is it.
    2. If an earlier record had a step, this record belongs to the last step.
    3. If no record had a step yet, a whole epoch is the step.
    4. If there was no whole epoch either, or an epoch was a fraction, the line number is the step.
    """

    kind: str = ""  # "step", "epoch" or "line"; empty as long as nothing is known
    last: int = 0
    epoch: float = 0.0
    highest: int = 0  # iteration of this epoch
    offset: int = 0  # iterations in the epochs before
    batches: int = 0  # of this epoch, if the log states it
    from_zero: bool = False  # epochs count
    beside_iteration: bool = False  # whether a record had a step beside its iteration, as MMEngine's have
    counts_rows: bool = False  # what looked like the step fell

    def step(self, count: int | None, epoch: Any, line: int, may_be_length: bool = False) -> int:
        """Return the step of one record, which has ``count`` as its own step and ``epoch`` as its epoch.

        A count that ``may_be_length``, such as `steps`, is the length of an episode if it falls: from then
        on records are counted, onwards from the last step.
        """
        if count is not None:
            self.counts_rows |= may_be_length and self.kind == "step" and count < self.last
            self.kind = "step"
            self.last = self.last + 1 if self.counts_rows else count
        elif self.kind in ("", "epoch") and epoch is not None:
            count, _ = count_of(epoch)
            self.kind, self.last = ("line", 0) if count is None else ("epoch", count)
        return line if self.kind in ("", "line") else self.last

    def iteration(self, count: int, epoch: Any, batches: int | None) -> int:
        """Return the count over all epochs, if ``count`` begins anew in each epoch (OpenMMLab, timm and
        others).

        An epoch has so many ``batches``, if the record states that. A count that goes on beyond that of the
        epoch before counts over all epochs as it is.
        """
        if not isinstance(epoch, (int, float)) or not math.isfinite(epoch):
            return count
        self.from_zero |= epoch < 1
        if batches and (epoch < self.epoch or not self.batches):
            self.offset = self._batches_of(epoch - (not self.from_zero), batches)
        elif epoch < self.epoch:
            self.offset = 0
        elif epoch > self.epoch and (
            count < self.highest or (batches and (count == self.highest or not self.highest))
        ):
            passed = self._batches_of(epoch - self.epoch, self.batches) or self.highest
            self.offset = min(self.offset + passed, MAX_STEP)
        if epoch != self.epoch:
            self.epoch = epoch
            self.highest = 0
        self.highest = max(self.highest, count)
        self.batches = batches or self.batches
        return min(self.offset + count, MAX_STEP)

    @staticmethod
    def _batches_of(epochs: float, batches: int) -> int:
        return int(min(epochs * batches, MAX_STEP))


def count_of(value: Any) -> tuple[int | None, int | None]:
    """Return the step and the planned last step in 12, 12.0, "12" or "12/500"; None for what it lacks."""
    if isinstance(value, str):
        count = _COUNT_TEXT.fullmatch(value)
        return (int(count[1]), int(count[2]) if count[2] else None) if count else (None, None)
    whole = abs(value) < MAX_STEP and value == int(value)
    return (int(value) if whole else None), None
