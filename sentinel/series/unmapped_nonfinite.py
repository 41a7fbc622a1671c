"""Numbers that no detector judges where they are not finite: whether they stop being numbers for good.

The first point at which that is sure becomes a point of `Signal.OTHER_METRIC`, once in a stream. Its tag
names the metrics that are not finite by then. A stream whose losses say so themselves has none.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sentinel.detectors.signals import Signal
from sentinel.series.attempts import Points
from sentinel.sources.base import Chunk

LOSSES = frozenset(
    {
        *(Signal.LOSS, Signal.EVAL_LOSS, Signal.POLICY_LOSS, Signal.VALUE_LOSS, Signal.PREFERENCE_LOSS),
        *(Signal.LOSS_PART, Signal.EVAL_LOSS_PART),
    }
)
"""Signals that say enough where they are not finite."""

JUDGED_THEMSELVES = LOSSES | {Signal.GRAD_NORM}
"""Signals that are judged themselves where they are not finite."""

MIN_BROKEN_OF_LOSS = 3
"""Points in a row that are not finite and show that a loss without a meaning is broken."""

MIN_BROKEN_OF_OTHERS = 10
"""The same of any other number. A mean over episodes that did not end is NaN for some points."""

MIN_FINITE_BEFORE = 3
"""Finite points that such a number has to have before. What is NaN from the start was never measured."""

_MAX_TAGS_IN_NAME = 3  # in the name of the point
_LOSS = re.compile("loss", re.IGNORECASE)


def as_one_name(tags: Sequence[str]) -> str:
    """Return some tags as the name of a point that is about all of them."""
    more = len(tags) - _MAX_TAGS_IN_NAME
    return ", ".join(tags[:_MAX_TAGS_IN_NAME]) + (f" and {more} more" if more > 0 else "")


@dataclass(slots=True)
class UnmappedNonFinite:
    """Which tags without a meaning are finite. ``reported`` is true once nothing more is to be said."""

    finite: dict[str, int] = field(default_factory=dict)  # points so far, at most `MIN_FINITE_BEFORE`
    broken: dict[str, int] = field(default_factory=dict)  # points in a row that are not
    reported: bool = False

    def extend(
        self, chunk: Chunk, part: slice, position: int, unnamed: Sequence[bool], losses: Sequence[bool]
    ) -> list[Points]:
        """Return the point at which it is sure, if it is in this part of a chunk; ``position`` is that of the
        chunk.

        ``unnamed`` and ``losses`` say for each tag of the chunk whether it means nothing, or one of `LOSSES`.
        """
        if self.reported or not any(unnamed):
            return []
        code = chunk.tag[part]
        is_finite = np.isfinite(chunk.value[part])
        by_themselves = np.flatnonzero(np.array(losses)[code] & ~is_finite)
        end = int(by_themselves[0]) if len(by_themselves) else len(code)
        is_unnamed = np.array(unnamed)[code[:end]]
        report: list[Points] = []
        if is_finite[:end][is_unnamed].all() and not self.broken:
            self._count(chunk.tags, code[:end][is_unnamed])
        else:
            report = self._walk(chunk, part, np.flatnonzero(is_unnamed), is_finite, position)
        self.reported = bool(report or len(by_themselves))
        return report

    def _count(self, tags: Sequence[str], code: NDArray[np.uint32]) -> None:
        """Count points that are all finite."""
        codes, counts = np.unique(code, return_counts=True)
        for tag_code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            tag = tags[tag_code]
            self.finite[tag] = min(MIN_FINITE_BEFORE, self.finite.get(tag, 0) + count)

    def _walk(
        self, chunk: Chunk, part: slice, places: NDArray[np.intp], finite: NDArray[np.bool_], position: int
    ) -> list[Points]:
        """Count point by point, and return the point at which it is sure."""
        for place in places.tolist():
            index = part.start + place
            tag = chunk.tags[chunk.tag[index]]
            if finite[place]:
                self.finite[tag] = min(MIN_FINITE_BEFORE, self.finite.get(tag, 0) + 1)
                self.broken.pop(tag, None)
                continue
            is_loss = _LOSS.search(tag) is not None
            if is_loss or self.finite.get(tag, 0) >= MIN_FINITE_BEFORE:
                self.broken[tag] = self.broken.get(tag, 0) + 1
                if self.broken[tag] >= (MIN_BROKEN_OF_LOSS if is_loss else MIN_BROKEN_OF_OTHERS):
                    point = slice(index, index + 1)
                    return [
                        Points(
                            tag=as_one_name([*self.broken]),
                            signal=Signal.OTHER_METRIC,
                            step=chunk.step[point],
                            time=chunk.time[point],
                            position=np.array([position + index]),
                            value=chunk.value[point],
                        )
                    ]
        return []

    def dump(self) -> list[Any]:
        """Return everything that `load` needs."""
        return [self.finite, self.broken, self.reported]

    @classmethod
    def load(cls, state: Sequence[Any]) -> Self:
        """Undo `dump`."""
        return cls(*state)
