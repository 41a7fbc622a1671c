"""Counts the runs that a replay read and the detectors that were able to judge them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sentinel.common.text import counted
from sentinel.detectors.skip_reason import SkipReason


@dataclass(frozen=True)
class Coverage:
    """What was read and judged, whatever part of it a report shows.

    ``able`` has for each run that was read how many of all ``detectors`` found the signals that they need.
    """

    able: Sequence[int]
    cut: int  # runs among them that were not judged to their end
    unread: int  # runs and places of which nothing could be read
    detectors: int

    @property
    def read(self) -> int:
        """The number of runs that were read."""
        return len(self.able)

    def __add__(self, other: "Coverage") -> "Coverage":
        """Of two parts of a replay, which have the same detectors."""
        able = [*self.able, *other.able]
        return Coverage(able, self.cut + other.cut, self.unread + other.unread, self.detectors)

    def __str__(self) -> str:
        """In words: `3 logs were read, 1 could not be read; 17 to 22 of 48 detectors could judge ...`."""
        told = [f"{counted(self.read, 'log')} {'was' if self.read == 1 else 'were'} read"]
        if self.unread:
            told.append(f"{self.unread} could not be read")
        if self.cut:
            told.append(f"{self.cut} not judged to the end")
        read = ", ".join(told)
        if not self.able:
            return read
        fewest = min(self.able)
        most = max(self.able)
        span = f"{most}" if fewest == most else f"{fewest} to {most}"
        whom = "it" if self.read == 1 else "them" if fewest == most else "each of them"
        return f"{read}; {span} of {self.detectors} detectors could judge {whom}"


def skipped(looked: Mapping[tuple[str, str], int], detectors: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return those of the detectors that judged no row, with the rows that they held back by reason.

    The most frequent reason comes first. ``looked`` counts rows as `RowDetection` does.
    """
    silent: dict[str, dict[str, int]] = {}
    for name in detectors:
        reasons = {reason: rows for (detector, reason), rows in looked.items() if detector == name}
        if "" not in reasons:
            by_rows = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
            silent[name] = dict(by_rows) or {SkipReason.NO_ROWS.value: 0}
    return silent
