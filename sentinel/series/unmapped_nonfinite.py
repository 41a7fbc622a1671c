"""Numbers that no detector judges where they are not finite: whether they stop being numbers for good.

The first point at which that is sure becomes a point of `Signal.OTHER_METRIC`, once in a stream, behind the
first one of the same metric that is not finite. Its tag names the metrics that are not finite by then. All
later points of that metric follow, so that it is known how long this lasts. A stream whose losses say so
themselves has none.
"""

import re
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from sentinel.common.lazy_pattern import lazy_pattern
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

UNDEFINED_AT_REST = frozenset({Signal.EXPLAINED_VARIANCE})
"""Signals that are no number where something else never varies: the returns, whose rest is judged itself."""

MIN_BROKEN_OF_LOSS = 3
"""Points in a row that are not finite and show that a loss without a meaning, or a correlation, is broken."""

MIN_BROKEN_OF_OTHERS = 10
"""The same of any other number. A mean over episodes that did not end is NaN for some points."""

MIN_FINITE_BEFORE = 3
"""Finite points in a row that such a number has to begin with. What is NaN before was never measured, or is
measured from time to time.
"""

_NOT_ALWAYS_MEASURED = -(1 << 62)  # finite points of such a number: none are ever enough

_MAX_TAGS_IN_NAME = 3  # in the name of the point
_LOSS_TAG = lazy_pattern("loss", re.IGNORECASE)
_CORRELATION_TAG = lazy_pattern("pearson|spearman|kendall", re.IGNORECASE)
"""What is undefined where all answers of a model are equal, or all labels: then another one is finite."""

_DIGITS = lazy_pattern(r"\d+")


def as_one_name(tags: Sequence[str]) -> str:
    """Return some tags as the name of a point that is about all of them."""
    unnamed_count = len(tags) - _MAX_TAGS_IN_NAME
    return ", ".join(tags[:_MAX_TAGS_IN_NAME]) + (f" and {unnamed_count} more" if unnamed_count > 0 else "")


def _stem(tag: str) -> str:
    return _DIGITS.sub("", tag).strip()


class UnmappedNonFinite(msgspec.Struct, array_like=True):
    """Which tags without a meaning are finite. ``reported`` is true once nothing more is to be found, and
    ``followed`` is the tag of what was found.
    """

    finite: dict[str, int] = msgspec.field(default_factory=dict)  # points so far, at most `MIN_FINITE_BEFORE`
    # points in a row that are not, with the step and the time of the first
    broken: dict[str, tuple[int, int, float]] = msgspec.field(default_factory=dict)
    reported: bool = False
    followed: str = ""

    def extend(
        self, chunk: Chunk, part: slice, position: int, unnamed: Sequence[bool], losses: Sequence[bool]
    ) -> list[Points]:
        """Return the points that say so, if some are in this part of a chunk; ``position`` is that of the
        chunk.

        ``unnamed`` and ``losses`` say for each tag of the chunk whether it means nothing, or one of `LOSSES`.
        """
        if self.followed:
            return self._later(chunk, part, position)
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
        self, chunk: Chunk, part: slice, offsets: NDArray[np.intp], finite: NDArray[np.bool_], position: int
    ) -> list[Points]:
        """Count point by point. Return the first point, the one at which it is sure, and all later ones."""
        for offset in offsets.tolist():
            index = part.start + offset
            tag = chunk.tags[chunk.tag[index]]
            if finite[offset]:
                self.finite[tag] = min(MIN_FINITE_BEFORE, self.finite.get(tag, 0) + 1)
                self.broken.pop(tag, None)
                continue
            if self.finite.get(tag, 0) < MIN_FINITE_BEFORE:
                self.finite[tag] = _NOT_ALWAYS_MEASURED
            is_loss = _LOSS_TAG.search(tag) is not None or _CORRELATION_TAG.search(tag) is not None
            if is_loss or self.finite.get(tag, 0) >= MIN_FINITE_BEFORE:
                before = self.broken.get(tag, (0, int(chunk.step[index]), float(chunk.time[index])))
                count, step, time = before
                self.broken[tag] = (count + 1, step, time)
                if count + 1 >= (MIN_BROKEN_OF_LOSS if is_loss else MIN_BROKEN_OF_OTHERS):
                    if self._has_finite_sibling(tag):
                        del self.broken[tag]
                        continue
                    self.followed = tag
                    begin = self._points([(step, time)], [position + index], [chunk.value[index]])
                    return [_joined([begin, *self._later(chunk, slice(index, part.stop), position)])]
        return []

    def _has_finite_sibling(self, tag: str) -> bool:
        """Return whether a metric of another number is finite at present, or another correlation: a class
        that no sample of an evaluation had has no score, and the other classes have one. A loss has none.
        """
        if _LOSS_TAG.search(tag):
            return False
        seen = (other for other, count in self.finite.items() if count > _NOT_ALWAYS_MEASURED)
        others = (other for other in seen if other != tag and other not in self.broken)
        if _CORRELATION_TAG.search(tag):
            return any(_CORRELATION_TAG.search(other) for other in others)
        return any(_stem(other) == _stem(tag) for other in others)

    def _later(self, chunk: Chunk, part: slice, position: int) -> list[Points]:
        """Return the points of what was found in a part of a chunk."""
        if self.followed not in chunk.tags:
            return []
        indices = part.start + np.flatnonzero(chunk.tag[part] == chunk.tags.index(self.followed))
        rows = zip(chunk.step[indices].tolist(), chunk.time[indices].tolist(), strict=True)
        return [self._points([*rows], indices + position, chunk.value[indices])] if len(indices) else []

    def _points(self, rows: Sequence[tuple[int, float]], positions: ArrayLike, values: ArrayLike) -> Points:
        """Return points of what was found; ``rows`` are their steps and times."""
        return Points(
            tag=as_one_name([*self.broken]),
            signal=Signal.OTHER_METRIC,
            step=np.array([step for step, _ in rows]),
            time=np.array([time for _, time in rows]),
            position=np.asarray(positions, np.int64),
            value=np.asarray(values, np.float64),
        )


def _joined(parts: Sequence[Points]) -> Points:
    """Return the points of one metric as one, because a tag has one set of points at a time."""
    fields = ("step", "time", "position", "value")
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in fields}
    return Points(parts[0].tag, parts[0].signal, **columns)
