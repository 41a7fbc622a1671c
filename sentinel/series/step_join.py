"""Joins points of several tags that have the same step.

A log may hold them side by side or one tag after the other, and some of them may never come. The positions of
the points in the stream decide what is joined, and in which order.
"""

from collections.abc import Mapping, Sequence
from functools import reduce

import msgspec
import numpy as np
from msgspec.structs import replace

from sentinel.series.attempts import Points
from sentinel.series.buckets import Floats, Steps

REACH = 512
"""A point waits for its partners while at most this many newer points of its own tag have arrived.

A partner may never come, and each tag that waits for one keeps so many points in memory.
"""

_NO_STEP = -(2**63)


class Join(msgspec.Struct, array_like=True):
    """Points that wait for their partners. If points of a tag repeat a step, only one counts."""

    waiting: dict[str, Points] = msgspec.field(default_factory=dict)  # by tag
    passed: int = _NO_STEP  # everything up to this step is joined

    def extend(
        self, tags: Sequence[str], arrived: Mapping[str, Points]
    ) -> tuple[Points, Sequence[Floats]] | None:
        """Return the complete points of the first tag, and the other tags' values at their steps.

        ``tags`` holds "" for a tag that has not appeared yet. A complete point has the position of its last
        partner.
        """
        for tag, points in arrived.items():
            self.waiting[tag] = points.after(self.waiting.get(tag))
        if not all(tag in self.waiting for tag in tags):
            self._forget(_NO_STEP)
            return None
        parts = [self.waiting[tag] for tag in tags]
        steps = _common([part.step for part in parts])
        steps = steps[steps > self.passed]
        indices = [np.searchsorted(part.step, steps) for part in parts]
        pairs = [*zip(parts, indices, strict=True)]
        position = np.max([part.position[index] for part, index in pairs], axis=0)
        newer_counts = [np.searchsorted(part.position, position) - index for part, index in pairs]
        is_in_reach = np.all([count <= REACH for count in newer_counts], axis=0)
        order = np.flatnonzero(is_in_reach)[np.argsort(position[is_in_reach], kind="stable")]
        complete = replace(parts[0].take(indices[0][order]), position=position[order])
        self.passed = min(int(part.step[-1]) for part in parts)  # no partner of these can come any more
        self._forget(self.passed)
        return complete, [part.value[index[order]] for part, index in pairs[1:]]

    def _forget(self, passed: int) -> None:
        """Forget points that no later partner can need."""
        for tag, part in self.waiting.items():
            begin = max(int(np.searchsorted(part.step, passed)), len(part) - REACH - 1)
            self.waiting[tag] = part.tail(len(part) - begin)


def _common(steps: Sequence[Steps]) -> Steps:
    """Return the steps that all of them have, in order."""
    first, *others = steps
    are_equal = all(len(other) == len(first) and (other == first).all() for other in others)
    if are_equal and (first[1:] > first[:-1]).all():
        return first
    return reduce(np.intersect1d, steps)
