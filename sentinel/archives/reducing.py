"""Puts the parts of an archive together, as one replay of the whole would have it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from io import SEEK_END
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from sentinel.archives.index import Contents
from sentinel.archives.record import Record
from sentinel.archives.siblings import beside_siblings, with_siblings
from sentinel.archives.tables import incident_row
from sentinel.common.errors import SentinelError
from sentinel.incidents.duplicates import KnownIncidents
from sentinel.incidents.incident import Change
from sentinel.notifications.decide import SinkPolicy
from sentinel.notifications.routing import RoutingContext, SinkDecision
from sentinel.notifications.simulate import simulated_decisions
from sentinel.runs.continuations import Observation, statuses
from sentinel.runs.log import RunOverview
from sentinel.runs.state import RunStatus
from sentinel.runs.training_groups import is_same_training, trainings

if TYPE_CHECKING:
    from sentinel.archives.merged_results import MergedResults
    from sentinel.archives.results import Results
    from sentinel.comparison.measures import Comparison

_Notifications = Mapping[str, Sequence[SinkDecision]]


class SettledRun(msgspec.Struct, frozen=True):
    """A run that was judged, what became of it, and by incident what the sinks would have been sent.

    ``training`` is the id of the first log of its training.
    """

    record: Record
    overview: RunOverview
    status: RunStatus
    notifications: _Notifications
    training: str


class Archive(msgspec.Struct, frozen=True):
    """The runs of an archive, which are read and settled on demand.

    ``sibling_changes`` is what happened in runs beside their siblings, by their numbers. ``comparisons`` is
    empty unless they were requested.
    """

    contents: Contents
    sibling_changes: Mapping[int, Sequence[Change]]
    policies: Sequence[SinkPolicy]
    comparisons: Sequence["Comparison"] = ()

    @property
    def read_issues(self) -> list[str]:
        """What could not be searched."""
        return self.contents.results.read_issues()

    @property
    def failed(self) -> list[Record]:
        """The runs that could not be judged, by path."""
        return [self.contents.record(number) for number in self.contents.numbers(failed=True)]

    def groups(self) -> Iterator[list[SettledRun]]:
        """Yield the runs that were judged. All logs of one training are in one group."""
        for run_numbers in self.contents.groups():
            yield self._settled(run_numbers)

    def runs(self) -> Iterator[SettledRun]:
        """Yield the runs that were judged, by path."""
        with TemporaryFile() as file:
            waiting = _OutOfTurn(file)
            for run_numbers in self.contents.groups():
                yield from (self._again(*out_of_turn) for out_of_turn in waiting.until(run_numbers[0]))
                first_run, *other_runs = self._settled(run_numbers)
                yield first_run
                for run_number, run in zip(run_numbers[1:], other_runs, strict=True):
                    waiting.add(run_number, run)
            yield from (self._again(*out_of_turn) for out_of_turn in waiting.until(self.contents.rows.height))

    def _archived_run(self, run_number: int) -> Record:
        archived = self.contents.record(run_number)
        changes = self.sibling_changes.get(run_number)
        return archived if changes is None else with_siblings(archived, changes)

    def _settled(self, run_numbers: Sequence[int]) -> list[SettledRun]:
        """Return the runs of a group."""
        archived_runs = [self._archived_run(number) for number in run_numbers]
        observations = [
            Observation(record.judged, True, record.silent_seconds, record.training_evidence)
            for record in archived_runs
        ]
        states = statuses(observations, self.contents.goes_on_in)
        notifications = simulated_decisions(
            [(record.described, record.changes) for record in archived_runs],
            _audience(archived_runs, self.policies),
        )
        training = trainings({record.id: record.training_evidence for record in archived_runs})
        return [
            SettledRun(record, observation.run, state, sink_decisions, training[record.id])
            for record, observation, state, sink_decisions in zip(
                archived_runs, observations, states, notifications, strict=True
            )
        ]

    def _again(
        self, run_number: int, status: RunStatus, notifications: _Notifications, training: str
    ) -> SettledRun:
        archived = self._archived_run(run_number)
        return SettledRun(archived, archived.judged, status, notifications, training)


class _OutOfTurn:
    """What was settled of runs before their turn, in a file, so that memory does not grow with it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._waiting_runs: list[tuple[int, int, int]] = []  # a heap: number, offset and bytes

    def add(self, run_number: int, run: SettledRun) -> None:
        """Keep what was settled of a run."""
        notifications = {
            id_: [replace(decision, body=None) for decision in outcomes]
            for id_, outcomes in run.notifications.items()
        }
        content = msgspec.msgpack.encode((run.status, notifications, run.training))
        heappush(self._waiting_runs, (run_number, self._file.seek(0, SEEK_END), len(content)))
        self._file.write(content)

    def until(self, run_number: int) -> Iterator[tuple[int, RunStatus, _Notifications, str]]:
        """Yield the runs before one, in their order. They wait no longer."""
        while self._waiting_runs and self._waiting_runs[0][0] < run_number:
            run, begin, length = heappop(self._waiting_runs)
            self._file.seek(begin)
            yield run, *_SETTLED_RUN_DECODER.decode(self._file.read(length))


_SETTLED_RUN_DECODER = msgspec.msgpack.Decoder(tuple[RunStatus, dict[str, list[SinkDecision]], str])


def reduced(archive_results: "Results | MergedResults", policies: Sequence[SinkPolicy]) -> Archive:
    """Return the whole archive. Raises SentinelError if its results are not complete.

    It decides what depends on other runs: which run continues which, what a sink hears only once, and which
    run is worse than its siblings. The incidents of these are written beside those of the parts, where the
    directory can be written.
    """
    contents = Contents.from_results(archive_results)
    sibling_changes = beside_siblings(contents)
    worse = ((contents.record(number), changes) for number, changes in sibling_changes.items() if changes)
    incident_rows = [incident_row(record, change.incident) for record, changes in worse for change in changes]
    with suppress(SentinelError):
        archive_results.write_siblings(incident_rows)
    return Archive(contents, sibling_changes, policies)


def _audience(archived_runs: Sequence[Record], policies: Sequence[SinkPolicy]) -> RoutingContext:
    traces = {record.id: record.training_evidence for record in archived_runs}
    informed = {record.id: record.informed for record in archived_runs}
    incidents = KnownIncidents(
        [incident for record in archived_runs for incident in record.incidents],
        lambda run, other_run, surely: is_same_training(traces[run], traces[other_run], surely),
        informed.__getitem__,
        traces.__getitem__,
    )
    return RoutingContext(policies, (), {}, incidents)
