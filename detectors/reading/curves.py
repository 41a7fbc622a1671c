"""Many series as a reader looks at them: the means of twenty equal parts of the run, and how these scatter.

A *course* is a series in at most 64 equal units, as `sentinel.detectors.blocks` makes them of any log. Worse
is always lower here: who measures a loss turns it over first, so that a likelihood below zero is no special
case.
"""

from collections.abc import Sequence
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.detectors.blocks import MAX_BLOCKS
from sentinel.detectors.stats import MAD, Floats, Ints, row_median

Bools = NDArray[np.bool_]

BLOCKS = 20
"""Equal parts of a run whose means are compared."""

START_BLOCKS = 2
"""The first tenth of a run, which is its start."""

END_BLOCKS = 3
"""The last 15 % of a run: what has lasted so long is its end."""

MIN_SCATTER = 1e-6
"""Share of a curve's size that its blocks scatter by at least; a log rounds what it writes."""

NOISE_ROWS = 255
"""The last rows of a series that tell of its noise."""

MAX_VALUE = 1e30
"""Larger values count as this one, so that squares and sums stay finite."""

MEAN_DEVIATION = 1.2533
"""Standard deviation of normal noise over its mean absolute deviation."""

LUCK = float(np.sqrt(2 * np.log(BLOCKS)))
"""Deviations by which the best of twenty equal levels lies above them by chance."""


class Curves(msgspec.Struct, frozen=True, dict=True):
    """Series of equal meaning, a row each.

    ``units`` are the courses: series x units, at most 64, none missing. ``noise`` is the standard deviation
    of a single point about its neighbours, and ``points`` the number of points of each series. ``is_cost``
    tells series that were turned over, of which the least is the best.
    """

    units: Floats
    noise: Floats
    points: Floats
    is_cost: bool = False

    @cached_property
    def measured(self) -> dict[str, Floats]:
        """The measurements that were read off these curves, by name: many cards ask for the same."""
        return {}

    @cached_property
    def earlier(self) -> dict[float, "Curves"]:
        """The curves as they were `until` some shares of their rows."""
        return {}

    def until(self, share: float) -> "Curves":
        """Return the curves as they were after a share of their rows, to a unit; points scatter as now."""
        if share not in self.earlier:
            units = self.units[:, : max(1, int(share * self.units.shape[1]))]
            points = np.floor(share * self.points)
            self.earlier[share] = Curves(units, self.noise, points, is_cost=self.is_cost)
        return self.earlier[share]

    @cached_property
    def blocks(self) -> Floats:
        """Series x 20: the mean of each twentieth. One unit fills several blocks of a short series."""
        count = self.units.shape[1]
        begin = np.arange(BLOCKS) * count // BLOCKS
        wide = np.maximum(np.diff(begin, append=count), 1)
        units = np.clip(self.units, -MAX_VALUE, MAX_VALUE)
        sums: Floats = np.add.reduceat(units, begin, axis=1)
        measured: Floats = sums / wide
        return measured

    @cached_property
    def size(self) -> Floats:
        """The largest block, without its sign."""
        measured: Floats = np.maximum(np.abs(self.blocks).max(axis=1), 1e-300)
        return measured

    @cached_property
    def scatter(self) -> Floats:
        """The standard deviation of a block about the line through its neighbours."""
        units = np.clip(self.units, -MAX_VALUE, MAX_VALUE)
        count = units.shape[1]
        if count < END_BLOCKS:
            return self.size * MIN_SCATTER
        scatter = _deviation(units) / np.sqrt(max(1.0, count / BLOCKS))
        measured: Floats = np.maximum(scatter, self.size * MIN_SCATTER)
        return measured

    @cached_property
    def leaps(self) -> Floats:
        """The same, with the leaps of a series that mostly rests: a reward that is seldom met."""
        units = np.clip(self.units, -MAX_VALUE, MAX_VALUE)
        count = units.shape[1]
        if count < END_BLOCKS:
            return self.scatter
        mean = MEAN_DEVIATION * _bends(units).mean(axis=1) / np.sqrt(max(1.0, count / BLOCKS))
        measured: Floats = np.maximum(mean, self.scatter)
        return measured

    @cached_property
    def start(self) -> Floats:
        """The level of the first tenth."""
        start: Floats = self.blocks[:, :START_BLOCKS].mean(axis=1)
        return start

    @cached_property
    def end(self) -> Floats:
        """The level of the last 15 %."""
        end: Floats = self.blocks[:, -END_BLOCKS:].mean(axis=1)
        return end

    @cached_property
    def best(self) -> Floats:
        """The best block, less what chance alone would give, and no worse than the start or the end."""
        lucky = self.blocks.max(axis=1) - LUCK * self.scatter
        measured: Floats = np.maximum(lucky, np.maximum(self.start, self.end))
        return measured

    @cached_property
    def best_at(self) -> Ints:
        """The number of the last block that is as good as the best, less what chance alone would give."""
        is_best = self.blocks >= (self.best - MIN_SCATTER * self.size)[:, None]
        measured: Ints = BLOCKS - 1 - is_best[:, ::-1].argmax(axis=1)
        return measured

    @cached_property
    def gain(self) -> Floats:
        """By how much the best lies above the start; at least the scatter of a block."""
        return np.maximum(self.best - self.start, self.scatter)

    @cached_property
    def range(self) -> Floats:
        """From the worst block to the best one; at least the scatter of a block."""
        measured: Floats = np.maximum(self.blocks.max(axis=1) - self.blocks.min(axis=1), self.scatter)
        return measured

    @cached_property
    def lost(self) -> Floats:
        """By how much the end lies below the best; or the last block, where that is surely better."""
        now = np.maximum(self.end, self.blocks[:, -1] - self.scatter)
        return np.maximum(self.best - now, 0.0)

    @cached_property
    def is_low(self) -> Bools:
        """Series x 20: whether a third of the gain is missing in a block, and more than chance takes."""
        depth = np.maximum(self.gain / 3, LUCK * self.scatter)
        return self.blocks < (self.best - depth)[:, None]


def curve_of(rows: Floats, *, higher_is_better: bool) -> Curves:
    """Return one series as curves, from all of its finite rows in their order; it must have one at least."""
    turned = rows if higher_is_better else -rows
    return Curves(
        course(turned)[None, :],
        np.array([noise_of(turned)]),
        np.array([float(len(turned))]),
        is_cost=not higher_is_better,
    )


def together(curves: Sequence[Curves]) -> Curves:
    """Return curves with as many units in one, in their order."""
    return Curves(
        np.concatenate([one.units for one in curves]),
        np.concatenate([one.noise for one in curves]),
        np.concatenate([one.points for one in curves]),
        is_cost=curves[0].is_cost,
    )


def course(rows: Floats) -> Floats:
    """Return the means of units of 1, 2, 4, ... rows, at most 64 of them; the last may have fewer rows."""
    width = 1
    while len(rows) > MAX_BLOCKS * width:
        width *= 2
    begin = np.arange(0, len(rows), width)
    means: Floats = np.add.reduceat(np.clip(rows, -MAX_VALUE, MAX_VALUE), begin)
    return means / np.minimum(width, len(rows) - begin)


def noise_of(rows: Floats) -> float:
    """Return the standard deviation of single points about their neighbours, in the last rows; 0 if few."""
    last = np.clip(rows[-NOISE_ROWS:], -MAX_VALUE, MAX_VALUE)
    if len(last) < END_BLOCKS:
        return 0.0
    return float(_deviation(last[None, :])[0])


def _deviation(values: Floats) -> Floats:
    """Return the standard deviation of each row's values about their neighbours.

    It comes from the median of second differences, which neither a trend nor a few leaps move. Of a series
    that mostly rests, or mostly runs along a line, the median is 0 but for rounding, and the mean tells how
    it scatters.
    """
    bends = _bends(values)
    median = MAD * row_median(bends)
    rounding = MIN_SCATTER * row_median(np.abs(values))
    measured: Floats = np.where(median > rounding, median, MEAN_DEVIATION * bends.mean(axis=1))
    return measured


def _bends(values: Floats) -> Floats:
    """Return how far each value but the outer ones lies off the middle of its neighbours."""
    bends: Floats = np.abs(values[:, 1:-1] - (values[:, 2:] + values[:, :-2]) / 2) / np.sqrt(1.5)
    return bends
