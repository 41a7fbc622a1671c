"""When cards are read of a run that goes on: at looks, between which a series grows by a fifth or so.

There are four for each doubling: at 8, 10, 12, 14, 16, 20, ... points. Which rows are looks depends on the
number of points alone, and so on no poll. From 256 points on the coarse history is looked at, which is made
anew at just these counts and seen from the next row on.
"""

from enum import IntEnum
from functools import cache

import numpy as np

from sentinel.detectors.blocks import ROWS
from sentinel.detectors.schema import EARLY_ROWS
from sentinel.detectors.stats import Ints

FIRST_DOUBLING = 3
"""Of points, at which looks begin: 2 to this power."""

LAST_DOUBLING = 40
"""No log has 2 to this power points."""

QUARTERS = 4, 5, 6, 7
"""Where looks lie within a doubling, in quarters of its first count."""


class Look(IntEnum):
    """What the cards of a detector say at a look."""

    WELL = 0  # none pages, nor would one if the run ended here
    DOUBT = 1  # one would page if the run ended here
    PAGES = 2


@cache
def looks(every: int) -> Ints:
    """Return the rows, by index, that are looks of a detector that judges each ``every``-th row."""
    counts = [quarter << power - 2 for power in range(FIRST_DOUBLING, LAST_DOUBLING) for quarter in QUARTERS]
    return np.array([_first_due(count + (count > ROWS), every) - 1 for count in counts])


def _first_due(rows: int, every: int) -> int:
    """Return the first number of rows, from ``rows`` on, at which the detector judges."""
    return rows if rows <= EARLY_ROWS else -(-rows // every) * every
