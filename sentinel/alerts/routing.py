"""Which incidents a sink asks for, and when it wants to be left alone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Self

from sentinel.sources.identity import RunIdentity


@dataclass(frozen=True)
class Route:
    """Globs, of which one each must match; without any, everything does."""

    runs: Sequence[str] = ()  # for the name or the path of the run
    frameworks: Sequence[str] = ()
    detectors: Sequence[str] = ()

    def leads(self, run: RunIdentity, detector: str) -> bool:
        """Whether an incident of this detector takes this route."""
        return (
            _matches(self.runs, run.run, run.path)
            and _matches(self.frameworks, run.framework or "")
            and _matches(self.detectors, detector)
        )


EVERYTHING = Route()


def _matches(globs: Sequence[str], *names: str) -> bool:
    return not globs or any(fnmatchcase(name, glob) for name in names for glob in globs)


@dataclass(frozen=True)
class QuietHours:
    """A time of each day, in minutes since midnight where the machine is. It may go over midnight."""

    begin: int
    end: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """From ``22:00-07:30``. Raises ValueError."""
        times = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)\s*-\s*([01]?\d|2[0-3]):([0-5]\d)", text.strip())
        if times is None:
            raise ValueError("should be two times of day, such as 22:00-07:30")
        hour, minute, end_hour, end_minute = map(int, times.groups())
        return cls(60 * hour + minute, 60 * end_hour + end_minute)

    def cover(self, now: float) -> bool:
        """Whether a time in seconds since the epoch is quiet."""
        local = datetime.fromtimestamp(now, UTC).astimezone()
        minute = 60 * local.hour + local.minute
        if self.begin <= self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end
