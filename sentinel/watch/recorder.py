"""Decides which sinks are notified of changes, and records that together with the state of the runs."""

import threading
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import chain

import msgspec
from msgspec.structs import replace

from sentinel.common.fault_isolation import Guard
from sentinel.detection.duplicates import Traces, known_incidents, traces_of
from sentinel.incidents.incident import Change, Incident
from sentinel.notifications.decide import SinkPolicy
from sentinel.notifications.routing import RoutingContext, SentBefore, SinkDecision
from sentinel.run_pipeline import RunPipeline
from sentinel.runs.log import StoredRun
from sentinel.runs.metadata import RunMetadata
from sentinel.runs.state_codec import unpacked
from sentinel.storage.store import Store, Update
from sentinel.telemetry.counters import count_incidents

_DECIDING = threading.Lock()  # so that two watches that follow logs of one training send its incident once

ChangesByRun = Mapping[str, Sequence[Change]]
"""Changes by run id."""


class RecordResult(msgspec.Struct, frozen=True):
    """Ids of the runs that were recorded, and by run id what failed instead."""

    runs: Collection[str]
    failures: Mapping[str, str]


class Recorder:
    """Records in one store. The store belongs to the thread that calls `record`."""

    def __init__(self, store: Store, policies: Sequence[SinkPolicy]) -> None:
        self._store = store
        self._policies = policies

    def record(
        self,
        run_pipelines: Sequence[RunPipeline],
        news: ChangesByRun,
        now: float,
        *,
        deferred: Collection[str] = (),
        reminders: bool = False,
    ) -> RecordResult:
        """Commit the state of some runs, their incidents and the notifications in one transaction.

        Notifications of the runs with ids in ``deferred`` do not leave before `Outbox.release`. With
        ``reminders``, sinks may be reminded of open incidents, and a run without a notification is not
        recorded. An error of one run does not stop the others. Raises StateError if nothing was recorded; the
        same may then be recorded later.
        """
        guard = Guard()
        sound = list(run_pipelines)
        with _DECIDING:
            updates = self._updates(sound, news, now, reminders, guard)
            while any(run_pipeline.id in guard.failures for run_pipeline in sound):
                # An incident of a failed run may have kept the others from being sent.
                sound = [run_pipeline for run_pipeline in sound if run_pipeline.id not in guard.failures]
                updates = self._updates(sound, news, now, reminders, guard)
            runs = {run_pipeline.id: run_pipeline.log.run for run_pipeline in sound}
            updates = [replace(update, deferred=update.run in deferred) for update in updates]
            updated_runs = [runs[update.run] for update in updates]
            commits = guard.batch(updated_runs, "recording", partial(self._commit, now), updates)
        for update in commits:
            count_incidents(news.get(update.run, ()))
        return RecordResult({update.run for update in commits}, guard.failures)

    def _commit(self, now: float, updates: Sequence[Update]) -> list[Update]:
        if updates:
            self._store.commit(updates, now)
        return [*updates]

    def _updates(
        self,
        run_pipelines: Sequence[RunPipeline],
        news: ChangesByRun,
        now: float,
        reminders: bool,
        guard: Guard,
    ) -> list[Update]:
        over = self._store.history.may_return() if reminders else []
        may_return = {incident.run for incident in over}
        routed = [
            run_pipeline
            for run_pipeline in run_pipelines
            if news.get(run_pipeline.id)
            or (reminders and (run_pipeline.id in may_return or run_pipeline.incidents.open()))
        ]
        traces = traces_of(run_pipelines, self._metadata)
        context = self._routing_context(routed, news, over, traces, now)
        decisions = {}
        for run_pipeline in routed:
            returning = [incident for incident in over if incident.run == run_pipeline.id]
            route = partial(run_pipeline.route, news.get(run_pipeline.id, ()), context, now, returning)
            decisions[run_pipeline.id] = guard(run_pipeline.log.run, "telling", route)
        updates = []
        for run_pipeline in run_pipelines:
            changes = news.get(run_pipeline.id, ())
            sink_decisions = decisions.get(run_pipeline.id) or ()
            if not reminders or changes or sink_decisions:
                record = partial(_update, run_pipeline, changes, sink_decisions, traces)
                updates.append(guard(run_pipeline.log.run, "recording", record))
        return [update for update in updates if update is not None]

    def _routing_context(
        self,
        run_pipelines: Sequence[RunPipeline],
        news: ChangesByRun,
        over: Sequence[Incident],
        traces: Traces,
        now: float,
    ) -> RoutingContext:
        """Return the sinks, and what they were sent of the incidents of these runs and of equal incidents."""
        incidents = [*over, *(change.incident for changes in news.values() for change in changes)]
        open_incidents = (run_pipeline.incidents.open() for run_pipeline in run_pipelines)
        incidents += chain.from_iterable(open_incidents)
        ids = {incident.id for incident in incidents}
        sent = self._store.history.sent_before(ids)
        new = [incident for incident in incidents if self._may_be_new(incident, sent)]
        equal = self._store.history.alike(new, traces)
        by_id = {incident.id: incident for incident in [*equal, *incidents]}
        causes = {incident.inhibited_by for incident in equal if incident.inhibited_by}
        sent |= self._store.history.sent_before((by_id.keys() | causes) - ids)
        together = known_incidents(by_id.values(), run_pipelines, traces)
        return RoutingContext(self._policies, self._store.silences(now), sent, together)

    def _may_be_new(self, incident: Incident, sent: SentBefore) -> bool:
        """Return whether a sink may get its first notification of an incident, as none of an equal one."""
        return any(
            (incident.id, policy.name) not in sent
            for policy in self._policies
            if incident.severity >= policy.min_severity
        )

    def _metadata(self, run: str) -> RunMetadata:
        """Return what was last recorded of a run."""
        try:
            return StoredRun.from_state(unpacked(self._store.run_state(run) or b"")).metadata
        except ValueError:
            return RunMetadata()


def _update(
    run_pipeline: RunPipeline, changes: Sequence[Change], decisions: Sequence[SinkDecision], traces: Traces
) -> Update:
    run = run_pipeline.log.run
    incidents = {change.incident.id: change.incident for change in changes}
    incidents |= {incident.id: incident for incident in run_pipeline.incidents.open()}
    join_keys = traces(run.id) if incidents else None
    state = run_pipeline.dump()
    return Update(
        run.id, str(run.path), run.format, state, [*incidents.values()], decisions, join_keys=join_keys
    )
