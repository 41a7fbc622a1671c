"""Puts the parts of an archive together, as one replay of the whole would have it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

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
    """The whole archive. Raises SentinelError if its results are not complete.

    It decides what depends on other runs: which run continues which, and what a sink hears only once.
    """
    records = with_siblings(results.records(), results)
    seen = [
        (read, Observation(read.seen, True, read.silent_seconds, read.of_training))
        for read in records
        if read.seen is not None
    ]
    states = standings([observation for _, observation in seen])
    told: dict[str, Mapping[str, Sequence[Outcome]]] = {}
    for group in _groups([record for record, _ in seen]):
        told |= _told(group, results, policies)
    runs = [
        Settled(record, observation.run, state, told[record.id])
        for (record, observation), state in zip(seen, states, strict=True)
    ]
    return Archive(runs, [unread for unread in records if unread.seen is None], results.complaints())


def _groups(records: Sequence[Record]) -> Iterable[list[Record]]:
    """The runs by what they share with others. Those of different groups are not of one training."""
    from scipy.sparse import coo_array  # slow to import
    from scipy.sparse.csgraph import connected_components

    place_of: dict[str, int] = {}  # of each joint, behind the runs
    pairs = [
        (number, place_of.setdefault(joint, len(records) + len(place_of)))
        for number, record in enumerate(records)
        for joint in record.of_training.joints
    ]
    size = len(records) + len(place_of)
    ends = np.array(pairs, np.int64).reshape(-1, 2).T
    _, labels = connected_components(coo_array((np.ones(len(pairs), bool), (*ends,)), (size, size)))
    groups: dict[int, list[Record]] = {}
    for record, label in zip(records, labels.tolist(), strict=False):  # then the joints follow
        groups.setdefault(label, []).append(record)
    return groups.values()


def _told(
    group: Sequence[Record], results: "Results", policies: Sequence[SinkPolicy]
) -> dict[str, Mapping[str, Sequence[Outcome]]]:
    """What the sinks would have heard of some runs, by the id of each, without the notifications."""
    stories = [(run.described, [*results.changes(run.id), *run.changes]) for run in group]
    decided = retold(stories, _audience(group, policies))
    return {
        run.id: {id_: [replace(one, body=None) for one in outcomes] for id_, outcomes in told.items()}
        for run, told in zip(group, decided, strict=True)
    }


def _audience(records: Sequence[Record], policies: Sequence[SinkPolicy]) -> Audience:
    traces = {record.id: record.of_training for record in records}
    informed = {record.id: record.informed for record in records}
    known = KnownIncidents(
        [incident for record in records for incident in record.incidents],
        lambda run, other, surely: same_training(traces[run], traces[other], surely),
        informed.__getitem__,
        traces.__getitem__,
    )
    return Audience(policies, (), {}, known)
