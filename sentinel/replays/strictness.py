"""Judges runs of an archive once more with a stricter detector."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from sentinel.calibration.page_statistics import Stricter, Telling
from sentinel.calibration.thresholds import Judge
from sentinel.config.file import Config
from sentinel.pipeline import Pipeline
from sentinel.replays.replaying import judged, simulate_notifications
from sentinel.runs.log import RunOverview
from sentinel.sources.base import Run
from sentinel.sources.discovery import common_path, discover, run_name
from sentinel.sources.location import Location

_MAX_RUNS_AT_ONCE = 192  # so that memory does not grow with the number of runs


def with_factors(paths: Sequence[Location], config: Config) -> Judge:
    """Return a function that judges named runs below some paths, which are searched once. Results are stored
    nowhere, so they cannot be mixed up with others.
    """
    policies = config.policies

    @cache
    def runs_by_name() -> Mapping[str, Run]:
        base = common_path(paths)
        discovery = discover(paths, are_over=True, forms=config.forms)
        return {run_name(run, base): run for run in discovery.runs}

    def judge(change: Stricter, run_names: Sequence[str]) -> Iterator[tuple[RunOverview, Telling]]:
        table = {**config.detectors.get(change.detector, {}), "stricter": change.factor}
        stricter = config.model_copy(update={"detectors": {**config.detectors, change.detector: table}})
        pipeline = Pipeline(stricter.enabled_detectors, stricter.parameters, stricter.signals)
        existing = [(runs_by_name()[name], name) for name in run_names if name in runs_by_name()]
        for first_run in range(0, len(existing), _MAX_RUNS_AT_ONCE):
            runs = judged(pipeline, existing[first_run : first_run + _MAX_RUNS_AT_ONCE])
            simulate_notifications(runs, policies)
            yield from ((run.seen, run.notifications) for run in runs)

    return judge
