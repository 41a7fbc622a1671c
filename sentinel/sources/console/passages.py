"""The lines that a training printed, kept as texts until somebody looks at one of them."""

import math
from collections.abc import Sequence
from typing import overload

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.base import Line
from sentinel.sources.readers import records

MAX_LINE = 1 << 20
"""Bytes. A longer line is skipped. This bounds the memory of a poll."""

MAX_TEXT = 2000
"""Characters of a line that are passed on."""

STAMP = lazy_pattern(
    r"\d{4}([-/])\d\d\1\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d| ?UTC| ?GMT)?"
)
"""The day and the time of a line."""

ROW = "\n"
"""What stands among the lines for the first row of metrics behind a line: no line has this text."""

_STAMP_WITHIN = 80  # characters


class Passages(Sequence[Line]):
    """Lines in their order. To make a `Line` of each would cost more than to read them all."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.steps: list[int | None] = []

    def add(self, texts: Sequence[str], step: int | None) -> None:
        """Add lines that follow this step."""
        self.texts += texts
        self.steps += [step] * len(texts)

    def row(self, step: int) -> None:
        """Add that a row of metrics follows at this step, unless one before it is the last that was added."""
        if not self.texts or self.texts[-1] != ROW:
            self.add([ROW], step)

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, at: int) -> Line: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Line]: ...

    def __getitem__(self, at: int | slice) -> Line | Sequence[Line]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        return Line(seconds(self.texts[at]), self.texts[at], self.steps[at])


def seconds(line: str) -> float:
    """Return the time with which a line begins, in seconds since the epoch; NaN if it has none."""
    stamp = STAMP.search(line, 0, _STAMP_WITHIN)
    when = records.seconds(stamp[0].replace("/", "-")) if stamp else None
    return math.nan if when is None else when
