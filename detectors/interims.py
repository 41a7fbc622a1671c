"""When a run that goes on is judged as a whole, as if it were over: at interims, few and far between.

There are two for each doubling of a series: at 10, 15, 20, 30, 40, 60, 80, ... points. Which rows are
interims depends on the number of points alone, and so on no poll.
"""

FIRST = 10
"""Points at which the first interim lies."""


def next_interim(rows: int) -> int:
    """Return the first number of points above ``rows`` at which a series is judged as a whole."""
    interim = FIRST
    while interim <= rows:
        interim *= 2
    between = interim * 3 // 4
    return between if interim > FIRST and between > rows else interim


def is_interim(rows: int) -> bool:
    """Return whether a series of so many points is judged as a whole."""
    return rows >= FIRST and next_interim(rows - 1) == rows
