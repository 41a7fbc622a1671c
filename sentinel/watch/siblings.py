"""Holds the runs under watch against their siblings, whenever they reach a new place of their plan.

The siblings of a run are those that ended well under the same watch. Unlike a replay, a watch asks for equal
settings: it cannot know whether a setting that differs is the first one of a sweep.
"""

import math
from collections.abc import Sequence
from functools import partial
from weakref import WeakValueDictionary

from sentinel.common.fault_isolation import Guard
from sentinel.comparison.band import FEWEST, MOST, PLACES
from sentinel.comparison.fingerprint import Fingerprint, are_siblings
from sentinel.comparison.means import Means
from sentinel.comparison.siblings import among_siblings
from sentinel.detectors.severity import Severity
from sentinel.incidents.incident import Change
from sentinel.pipeline import Pipeline
from sentinel.replays.siblings import RULE, sibling_of
from sentinel.runs.training_groups import trainings_of
from sentinel.sources.base import EndKind
from sentinel.storage.store import Store
from sentinel.watch.watched import Settings, WatchedRun


class SiblingWatch:
    """The bands of the runs under one watch. They rest on what each run keeps of its course."""

    def __init__(self, pipeline: Pipeline, store: Store) -> None:
        self._pipeline = pipeline
        self._store = store
        self._healthy: dict[Settings, WeakValueDictionary[str, WatchedRun]] = {}  # the last `MOST`, by run id

    def news(self, runs: Sequence[WatchedRun], guard: Guard) -> dict[str, Sequence[Change]]:
        """Return the changes by run id. Runs that were over when they were first seen only count as
        siblings.
        """
        if RULE not in self._pipeline.detectors:
            return {}
        well = [(one, one.run_pipeline.means) for one in runs if one.run_pipeline.means and not one.failures]
        changes: dict[str, Sequence[Change]] = {}
        for watched, means in well if self._healthy else ():
            if not watched.past:
                judge = partial(self._judge, watched, means)
                changes[watched.run_pipeline.id] = (
                    guard(watched.run_pipeline.log.run, "siblings", judge) or ()
                )
        for watched, _ in well:
            guard(watched.run_pipeline.log.run, "siblings", partial(self._note, watched))
        return changes

    def _note(self, watched: WatchedRun) -> None:
        """Note whether a run is a sibling for others, if that may have changed."""
        over = watched.run_pipeline.log.metadata.points if _is_over(watched) else None
        if watched.sibling_at == over:
            return
        watched.sibling_at = over
        settings = _settings_of(watched)
        of_program = self._healthy.get(settings) or WeakValueDictionary()
        of_program.pop(watched.run_pipeline.id, None)
        if over is not None and self._ended_well(watched):
            of_program[watched.run_pipeline.id] = watched
        for oldest in [*of_program][:-MOST]:
            del of_program[oldest]
        self._healthy[settings] = of_program
        self._healthy = {program: known for program, known in self._healthy.items() if known}

    def _ended_well(self, watched: WatchedRun) -> bool:
        log = watched.run_pipeline.log
        if log.stopped or log.ending is None or log.ending.outcome is not EndKind.FINISHED:
            return False
        known = [*self._store.incidents(run=watched.run_pipeline.id), *watched.run_pipeline.incidents.open()]
        own = [incident for incident in known if incident.inhibited_by is None]
        return not any(one.severity >= Severity.WARNING or one.detector == RULE for one in own)

    def _judge(self, watched: WatchedRun, means: Means) -> Sequence[Change]:
        run_pipeline = watched.run_pipeline
        progress = _progress(watched)
        known = [one for one in self._healthy.get(_settings_of(watched), {}).values() if _is_over(one)]
        if watched.judged_at == progress or len(known) < FEWEST:
            return ()
        watched.judged_at = progress
        trainings = trainings_of(
            {one.run_pipeline.id: one.run_pipeline.log.metadata for one in (*known, watched)}
        )
        own = sibling_of(
            run_pipeline.log, means, trainings[run_pipeline.id], healthy=True, whole=_is_over(watched)
        )
        others = [
            sibling_of(one.run_pipeline.log, kept, trainings[one.run_pipeline.id], healthy=True)
            for one in known
            if (kept := one.run_pipeline.means) is not None and not one.failures
        ]
        found = among_siblings(own, [one for one in others if are_siblings(own.fingerprint, one.fingerprint)])
        if found is None:
            return ()
        run_pipeline.bands = found.bands
        log = run_pipeline.log
        checking = self._pipeline.checking
        return run_pipeline.incidents.advance(
            checking.beside(RULE, run_pipeline.id, log.metadata, log.known, found)
        )


def _is_over(watched: WatchedRun) -> bool:
    return watched.finalized == watched.run_pipeline.log.metadata.points


def _settings_of(watched: WatchedRun) -> Settings:
    """Return the settings that siblings share, kept until further ones are stated."""
    config = watched.run_pipeline.log.metadata.config
    if watched.settings is None or watched.settings[0] != len(config):
        stated = {name: told.value for name, told in config.items()}
        watched.settings = len(config), Fingerprint.of(None, (), stated).settings
    return watched.settings[1]


def _progress(watched: WatchedRun) -> int:
    """Return how far a run is in places of its plan; without a plan, in steps of a fiftieth of what it has
    done.
    """
    log = watched.run_pipeline.log
    step = log.metadata.last_step or 0
    if _is_over(watched):
        return PLACES + 1
    return int(step * PLACES / log.planned_steps) if log.planned_steps else int(math.log1p(step) * 50)
