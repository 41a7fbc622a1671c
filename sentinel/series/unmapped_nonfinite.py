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
"""Signals whose break tells all that there is to tell."""

JUDGED_THEMSELVES = LOSSES | {Signal.GRAD_NORM}
"""Signals that are judged themselves where they are not finite."""

OF_A_LOSS = 3
"""Points in a row that are not finite and tell that a loss without a meaning is broken."""

OF_OTHERS = 10
"""The same of any other number. A mean over episodes that did not end is NaN for some points."""

BEFORE = 3
"""Finite points that such a number has to have before. What is NaN from the start was never measured."""

_NAMED = 3  # tags in the name of the point
_LOSS = re.compile("loss", re.IGNORECASE)


def as_one_name(tags: Sequence[str]) -> str:
    """Return some tags as the name of a point that is about all of them."""
    more = len(tags) - _NAMED
    return ", ".join(tags[:_NAMED]) + (f" and {more} more" if more > 0 else "")


@dataclass(slots=True)
class UnmappedNonFinite:
    """Which tags without a meaning are finite. ``told`` is true once nothing more is to be said."""

    finite: dict[str, int] = field(default_factory=dict)  # points so far, at most `BEFORE`
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
        asked = np.array(unnamed)[code[:end]]
        if is_finite[:end][asked].all() and not self.broken:
            self._count(chunk.tags, code[:end][asked])
            told = []
        else:
            told = self._walk(chunk, part, np.flatnonzero(asked), is_finite, position)
        self.reported = bool(told or len(by_themselves))
        return told

    def _count(self, tags: Sequence[str], code: NDArray[np.uint32]) -> None:
        """Count points that are all finite."""
        codes, counts = np.unique(code, return_counts=True)
        for at, count in zip(codes.tolist(), counts.tolist(), strict=True):
            self.finite[tags[at]] = min(BEFORE, self.finite.get(tags[at], 0) + count)

    def _walk(
        self, chunk: Chunk, part: slice, places: NDArray[np.intp], finite: NDArray[np.bool_], position: int
    ) -> list[Points]:
        """Return the same point by point."""
        for place in places.tolist():
            at = part.start + place
            tag = chunk.tags[chunk.tag[at]]
            if finite[place]:
                self.finite[tag] = min(BEFORE, self.finite.get(tag, 0) + 1)
                self.broken.pop(tag, None)
            elif (is_loss := _LOSS.search(tag) is not None) or self.finite.get(tag, 0) >= BEFORE:
                self.broken[tag] = self.broken.get(tag, 0) + 1
                if self.broken[tag] >= (OF_A_LOSS if is_loss else OF_OTHERS):
                    point = slice(at, at + 1)
                    where = np.array([position + at])
                    columns = chunk.step[point], chunk.time[point], where, chunk.value[point]
                    return [Points(as_one_name([*self.broken]), Signal.OTHER_METRIC, *columns)]
        return []

    def dump(self) -> list[Any]:
        """Return everything `load` needs."""
        return [self.finite, self.broken, self.reported]

    @classmethod
    def load(cls, state: Sequence[Any]) -> Self:
        """Undo `dump`."""
        return cls(*state)
