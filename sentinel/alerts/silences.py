"""Silences: nothing is sent about some runs for a while."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import blake2b


@dataclass(frozen=True)
class Silence:
    """Nothing is sent about incidents that match both globs before ``until`` (seconds since the epoch)."""

    id: str
    run: str  # matches the run's name or its path
    detector: str
    until: float
    reason: str
    created_at: float

    def matches(self, run: str, path: str, detector: str, now: float) -> bool:
        """Whether the silence covers this run and detector at this time."""
        named = fnmatchcase(run, self.run) or fnmatchcase(path, self.run)
        return now < self.until and named and fnmatchcase(detector, self.detector)


def silence(run: str, detector: str, until: float, reason: str, now: float) -> Silence:
    """A new silence. Raises ValueError if it would end before it begins."""
    if not until > now:
        raise ValueError("a silence must end in the future")
    key = "\x1f".join((run, detector, repr(until), reason, repr(now)))
    return Silence(blake2b(key.encode(), digest_size=4).hexdigest(), run, detector, until, reason, now)
