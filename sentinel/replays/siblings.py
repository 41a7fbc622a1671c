"""Holds the runs of a replay against their siblings, once all of them are read."""

from collections.abc import Sequence
from functools import partial

from sentinel.common.fault_isolation import Guard
from sentinel.comparison.fingerprint import Fingerprint
from sentinel.comparison.means import Means
from sentinel.comparison.siblings import Sibling, among_siblings, healthy_siblings
from sentinel.detectors.runtime.worse_than_siblings import RULE
from sentinel.detectors.severity import Severity
from sentinel.detectors.skip_reason import SkipReason
from sentinel.pipeline import Pipeline
from sentinel.replays.judged import JudgedRun
from sentinel.runs.log import RunLog
from sentinel.runs.training_groups import trainings_of
from sentinel.sources.base import EndKind


def compare_siblings(
    pipeline: Pipeline, runs: Sequence[JudgedRun], baseline: Sequence[JudgedRun] = ()
) -> None:
    """Add to each run what its siblings say of it: the healthy runs of its program, or those of a baseline.

    Earlier and later runs count alike.
    """
    if RULE not in pipeline.detectors:
        return
    known = _siblings(runs)
    given = _siblings(baseline)
    healthy = healthy_siblings(known)
    for run, own in zip(runs, known, strict=True):
        guard = Guard()
        near = given or healthy(own.fingerprint)
        found = guard(run.run_pipeline.log.run, "siblings", partial(among_siblings, own, near))
        run.row_counts[RULE, "" if found else SkipReason.NO_SIBLINGS.value] += 1
        run.among = found
        if found is not None:
            log = run.run_pipeline.log
            said = pipeline.checking.beside(RULE, run.run_pipeline.id, log.metadata, log.known, found)
            changes = guard(log.run, "siblings", partial(run.run_pipeline.incidents.advance, said)) or ()
            run.changes += changes
            run.incidents |= {change.incident.id: change.incident for change in changes}


def _siblings(runs: Sequence[JudgedRun]) -> list[Sibling]:
    trainings = trainings_of({run.run_pipeline.id: run.run_pipeline.log.metadata for run in runs})
    return [sibling(run, run.means, trainings[run.run_pipeline.id]) for run in runs if run.means is not None]


def sibling(run: JudgedRun, means: Means, training: str) -> Sibling:
    """Return the run as others are compared with it; ``training`` is the first log of its training."""
    log = run.run_pipeline.log
    well = log.ending is None or log.ending.outcome is EndKind.FINISHED
    healthy = run.stopped is None and run.worst < Severity.WARNING and well
    return sibling_of(log, means, training, healthy=healthy)


def sibling_of(log: RunLog, means: Means, training: str, *, healthy: bool, whole: bool = True) -> Sibling:
    """Return the same of a log. A run that goes on is not ``whole``."""
    read = log.understanding()
    return Sibling(
        name=log.name,
        training=training,
        fingerprint=Fingerprint.from_settings(
            read.framework, read.tags, {name: told.value for name, told in log.metadata.config.items()}
        ),
        signals=read.signals,
        means=means,
        plan=log.planned_steps,
        last_step=log.metadata.last_step or 0,
        healthy=healthy,
        whole=whole,
    )
