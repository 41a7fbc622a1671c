"""Arrays of numbers that take several lines, as NumPy prints them: the IoU of each class, a confusion matrix.

    MeanIU: 0.0518, IoU of the classes: [0.636 0.311 0.002
     0.031 0.000] 0.0518

Their numbers are neither rows of a table nor what the lines below them count.
"""

from sentinel.common.lazy_pattern import lazy_pattern

_SIGNS = frozenset("0123456789.+-eEnaif, \t\r")
"""Of which numbers that stand in rows consist."""

_WORD = lazy_pattern(r"[^\W\d_]")


class Arrays:
    """The array that is being printed. ``is_open`` says whether its end is still to come."""

    def __init__(self, is_open: bool = False) -> None:
        self.is_open = is_open

    def read(self, line: str) -> str | None:
        """Return what a line says beside an array of several lines; None for nothing."""
        if self.is_open:
            inside, end, _ = line.partition("]")
            self.is_open = not end and _count_numbers(line) > 0
            if self.is_open or (end and (not inside.strip() or _count_numbers(inside) > 0)):
                return None
        before, bracket, inside = line.rpartition("[")
        if not bracket or _count_numbers(inside) < 2:
            return line
        self.is_open = True
        before = before.rstrip("[ ")
        return before if _WORD.search(before) else None


def _count_numbers(text: str) -> int:
    """Return how many numbers a text holds that holds nothing else; 0 for another one."""
    if not _SIGNS.issuperset(text) or not any(map(str.isdigit, text)):
        return 0
    return len(text.replace(",", " ").split())
