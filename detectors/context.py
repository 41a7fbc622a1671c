"""What a detector may ask to know of other signals beside a row, each as a column of its window.

A point counts beside a row if it precedes the row in the log and has an earlier step: points of the row's own
step may not be logged yet when the row is judged. Where a signal has several tags, the first that appeared
stands for it. A column is null in rows for which no point counts.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sentinel.detectors.signals import Signal


@dataclass(frozen=True)
class Last:
    """The last value, in a column with the signal's name. A bare Signal in ``uses`` means this."""

    signal: Signal

    @property
    def column(self) -> str:
        """The column's name."""
        return self.signal.value


@dataclass(frozen=True)
class First:
    """The first value of the attempt, in the column ``SIGNAL_first``."""

    signal: Signal

    @property
    def column(self) -> str:
        """The column's name."""
        return f"{self.signal}_first"


@dataclass(frozen=True)
class Mean:
    """The mean of the points since the series' row before, in the column ``SIGNAL_mean``.

    Every point counts beside one row at most. Points of the first row reach back to the attempt's begin.
    """

    signal: Signal

    @property
    def column(self) -> str:
        """The column's name."""
        return f"{self.signal}_mean"


@dataclass(frozen=True)
class Every:
    """The last value of each tag of the signal, in the list column ``SIGNAL_every``.

    Tags stand in the order of their appearance, 128 of them at most. A tag without a value is null; the
    list ends with the last tag that has one, and is empty where none has.
    """

    signal: Signal

    @property
    def column(self) -> str:
        """The column's name."""
        return f"{self.signal}_every"


Use = Last | First | Mean | Every


def numbers(uses: Iterable[Use]) -> list[Last | First | Mean]:
    """Those that are a number in each row."""
    return [use for use in uses if not isinstance(use, Every)]


def lists(uses: Iterable[Use]) -> list[Every]:
    """Those that are a list in each row."""
    return [use for use in uses if isinstance(use, Every)]
