"""Compares the runs under watch with their siblings, whenever they reach a new point of their plan.

The siblings of a run are those that ended well under the same watch. Unlike a replay, a watch asks for equal
settings: it cannot know whether a setting that differs is the first one of a sweep.
"""

import math
from collections.abc import Sequence
from functools import partial
from weakref import WeakValueDictionary

from sentinel.common.fault_isolation import Guard
from sentinel.comparison.band import COURSE_POINTS, MAX_SIBLINGS, MIN_SIBLINGS
from sentinel.comparison.fingerprint import Fingerprint, are_siblings
from sentinel.comparison.means import Means
from sentinel.comparison.siblings import among_siblings
from sentinel.detectors.runtime.worse_than_siblings import RULE
from sentinel.detectors.severity import Severity
from sentinel.incidents.incident import Change
from sentinel.pipeline import Pipeline
from sentinel.replays.siblings import sibling_of
from sentinel.runs.training_groups import trainings_of
from sentinel.sources.base import EndKind
from sentinel.storage.store import Store
from sentinel.watch.watched import Settings, WatchedRun

_STEPS_PER_E_FOLD = 50  # of a run without a plan: it is judged again when it is longer by a fiftieth


class SiblingWatch:
    """The bands of the runs under one watch. They rest on the means that each run keeps."""

    def __init__(self, pipeline: Pipeline, store: Store) -> None:
        self._pipeline = pipeline
        self._store = store
        self._healthy: dict[
            Settings, WeakValueDictionary[str, WatchedRun]
        ] = {}  # the last `MAX_SIBLINGS`, by run id

    def news(self, runs: Sequence[WatchedRun], guard: Guard) -> dict[str, Sequence[Change]]:
        """Return the changes by run id. Runs that were over at their initial scan only count as siblings."""
        if RULE not in self._pipeline.detectors:
            return {}
        sound = [watched for watched in runs if not watched.failures]
        comparable = [(watched, means) for watched in sound if (means := watched.run_pipeline.means)]
        changes: dict[str, Sequence[Change]] = {}
        for watched, means in comparable if self._healthy else ():
            if not watched.past:
                judge = partial(self._judge_beside_siblings, watched, means)
                sibling_changes = guard(watched.run_pipeline.log.run, "siblings", judge)
                changes[watched.run_pipeline.id] = sibling_changes or ()
        for watched, _ in comparable:
            guard(watched.run_pipeline.log.run, "siblings", partial(self._note_sibling, watched))
        return changes

    def _note_sibling(self, watched: WatchedRun) -> None:
        """Note whether a run is a sibling for others, if that may have changed."""
        points = watched.run_pipeline.log.metadata.points if _is_over(watched) else None
        if watched.sibling_at == points:
            return
        watched.sibling_at = points
        settings = _settings_of(watched)
        siblings = self._healthy.get(settings) or WeakValueDictionary()
        siblings.pop(watched.run_pipeline.id, None)
        if points is not None and self._ended_well(watched):
            siblings[watched.run_pipeline.id] = watched
        for oldest in [*siblings][:-MAX_SIBLINGS]:
            del siblings[oldest]
        self._healthy[settings] = siblings
        self._healthy = {key: members for key, members in self._healthy.items() if members}

    def _ended_well(self, watched: WatchedRun) -> bool:
        log = watched.run_pipeline.log
        if log.stopped or log.ending is None or log.ending.outcome is not EndKind.FINISHED:
            return False
        stored = self._store.incidents(run=watched.run_pipeline.id)
        incidents = [*stored, *watched.run_pipeline.incidents.open()]
        return not any(
            incident.inhibited_by is None
            and (incident.severity >= Severity.WARNING or incident.detector == RULE)
            for incident in incidents
        )

    def _judge_beside_siblings(self, watched: WatchedRun, means: Means) -> Sequence[Change]:
        run_pipeline = watched.run_pipeline
        progress = _progress_of_plan(watched)
        healthy = self._healthy.get(_settings_of(watched)) or WeakValueDictionary()
        candidates = [candidate for candidate in healthy.values() if _is_over(candidate)]
        if watched.judged_at == progress or len(candidates) < MIN_SIBLINGS:
            return ()
        watched.judged_at = progress
        run_pipelines = [compared.run_pipeline for compared in (*candidates, watched)]
        trainings = trainings_of({compared.id: compared.log.metadata for compared in run_pipelines})
        run = sibling_of(
            run_pipeline.log, means, trainings[run_pipeline.id], healthy=True, whole=_is_over(watched)
        )
        possible_siblings = [
            sibling_of(other.log, other.means, trainings[other.id], healthy=True)
            for other in (candidate.run_pipeline for candidate in candidates if not candidate.failures)
            if other.means is not None
        ]
        siblings = [other for other in possible_siblings if are_siblings(run.fingerprint, other.fingerprint)]
        comparison = among_siblings(run, siblings)
        if comparison is None:
            return ()
        run_pipeline.bands = comparison.bands
        log = run_pipeline.log
        verdicts = self._pipeline.checking.beside(RULE, run_pipeline.id, log.metadata, log.known, comparison)
        return run_pipeline.incidents.advance(verdicts)


def _is_over(watched: WatchedRun) -> bool:
    return watched.finalized is not None and watched.finalized[0] == watched.run_pipeline.log.metadata.points


def _settings_of(watched: WatchedRun) -> Settings:
    """Return the settings that siblings share. They are computed again when a log states further ones."""
    config = watched.run_pipeline.log.metadata.config
    if watched.settings is None or watched.settings[0] != len(config):
        values = {name: setting.value for name, setting in config.items()}
        watched.settings = len(config), Fingerprint.from_settings(None, (), values).settings
    return watched.settings[1]


def _progress_of_plan(watched: WatchedRun) -> int:
    """Return how far a run is in points of its plan; without a plan, on a logarithmic scale of its steps."""
    log = watched.run_pipeline.log
    step = log.metadata.last_step or 0
    if _is_over(watched):
        return COURSE_POINTS + 1
    if log.planned_steps:
        return int(step * COURSE_POINTS / log.planned_steps)
    return int(math.log1p(step) * _STEPS_PER_E_FOLD)
