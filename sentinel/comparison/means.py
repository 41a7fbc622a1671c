"""Keeps the course of every tag of a run as means of stretches of rows, in bounded memory."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sentinel.frames.coarse import Coarse
from sentinel.frames.curves import MOST_CURVES, by_tag
from sentinel.sources.base import Chunk


class Means:
    """The courses of a run by tag; of a run with very many tags, the first ones."""

    def __init__(self) -> None:
        self._of: dict[str, Coarse] = {}

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Add what a poll brought."""
        for tag, rows in by_tag(chunks):
            if tag in self._of or len(self._of) < MOST_CURVES:
                self._of.setdefault(tag, Coarse()).push(rows.value, rows.step)

    def course(self, tag: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The first step of each stretch, in rising order, and the mean of its finite values.

        Stretches without a finite value are left out. A tag that was not logged has none.
        """
        kept = self._of.get(tag, Coarse())
        step, mean = kept.step[: kept.buckets], kept.view()["coarse_mean"]
        known = np.isfinite(mean)
        order = np.argsort(step[known], kind="stable")
        return step[known][order], mean[known][order]
