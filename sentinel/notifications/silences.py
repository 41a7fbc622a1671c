"""Silences, with which people stop notifications about some runs for a while."""

from hashlib import blake2b

import msgspec

from sentinel.common.errors import SentinelError
from sentinel.common.globs import bounded, matches
from sentinel.common.run_glob import fits
from sentinel.incidents.incident import Incident
from sentinel.sources.identity import RunIdentity

_ACKNOWLEDGEMENT_SECONDS = 30 * 86400.0
MAX_REASON = 2000
"""Characters of the reason for a silence."""


class Silence(msgspec.Struct, frozen=True):
    """A time in which nothing is sent about some incidents.

    ``incident`` is the id of the only incident that it is about; empty for all that match both globs.
    """

    id: str
    run: str  # a glob for runs (`sentinel.common.run_glob`)
    detector: str  # a glob
    until: float  # seconds since the epoch
    reason: str
    created_at: float
    incident: str = ""

    def matches(self, run: RunIdentity, incident: Incident, now: float) -> bool:
        """Return whether the silence covers an incident of a run at this time."""
        if now >= self.until:
            return False
        if self.incident:
            return self.incident == incident.id
        return self.covers(run.run, run.path, run.location) and matches(incident.detector, self.detector)

    def covers(self, *names: str) -> bool:
        """Return whether the silence is about a run, by its names and paths."""
        return fits(self.run, *names)


def acknowledgement(incident: Incident, now: float, seconds: float = _ACKNOWLEDGEMENT_SECONDS) -> Silence:
    """Return the silence that says that a person knows of an incident, so only its end is sent."""
    until = now + seconds
    return silence(incident.run, incident.detector, until, "acknowledged", now, incident.id)


def silence(run: str, detector: str, until: float, reason: str, now: float, incident: str = "") -> Silence:
    """Return a new silence.

    Raises ValueError if it would end before it begins, GlobTooLong for a glob that is longer than any path,
    and SentinelError for a reason that nobody reads.
    """
    if not until > now:
        raise ValueError("a silence must end in the future")
    if len(reason) > MAX_REASON:
        raise SentinelError(f"a reason may have {MAX_REASON:,} characters, and this one has {len(reason):,}")
    for glob in (run, detector):
        bounded(glob)
    key = "\x1f".join((run, detector, repr(until), reason, repr(now), incident))
    return Silence(
        blake2b(key.encode(), digest_size=4).hexdigest(), run, detector, until, reason, now, incident
    )
