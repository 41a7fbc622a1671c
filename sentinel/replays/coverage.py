"""Counts the runs that a replay read and the detectors that were able to judge them."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from sentinel.common.text import counted
from sentinel.detectors.skip_reason import SkipReason


class Coverage(msgspec.Struct, frozen=True):
    """What was read and judged, whatever part of it a report shows.

    ``able`` has for each run that was read the number of detectors that found the signals that they need.
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
        """Return the coverage of two parts of a replay, which have the same detectors."""
        able = [*self.able, *other.able]
        return Coverage(able, self.cut + other.cut, self.unread + other.unread, self.detectors)

    def __str__(self) -> str:
        """Return `3 logs were read, 1 could not be read; 17 to 22 detectors could judge each of them`."""
        coverage_parts = [f"{counted(self.read, 'log')} {'was' if self.read == 1 else 'were'} read"]
        if self.unread:
            coverage_parts.append(f"{self.unread} could not be read")
        if self.cut:
            coverage_parts.append(f"{self.cut} not judged to the end")
        logs = ", ".join(coverage_parts)
        if not self.able:
            return logs
        low = min(self.able)
        high = max(self.able)
        span = f"{high}" if low == high else f"{low} to {high}"
        object_ = "it" if self.read == 1 else "them" if low == high else "each of them"
        return f"{logs}; {span} detectors could judge {object_}"


def skipped(row_counts: Mapping[tuple[str, str], int], detectors: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return the detectors that judged no row, with the numbers of rows that they skipped by reason.

    The most frequent reason comes first. ``row_counts`` counts as `RowDetection` does.
    """
    by_detector: dict[str, dict[str, int]] = {}
    for name in detectors:
        reasons = {reason: rows for (detector, reason), rows in row_counts.items() if detector == name}
        if "" not in reasons:
            by_rows = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
            by_detector[name] = dict(by_rows) or {SkipReason.NO_ROWS.value: 0}
    return by_detector
