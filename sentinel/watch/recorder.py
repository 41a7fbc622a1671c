"""Decides who hears of changes, and records them together with the state of the runs."""

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

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


@dataclass(frozen=True)
class Recorded:
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
        held: Collection[str] = (),
        reminders: bool = False,
    ) -> Recorded:
        """Commit the state of some runs, their incidents and the notifications in one transaction.

        Notifications of the runs ``held``, given by their ids, do not leave before `Outbox.release`. With
        ``reminders``, sinks may hear of open incidents again, and runs of which nothing is told are left
        out. An error of one run does not stop the others. Raises StateError if nothing was recorded; the same
        may then be recorded later.
        """
        guard = Guard()
        left = list(run_pipelines)
        with _DECIDING:
            updates = self._updates(left, news, now, reminders, guard)
            while any(run_pipeline.id in guard.failures for run_pipeline in left):
                # An incident of a failed run may have kept the others from being sent.
                left = [run_pipeline for run_pipeline in left if run_pipeline.id not in guard.failures]
                updates = self._updates(left, news, now, reminders, guard)
            runs = {run_pipeline.id: run_pipeline.log.run for run_pipeline in left}
            updates = [replace(update, deferred=update.run in held) for update in updates]
            of = [runs[update.run] for update in updates]
            done = guard.batch(of, "recording", partial(self._commit, now), updates)
        for update in done:
            count_incidents(news.get(update.run, ()))
        return Recorded({update.run for update in done}, guard.failures)

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
        telling = [
            t
            for t in run_pipelines
            if news.get(t.id) or (reminders and (t.id in may_return or t.incidents.open()))
        ]
        traces = traces_of(run_pipelines, self._facts)
        audience = self._audience(telling, news, over, traces, now)
        told = {
            t.id: guard(t.log.run, "telling", partial(_told, t, news, over, audience, now)) for t in telling
        }
        left = [t for t in run_pipelines if not reminders or news.get(t.id) or told.get(t.id)]
        updates = (
            guard(
                t.log.run, "recording", partial(_update, t, news.get(t.id, ()), told.get(t.id) or (), traces)
            )
            for t in left
        )
        return [update for update in updates if update is not None]

    def _audience(
        self,
        run_pipelines: Sequence[RunPipeline],
        news: ChangesByRun,
        over: Sequence[Incident],
        traces: Traces,
        now: float,
    ) -> RoutingContext:
        """Return the sinks, and what they know of the incidents of these runs and of those that tell the
        same.
        """
        here = [*over, *(change.incident for changes in news.values() for change in changes)]
        here += [incident for run_pipeline in run_pipelines for incident in run_pipeline.incidents.open()]
        sent = self._store.history.sent_before({incident.id for incident in here})
        alike = self._store.history.alike([one for one in here if self._may_be_new(one, sent)], traces)
        known = {incident.id: incident for incident in [*alike, *here]}
        causes = {incident.inhibited_by for incident in alike if incident.inhibited_by}
        sent |= self._store.history.sent_before((known.keys() | causes) - {incident.id for incident in here})
        together = known_incidents(known.values(), run_pipelines, traces)
        return RoutingContext(self._policies, self._store.silences(now), sent, together)

    def _may_be_new(self, incident: Incident, sent: SentBefore) -> bool:
        """Return whether a sink may hear of an incident for the first time, if no other log told it the
        same.
        """
        return any(
            (incident.id, policy.name) not in sent
            for policy in self._policies
            if incident.severity >= policy.min_severity
        )

    def _facts(self, run: str) -> RunMetadata:
        """Return what was last recorded of a run."""
        try:
            return StoredRun.from_state(unpacked(self._store.run_state(run) or b"")).metadata
        except ValueError:
            return RunMetadata()


def _told(
    run_pipeline: RunPipeline,
    news: ChangesByRun,
    over: Sequence[Incident],
    audience: RoutingContext,
    now: float,
) -> Sequence[SinkDecision]:
    may_return = [incident for incident in over if incident.run == run_pipeline.id]
    return run_pipeline.route(news.get(run_pipeline.id, ()), audience, now, may_return)


def _update(
    run_pipeline: RunPipeline, changes: Sequence[Change], told: Sequence[SinkDecision], traces: Traces
) -> Update:
    run = run_pipeline.log.run
    incidents = {change.incident.id: change.incident for change in changes}
    incidents |= {incident.id: incident for incident in run_pipeline.incidents.open()}
    joints = traces(run.id) if incidents else None
    return Update(
        run.id, str(run.path), run.format, run_pipeline.dump(), [*incidents.values()], told, join_keys=joints
    )
