"""Puts the parts of an archive together, as one replay of the whole would have it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sentinel.alerts.decision import SinkPolicy
from sentinel.alerts.duplicates import KnownIncidents
from sentinel.alerts.outcomes import Audience, Outcome
from sentinel.alerts.retelling import retold
from sentinel.archives.record import Record
from sentinel.archives.siblings import with_siblings
from sentinel.runs.log import RunOverview
from sentinel.runs.same_training import same_training, trainings
from sentinel.runs.standings import Observation, standings
from sentinel.runs.state import Standing

if TYPE_CHECKING:
    from sentinel.archives.results import Results
    from sentinel.comparison.measures import Comparison


@dataclass(frozen=True)
class Settled:
    """A run that was judged, what became of it, and by incident what the sinks would have heard."""

    record: Record
    seen: RunOverview
    standing: Standing
    told: Mapping[str, Sequence[Outcome]]


@dataclass(frozen=True)
class Archive:
    """All runs of an archive, by path. ``failed`` are those that could not be judged.

    ``comparisons`` is empty unless they were asked for.
    """

    runs: Sequence[Settled]
    failed: Sequence[Record]
    complaints: Sequence[str]
    comparisons: Sequence["Comparison"] = ()

    @cached_property
    def trainings(self) -> Mapping[str, str]:
        """By the id of each run, that of the first log of its training."""
        return trainings({run.record.id: run.record.of_training for run in self.runs})


def reduced(results: "Results", policies: Sequence[SinkPolicy]) -> Archive:
    """The whole archive. Raises SentinelError if its results are not complete."""
    records = with_siblings(results.records(), results)
    return settled(records, results.complaints(), policies)


def settled(records: Sequence[Record], complaints: Sequence[str], policies: Sequence[SinkPolicy]) -> Archive:
    """Decide what depends on other runs: which run continues which, and what a sink hears only once."""
    seen = [
        (read, Observation(read.seen, True, read.silent_seconds, read.of_training))
        for read in records
        if read.seen is not None
    ]
    judged = [record for record, _ in seen]
    states = standings([observation for _, observation in seen])
    told = retold([(run.described, run.changes) for run in judged], _audience(judged, policies))
    overviews = [observation.run for _, observation in seen]
    runs = [Settled(*parts) for parts in zip(judged, overviews, states, told, strict=True)]
    return Archive(runs, [unread for unread in records if unread.seen is None], complaints)


def _audience(records: Sequence[Record], policies: Sequence[SinkPolicy]) -> Audience:
    traces = {record.id: record.of_training for record in records}
    informed = {record.id: record.informed for record in records}
    known = KnownIncidents(
        [incident for record in records for incident in record.incidents],
        lambda run, other, surely: same_training(traces[run], traces[other], surely),
        informed.__getitem__,
        lambda run: traces[run].joints,
    )
    return Audience(policies, (), {}, known)
