"""Compares the runs of a replay: with one another, and with a baseline."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from sentinel.comparison.baseline import against
from sentinel.comparison.compare import compare
from sentinel.comparison.measures import ComparedRun, Comparison, Finding
from sentinel.detectors.severity import Severity
from sentinel.replays.judged import JudgedRun


def compared(runs: Sequence[JudgedRun]) -> Sequence[Comparison]:
    """Return the comparisons of runs that differ in one setting or in the seed alone."""
    return compare(_subjects(runs))


def against_baseline(runs: Sequence[JudgedRun], baselines: Sequence[JudgedRun]) -> Iterator[Comparison]:
    """Yield each run's comparison with all baselines, and whether the baselines have incidents."""
    baseline_ids = {run.run_pipeline.log.run.id for run in baselines}
    compared_baselines = _subjects(baselines)
    doubtful = {
        incident.detector
        for run in baselines
        for incident in run.own
        if incident.severity >= Severity.WARNING
    }
    doubts = (
        [Finding(f"the baseline itself has incidents: {', '.join(sorted(doubtful))}")] if doubtful else []
    )
    for subject in _subjects([run for run in runs if run.run_pipeline.log.run.id not in baseline_ids]):
        comparison = against(subject, compared_baselines)
        yield replace(comparison, findings=[*comparison.findings, *doubts])


def _subjects(runs: Sequence[JudgedRun]) -> list[ComparedRun]:
    return [
        ComparedRun(
            run.run_pipeline.log.name,
            {name: setting.value for name, setting in run.run_pipeline.log.metadata.config.items()},
            run.run_pipeline.log.understanding().signals,
            run.means,
        )
        for run in runs
        if run.means is not None
    ]
