"""Where an outcome stands while a run goes on: how much of what it gained it has now.

It is read at *looks*, at each of which a series has grown by a tenth, from the tenth point on; between two
looks the last one holds. A look depends on the number of points alone, and so on no poll.
"""

import numpy as np

from sentinel.detectors.reading.curves import Curves
from sentinel.detectors.stats import Floats

FIRST_LOOK = 10
"""Points that a first look needs."""

GROWTH = 10
"""A next look comes after a part of the points, one in so many."""

SURE = 3
"""Scatters of a block by which an outcome must have risen above its start to have gained anything."""

AT_BEST = 0.9
"""Share of its gain that an outcome at its best has; it swings."""

LEAST = -10.0
"""The lowest standing: below its start by ten gains."""


def next_look(points: int) -> int:
    """Return the number of points at the look after that at so many."""
    return points + max(1, points // GROWTH)


def standing(course: Floats, *, higher_is_better: bool) -> float:
    """Return the share of its gain that a series has at the end of its course: 1 at its best, 0 at its start.

    It is negative below the start, and 0 where nothing was gained surely.
    """
    units = course if higher_is_better else -course
    curves = Curves(units[None, :], np.zeros(1), np.array([float(len(course))]), is_cost=not higher_is_better)
    gain = float(curves.gain[0])
    if float(curves.best[0] - curves.start[0]) <= SURE * float(curves.scatter[0]):
        return 0.0
    return max(LEAST, 1.0 - float(curves.lost[0]) / gain)
