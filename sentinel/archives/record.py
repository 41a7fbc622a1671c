"""What is kept of a judged run of an archive: enough for its report, its state and what sinks would hear."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from sentinel.archives.parts import RunName
from sentinel.incidents.incident import Change, Incident
from sentinel.runs.advisories import Advisory
from sentinel.runs.log import RunOverview
from sentinel.runs.training_groups import TrainingEvidence
from sentinel.sources.identity import RunIdentity

PackedCourses = Mapping[str, tuple[bytes, bytes]]
"""The steps (int64) and the means (float64) of tags, as the bytes of arrays."""


class SiblingRecord(msgspec.Struct, frozen=True):
    """What siblings ask of a run: the ``settings`` of its `Fingerprint`, packed, so that equal ones are kept
    once, whether it is ``healthy``, and the courses of the tags by which it may be compared.
    """

    settings: bytes
    healthy: bool
    courses: PackedCourses


class Comparable(msgspec.Struct, frozen=True):
    """What a comparison of runs needs: flat settings, and the courses of what runs are compared by."""

    settings: Mapping[str, Any]
    courses: PackedCourses


class Glance(msgspec.Struct, frozen=True, rename={"overview": "seen"}):
    """The part of a record that is compared among all runs.

    ``overview`` is that of a listing, without the settings; None, with a ``failure``, of a run that could not
    be judged at all. ``sibling`` is stored for runs that can have siblings.
    """

    name: str
    path: str
    format: str
    overview: RunOverview | None = None
    described: RunIdentity = RunIdentity()
    trace: TrainingEvidence | None = None
    failure: str | None = None
    sibling: SiblingRecord | None = None

    @property
    def id(self) -> str:
        """The id of the run; see `sentinel.sources.base.Run`."""
        return f"{self.format}:{self.path}"

    @property
    def judged(self) -> RunOverview:
        """The overview of a run that was judged. Raises ValueError for one that was not."""
        if self.overview is None:
            raise ValueError(f"{self.path}: {self.failure}")
        return self.overview

    @property
    def training_evidence(self) -> TrainingEvidence:
        """What the log says of its training."""
        return self.trace or TrainingEvidence(self.format, frozenset())


class Record(Glance, frozen=True):
    """A judged run.

    ``silent_seconds`` is how long its log had been silent when it was judged, infinite for a copy, None for a
    log that was gone. ``comparable`` is stored only on request. ``user`` and ``gpus`` are known
    only where the record was read from a table.
    """

    silent_seconds: float | None = None
    informed: tuple[int, int] = (0, 0)
    incidents: Sequence[Incident] = ()
    changes: Sequence[Change] = ()
    lacking: Mapping[str, Sequence[str]] = {}
    skipped: Mapping[str, Mapping[str, int]] = {}
    advisories: Sequence[Advisory] = ()
    read_issues: Sequence[str] = ()
    comparable: Comparable | None = None
    user: str | None = None
    gpus: float | None = None

    def seconds_after(self, incident: Incident) -> float | None:
        """Return how long the log went on after an incident began; None where it has no times."""
        last_logged = self.overview.metadata.last_time if self.overview else None
        if incident.onset_time is None or last_logged is None:
            return None
        return max(0.0, last_logged - incident.onset_time)

    @property
    def unread(self) -> bool:
        """Whether nothing of the run could be read."""
        if self.overview is None:
            return True
        broken = self.overview.stopped is not None or (bool(self.read_issues) and not self.incidents)
        return broken and not self.overview.metadata.points


def failed(run: RunName, why: str) -> Record:
    """Return the record of a run that could not be judged."""
    format_, _, path = run.id.partition(":")
    return Record(run.name, path, format_, failure=why)


def packed_record(archived: Record) -> bytes:
    return msgspec.msgpack.encode(archived)


def unpacked_record(content: bytes) -> Record:
    """Undo `packed_record`. Raises msgspec.DecodeError for what it did not make."""
    return _RECORD_DECODER.decode(content)


def glance(content: bytes) -> Glance:
    """Decode the part of a record that is compared among all runs.

    It takes a tenth of the time of the whole record.
    """
    return _GLANCE_DECODER.decode(content)


_RECORD_DECODER = msgspec.msgpack.Decoder(Record)
_GLANCE_DECODER = msgspec.msgpack.Decoder(Glance)
