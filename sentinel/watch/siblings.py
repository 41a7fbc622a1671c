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
from sentinel.watch.watched import Settings, Watched


class SiblingWatch:
    """The bands of the runs under one watch. They rest on what each run keeps of its course."""

    def __init__(self, pipeline: Pipeline, store: Store) -> None:
        self._pipeline = pipeline
        self._store = store
        self._healthy: dict[Settings, WeakValueDictionary[str, Watched]] = {}  # the last `MOST`, by run id

    def news(self, runs: Sequence[Watched], guard: Guard) -> dict[str, Sequence[Change]]:
        """The changes by run id. Runs that were over when they were first seen only count as siblings."""
        if RULE not in self._pipeline.detectors:
            return {}
        well = [(one, one.tracker.means) for one in runs if one.tracker.means and not one.failures]
        changes: dict[str, Sequence[Change]] = {}
        for watched, means in well if self._healthy else ():
            if not watched.past:
                judge = partial(self._judge, watched, means)
                changes[watched.tracker.id] = guard(watched.tracker.log.run, "siblings", judge) or ()
        for watched, _ in well:
            guard(watched.tracker.log.run, "siblings", partial(self._note, watched))
        return changes

    def _note(self, watched: Watched) -> None:
        """Note whether a run is a sibling for others, if that may have changed."""
        over = watched.tracker.log.facts.points if _is_over(watched) else None
        if watched.sibling_at == over:
            return
        watched.sibling_at = over
        settings = _settings_of(watched)
        of_program = self._healthy.get(settings) or WeakValueDictionary()
        of_program.pop(watched.tracker.id, None)
        if over is not None and self._ended_well(watched):
            of_program[watched.tracker.id] = watched
        for oldest in [*of_program][:-MOST]:
            del of_program[oldest]
        self._healthy[settings] = of_program
        self._healthy = {program: known for program, known in self._healthy.items() if known}

    def _ended_well(self, watched: Watched) -> bool:
        log = watched.tracker.log
        if log.stopped or log.ending is None or log.ending.outcome is not EndKind.FINISHED:
            return False
        known = [*self._store.incidents(run=watched.tracker.id), *watched.tracker.book.open()]
        own = [incident for incident in known if incident.inhibited_by is None]
        return not any(one.severity >= Severity.WARNING or one.detector == RULE for one in own)

    def _judge(self, watched: Watched, means: Means) -> Sequence[Change]:
        tracker = watched.tracker
        progress = _progress(watched)
        known = [one for one in self._healthy.get(_settings_of(watched), {}).values() if _is_over(one)]
        if watched.judged_at == progress or len(known) < FEWEST:
            return ()
        watched.judged_at = progress
        trainings = trainings_of({one.tracker.id: one.tracker.log.facts for one in (*known, watched)})
        own = sibling_of(tracker.log, means, trainings[tracker.id], healthy=True, whole=_is_over(watched))
        others = [
            sibling_of(one.tracker.log, kept, trainings[one.tracker.id], healthy=True)
            for one in known
            if (kept := one.tracker.means) is not None and not one.failures
        ]
        found = among_siblings(own, [one for one in others if are_siblings(own.fingerprint, one.fingerprint)])
        if found is None:
            return ()
        tracker.bands = found.bands
        log = tracker.log
        checking = self._pipeline.checking
        return tracker.book.advance(checking.beside(RULE, tracker.id, log.facts, log.known, found))


def _is_over(watched: Watched) -> bool:
    return watched.concluded == watched.tracker.log.facts.points


def _settings_of(watched: Watched) -> Settings:
    """The settings that siblings share, kept until further ones are stated."""
    config = watched.tracker.log.facts.config
    if watched.settings is None or watched.settings[0] != len(config):
        stated = {name: told.value for name, told in config.items()}
        watched.settings = len(config), Fingerprint.of(None, (), stated).settings
    return watched.settings[1]


def _progress(watched: Watched) -> int:
    """How far a run is in places of its plan; without a plan, in steps of a fiftieth of what it has done."""
    log = watched.tracker.log
    step = log.facts.last_step or 0
    if _is_over(watched):
        return PLACES + 1
    return int(step * PLACES / log.planned_steps) if log.planned_steps else int(math.log1p(step) * 50)
