"""Says which runs are of one training, and how much each log states, to find duplicates of incidents."""

from collections.abc import Callable, Iterable
from functools import cache

from sentinel.incidents.duplicates import KnownIncidents
from sentinel.incidents.incident import Incident
from sentinel.run_pipeline import RunPipeline
from sentinel.runs.log import RunLog
from sentinel.runs.metadata import RunMetadata
from sentinel.runs.training_groups import TrainingEvidence, is_same_training, trace_of

Traces = Callable[[str], TrainingEvidence]
"""What the log of the run with this id says of its training."""


def traces_of(
    run_pipelines: Iterable[RunPipeline], remembered: Callable[[str], RunMetadata] = lambda _: RunMetadata()
) -> Traces:
    """Return what logs say of their trainings; ``remembered`` gives the facts of a run without a pipeline."""
    logs = {run_pipeline.id: run_pipeline.log for run_pipeline in run_pipelines}
    return cache(lambda run: trace_of(run, logs[run].metadata if run in logs else remembered(run)))


def known_incidents(
    incidents: Iterable[Incident], run_pipelines: Iterable[RunPipeline], traces: Traces
) -> KnownIncidents:
    """Return the incidents of all runs.

    The better informed of two logs is the one with more signals, then with more settings. Of a run without a
    pipeline only earlier decisions are known, so nothing waits for it.
    """
    logs = {run_pipeline.id: run_pipeline.log for run_pipeline in run_pipelines}

    @cache
    def informed(run: str) -> tuple[int, int]:
        log = logs.get(run)
        return how_informed(log) if log else (-1, 0)

    return KnownIncidents(
        incidents,
        lambda run, other, surely: is_same_training(traces(run), traces(other), surely),
        informed,
        traces,
    )


def how_informed(log: RunLog) -> tuple[int, int]:
    """Return how many signals and how many settings a log has."""
    return len(log.understanding().signals), len(log.metadata.config)
