"""Silences: nothing is sent about some runs for a while."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import blake2b

from sentinel.incidents.incident import Incident
from sentinel.sources.identity import RunIdentity


@dataclass(frozen=True)
class Silence:
    """Nothing is sent about incidents that match before ``until`` (seconds since the epoch).

    ``incident`` is the id of the only incident that it is about; empty for all that match both globs.
    """

    id: str
    run: str  # matches the run's name or its path
    detector: str
    until: float
    reason: str
    created_at: float
    incident: str = ""

    def matches(self, run: RunIdentity, incident: Incident, now: float) -> bool:
        """Return whether the silence covers an incident of a run at this time."""
        if now >= self.until:
            return False
        if self.incident:
            return self.incident == incident.id
        named = self.covers(run.path, run.run)
        return named and fnmatchcase(incident.detector, self.detector)

    def covers(self, path: str, name: str) -> bool:
        """Return whether the silence is about a run, by its path or its name."""
        return any(fnmatchcase(known_as, self.run) for known_as in (path, name))


_ACKNOWLEDGED_SECONDS = 30 * 86400.0


def acknowledgement(incident: Incident, now: float) -> Silence:
    """Return the silence that says that a person knows of an incident, so only its end is sent."""
    until = now + _ACKNOWLEDGED_SECONDS
    return silence(incident.run, incident.detector, until, "acknowledged", now, incident.id)


def silence(run: str, detector: str, until: float, reason: str, now: float, incident: str = "") -> Silence:
    """Return a new silence. Raises ValueError if it would end before it begins."""
    if not until > now:
        raise ValueError("a silence must end in the future")
    key = "\x1f".join((run, detector, repr(until), reason, repr(now), incident))
    return Silence(
        blake2b(key.encode(), digest_size=4).hexdigest(), run, detector, until, reason, now, incident
    )
