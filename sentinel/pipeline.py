"""The whole flow on one screen, from logs to decisions about notifications, for many runs at once.

    sources  ->  points  ->  signals  ->  findings  ->  incidents  ->  outcomes
    poll         absorb                   judge         advance        tell

`watch` commits and delivers the outcomes, and `replay` reports them; there is no other difference. A callback
in a training may drive the pipeline as well. This page knows no format, no rule and no sink.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from socket import gethostname
from typing import Any

from sentinel.common.fault_isolation import Guard
from sentinel.detection.engine import DetectorFailed, Judging, log_failure
from sentinel.detectors.api import Declaration
from sentinel.incidents.incident import Change
from sentinel.incidents.lifecycle import IncidentTracker
from sentinel.plugins import packages_with_plugins
from sentinel.run_pipeline import Advance, RunPipeline
from sentinel.runs.console import ConsoleState
from sentinel.runs.end_inference import infer_end
from sentinel.runs.inactivity import Inactivity
from sentinel.runs.log import RunLog
from sentinel.series.naming import Naming
from sentinel.series.specs import layout, series_specs
from sentinel.sources.base import Run

MAX_POINTS = 300_000
"""About how many points are read at once, over all runs. It bounds memory and does not affect findings."""


class Pipeline:
    """Reads and judges runs.

    ``parameters`` are the thresholds by detector that differ from the defaults. ``signals`` gives the meaning
    of the user's own tags. ``failed`` is called when a detector raises, which is logged by default. ``host``
    is what notifications call the machine on which logs lie, by default this one.
    """

    def __init__(
        self,
        detectors: Iterable[Declaration],
        parameters: Mapping[str, Mapping[str, Any]],
        signals: Mapping[str, str],
        failed: DetectorFailed = log_failure,
        host: str = "",
    ) -> None:
        self.detectors = {detector.name: detector for detector in detectors}
        self._parameters = parameters
        self._host = host
        self._views = series_specs(self.detectors.values())
        self._naming = Naming(signals, self._views.asked)
        self._judging = Judging(self.detectors.values(), parameters, failed)
        self.checking = self._judging.checking
        releases = (version("training-sentinel"), *packages_with_plugins()) if self._views else ("",)
        shape = repr((*releases, layout(self._views), bool(self.checking.checks), sorted(signals.items())))
        self._layout = sha256(shape.encode("utf-8", "backslashreplace")).hexdigest()  # every state holds it

    def track(self, run: Run, name: str) -> RunPipeline:
        """Return a new tracker for a run, at the start of its log."""
        tracker = IncidentTracker(run.id, self.detectors, self._parameters)
        console = ConsoleState() if self.checking.checks else None
        log = RunLog(run, name, self._naming, self._views, console=console)
        return RunPipeline(log, tracker, self._layout, self._host, gethostname())

    def advance(
        self,
        run_pipelines: Sequence[RunPipeline],
        max_points: int = MAX_POINTS,
        read_at: float = math.nan,
    ) -> list[Advance]:
        """Poll some runs and judge what is new. Gives one advance for each run, in their order.

        ``read_at`` is the time awake of a watch, which counts where a log has no times; NaN in a replay.
        Whatever a run holds, this does not raise and does not change the results of another run.
        """
        limit = max_points // max(len(run_pipelines), 1)
        guard = Guard()
        news = [run_pipeline.ingest(limit, read_at, guard) for run_pipeline in run_pipelines]
        past = [
            (guard(run_pipeline.log.run, "going on", run_pipeline.incidents.undo_finalize) or ())
            if absorbed.points
            else ()
            for run_pipeline, absorbed in zip(run_pipelines, news, strict=True)
        ]
        verdicts, looked = self._judging.judge(run_pipelines, news, guard)
        changes = [
            [*back, *run_pipeline.apply(verdicts[run_pipeline.id], guard)]
            for run_pipeline, back in zip(run_pipelines, past, strict=True)
        ]
        return [
            Advance(run_pipeline, absorbed, new, guard.failures.get(run_pipeline.id), looked[run_pipeline.id])
            for run_pipeline, absorbed, new in zip(run_pipelines, news, changes, strict=True)
        ]

    def finalize(self, run_pipelines: Sequence[RunPipeline]) -> list[Advance]:
        """Judge runs that are over once more. Gives one advance for each run, in their order.

        If such a run goes on after all, the next `advance` takes back what this brought about.
        """
        guard = Guard()
        news = [run_pipeline.end(guard) for run_pipeline in run_pipelines]
        verdicts, looked = self._judging.judge(run_pipelines, news, guard, concluded=True)
        changes = [
            run_pipeline.apply(verdicts[run_pipeline.id], guard, concluded=True)
            for run_pipeline in run_pipelines
        ]
        return [
            Advance(run_pipeline, absorbed, new, guard.failures.get(run_pipeline.id), looked[run_pipeline.id])
            for run_pipeline, absorbed, new in zip(run_pipelines, news, changes, strict=True)
        ]

    def review(self, run_pipeline: RunPipeline, silence: Inactivity) -> list[Change]:
        """Return the changes that time alone brings to a run under watch; see `RunChecks.segments`."""
        infer_end(run_pipeline.log, silence.seconds)
        return run_pipeline.incidents.advance(self.checking.segments(run_pipeline.log, silence=silence))

    def report_failure(self, run_pipeline: RunPipeline, reason: str) -> Sequence[Change]:
        """Return the incident that says which stage failed on a run; none if that fails as well."""
        checked = self.checking.segments(run_pipeline.log, failure=reason)
        return (
            Guard()(run_pipeline.log.run, "reporting", partial(run_pipeline.incidents.advance, checked)) or ()
        )
