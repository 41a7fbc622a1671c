"""When a run that goes on is judged as a whole, as if it were over: at interims, few and far between.

The first lie close together, as each of few points says more: at 5, 6, 7, 8, 10, 12, 14, 16 and 20. Then
there are two for each doubling: at 30, 40, 60, 80, ... points. Which rows are interims depends on the number
of points alone, and so on no poll. A run with a plan is judged as well where it has done so large a share of
it as one of `STAGES`.

Of a run without a plan nobody knows how early it is. There counts what stood at all interims while the log
grew: to twice its length, or whatever a rule or a card asks.
"""

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

EARLY = 5, 6, 7, 8, 10, 12, 14, 16, 20
"""Points at which the first interims lie."""

STAGES = 1 / 2, 2 / 3, 0.85
"""Shares of the plan after which a run is judged as a whole."""

AT_ONCE = 1.0
"""Times to which a log has to have grown for what is told at its first interim."""

TWICE = 2.0
"""The same of what may be over at the next one: it stood while half of the log was written."""

THRICE = 3.0
"""The same of what is often over at the next one."""


def next_interim(rows: int) -> int:
    """Return the first number of points above ``rows`` at which a series is judged as a whole."""
    if rows < EARLY[-1]:
        return EARLY[bisect_right(EARLY, rows)]
    interim = EARLY[-1]
    while interim <= rows:
        interim *= 2
    between = interim * 3 // 4
    return between if between > rows else interim


def is_interim(rows: int) -> bool:
    """Return whether a series of so many points is judged as a whole."""
    return next_interim(rows - 1) == rows


def stages_done(plan_shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many of the `STAGES` are done at shares of the plan; none where the plan is not known."""
    stages: NDArray[np.int64] = np.searchsorted(
        STAGES, np.where(np.isnan(plan_shares), 0.0, plan_shares), side="right"
    )
    return stages
