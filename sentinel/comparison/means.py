"""Keeps the course of every tag of a run as means of stretches of rows, in bounded memory."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sentinel.common.conversion import converter
from sentinel.series.buckets import Buckets
from sentinel.series.curves import MAX_CURVES, by_tag
from sentinel.sources.base import Chunk


class TagCourses(Protocol):
    """The courses of the tags of a run."""

    def course(self, tag: str, width: int = 1, /) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return what `Means.course` does."""

    def width(self, tag: str, /) -> int:
        """Return what `Means.width` does."""


_to_buckets = converter(dict[str, Buckets])


class Means:
    """The courses of a run by tag; of a run with very many tags, the first ones."""

    def __init__(self) -> None:
        self._buckets: dict[str, Buckets] = {}
        self._left_out: set[str] = set()

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Add what a poll brought."""
        for tag, rows in by_tag(chunks):
            if tag in self._buckets or (tag not in self._left_out and len(self._buckets) < MAX_CURVES):
                self._buckets.setdefault(tag, Buckets(extremes=False)).push(rows.value, rows.step)

    def new(self, chunks: Iterable[Chunk]) -> set[str]:
        """Return the tags of chunks yet to be added that no earlier chunk had."""
        return {tag for chunk in chunks for tag in chunk.tags} - self._buckets.keys() - self._left_out

    def keep(self, tags: AbstractSet[str], new_tags: AbstractSet[str]) -> None:
        """Leave out all other tags that were logged so far or are new."""
        self._left_out |= (self._buckets.keys() | new_tags) - tags
        self._buckets = {tag: course for tag, course in self._buckets.items() if tag in tags}

    def dump(self) -> dict[str, Buckets]:
        """Return everything `load` needs."""
        return self._buckets

    @classmethod
    def load(cls, state: Any) -> Self:
        """Undo `dump`."""
        means = cls()
        means._buckets = _to_buckets(state)
        return means

    def width(self, tag: str) -> int:
        """Return the rows of a stretch of a tag."""
        return self._buckets[tag].width if tag in self._buckets else 1

    def course(self, tag: str, width: int = 1) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the first step of each stretch, in rising order, and the mean of its finite values.

        Stretches have at least ``width`` rows. Those without a finite value are left out. A tag that was not
        logged has none.
        """
        buckets = self._buckets.get(tag, Buckets()).widened(width)
        step = buckets.step
        mean = buckets.mean
        finite = np.isfinite(mean)
        order = np.argsort(step[finite], kind="stable")
        return step[finite][order], mean[finite][order]
