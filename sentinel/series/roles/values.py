"""What the values of a series say, whatever its name. It takes constant memory and grows with a log."""

from collections.abc import Callable, Mapping
from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.sources.base import Chunk, of_each_tag, order_by_tag

_MAX_SHARE = 1.5  # no share is larger, even if it was rounded
_MAX_PERCENT = 100.5  # rounded as well
_MAX_FOLLOWED_TAGS = 512  # of a stream that are followed; further ones are left out
_MIN_ORDERED_POINTS = 4  # finite ones, before their order says something


class Values(msgspec.Struct, frozen=True, array_like=True):
    """A summary of values in the order of the log: ``points`` of them, of which ``count`` are finite."""

    points: int = 0
    count: int = 0
    first: float = 0.0
    last: float = 0.0
    least: float = 0.0
    most: float = 0.0
    falls: int = 0
    rises: int = 0

    def after(self, values: NDArray[np.float64]) -> Self:
        """Return the summary after more values."""
        if not len(values):
            return self
        is_finite = np.isfinite(values)
        finite = values if is_finite.all() else values[is_finite]
        points = self.points + len(values)
        if not len(finite):
            return type(self)(
                points, self.count, self.first, self.last, self.least, self.most, self.falls, self.rises
            )
        first = float(finite[0])
        before = self.last if self.count else first
        falls = int(np.count_nonzero(finite[1:] < finite[:-1])) + (first < before)
        rises = int(np.count_nonzero(finite[1:] > finite[:-1])) + (first > before)
        least = float(finite.min())
        most = float(finite.max())
        return type(self)(
            points=points,
            count=self.count + len(finite),
            first=self.first if self.count else first,
            last=float(finite[-1]),
            least=min(self.least, least) if self.count else least,
            most=max(self.most, most) if self.count else most,
            falls=self.falls + falls,
            rises=self.rises + rises,
        )

    @property
    def is_constant(self) -> bool:
        """Whether all values are equal."""
        return self.count > 0 and self.least == self.most

    @property
    def is_share(self) -> bool:
        """Whether all values can be shares or correlations, with some tolerance for rounding."""
        return self.count > 0 and self.least >= -1.0 and self.most <= _MAX_SHARE

    @property
    def is_fraction(self) -> bool:
        """Whether the values differ and lie between 0 and 1."""
        return self.count > 0 and self.least >= 0 and self.most <= 1 and not self.is_constant

    @property
    def is_percent(self) -> bool:
        """Whether the values can be percent and cannot be shares."""
        return self.count > 0 and self.least >= -_MAX_PERCENT and _MAX_SHARE < self.most <= _MAX_PERCENT

    @property
    def is_skill(self) -> bool:
        """Whether the values can be a coefficient that is 1 at best and as low as it likes, such as an R2."""
        return self.count > 0 and self.least < -1.0 and self.most <= 1.0

    @property
    def never_falls(self) -> bool:
        """Whether this may be the best so far, or a sum."""
        return self.count >= _MIN_ORDERED_POINTS and self.falls == 0 and self.rises > 0


class TagValues(msgspec.Struct, frozen=True, array_like=True):
    """The summaries of the tags of a stream, in the order of their first points."""

    by_tag: Mapping[str, Values] = msgspec.field(default_factory=dict)

    def after(self, chunk: Chunk, is_followed: Callable[[str], bool]) -> Self:
        """Return the summaries after a chunk, of tags that are followed."""
        by_tag = dict(self.by_tag)
        order = order_by_tag(chunk.tag)
        parts = sorted((order[part] for part in of_each_tag(chunk.tag[order])), key=lambda index: index[0])
        for index in parts:
            tag = chunk.tags[chunk.tag[index[0]]]
            if tag in by_tag or (len(by_tag) < _MAX_FOLLOWED_TAGS and is_followed(tag)):
                by_tag[tag] = by_tag.get(tag, _EMPTY).after(chunk.value[index])
        return type(self)(by_tag)


_EMPTY = Values()
