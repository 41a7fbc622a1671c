"""Compares the runs of a replay with their siblings, once all of them are read."""

from collections.abc import Collection, Sequence
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
    pipeline: Pipeline,
    runs: Sequence[JudgedRun],
    baseline: Sequence[JudgedRun] = (),
    compared: Collection[str] = (),
) -> None:
    """Add to each run its comparison with its siblings: the healthy runs of its program, or a baseline.

    Earlier and later runs count equally. ``compared`` are the ids of runs that were compared before.
    """
    if RULE not in pipeline.detectors:
        return
    subjects = _siblings(runs)
    baselines = _siblings(baseline)
    healthy = healthy_siblings(subjects)
    for run, subject in zip(runs, subjects, strict=True):
        if run.run_pipeline.id in compared:
            continue
        guard = Guard()
        siblings = baselines or healthy(subject.fingerprint)
        log = run.run_pipeline.log
        comparison = guard(log.run, "siblings", partial(among_siblings, subject, siblings))
        run.row_counts[RULE, "" if comparison else SkipReason.NO_SIBLINGS.value] += 1
        run.among = comparison
        if comparison is not None:
            verdicts = pipeline.checking.beside(
                RULE, run.run_pipeline.id, log.metadata, log.known, comparison
            )
            changes = guard(log.run, "siblings", partial(run.run_pipeline.incidents.advance, verdicts)) or ()
            run.changes += changes
            run.incidents |= {change.incident.id: change.incident for change in changes}


def _siblings(runs: Sequence[JudgedRun]) -> list[Sibling]:
    trainings = trainings_of({run.run_pipeline.id: run.run_pipeline.log.metadata for run in runs})
    return [sibling(run, run.means, trainings[run.run_pipeline.id]) for run in runs if run.means is not None]


def sibling(run: JudgedRun, means: Means, training: str) -> Sibling:
    """Return the run as others are compared with it; ``training`` is the first log of its training."""
    log = run.run_pipeline.log
    ended_well = log.ending is None or log.ending.outcome is EndKind.FINISHED
    healthy = run.stopped is None and run.worst < Severity.WARNING and ended_well
    return sibling_of(log, means, training, healthy=healthy)


def sibling_of(log: RunLog, means: Means, training: str, *, healthy: bool, whole: bool = True) -> Sibling:
    """Return the run of a log as others are compared with it. A run that goes on is not ``whole``."""
    understanding = log.understanding()
    settings = {name: setting.value for name, setting in log.metadata.config.items()}
    return Sibling(
        name=log.name,
        training=training,
        fingerprint=Fingerprint.from_settings(understanding.framework, understanding.tags, settings),
        signals=understanding.signals,
        means=means,
        plan=log.planned_steps,
        last_step=log.metadata.last_step or 0,
        healthy=healthy,
        whole=whole,
    )
