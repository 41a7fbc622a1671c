"""Arrays of numbers that take several lines, as NumPy prints them: the IoU of each class, a confusion matrix.

MeanIU: 0.0518, IoU of the classes: [0.636 0.311 0.002
 0.031 0.000] 0.0518
"""

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.readers.printed_numbers import NUMBER_ALONE

_NUMBER = rf"(?:{NUMBER_ALONE}|\.\.\.)[\s,]{{1,40}}"
_MAX_NUMBERS = 400
"""On one line."""

_BEGIN = lazy_pattern(rf"(?P<before>.*?)(?<!\[)\[[\s\[]{{0,80}}+(?:{_NUMBER}){{2,{_MAX_NUMBERS}}}")
_GOES_ON = lazy_pattern(rf"\s{{0,80}}(?:{_NUMBER}){{1,{_MAX_NUMBERS}}}")
_END = lazy_pattern(rf"\s{{0,80}}(?:{_NUMBER}){{0,{_MAX_NUMBERS}}}(?:{NUMBER_ALONE})?\s{{0,9}}\].*")
_WORD = lazy_pattern(r"[^\W\d_]")


class Arrays:
    """The array that is being printed. ``is_open`` says whether its end is still to come."""

    def __init__(self, is_open: bool = False) -> None:
        self.is_open = is_open

    def read(self, line: str) -> str | None:
        """Return what a line says beside an array of several lines; None for nothing."""
        if self.is_open:
            self.is_open = _GOES_ON.fullmatch(line + " ") is not None
            if self.is_open or _END.fullmatch(line) is not None:
                return None
        if "[" not in line or (begin := _BEGIN.fullmatch(line + " ")) is None:
            return line
        self.is_open = True
        before: str = begin["before"]
        return before if _WORD.search(before) else None
