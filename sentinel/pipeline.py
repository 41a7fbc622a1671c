"""The whole flow on one page, from logs to decisions about notifications, for many runs at once.

    sources  ->  points  ->  signals  ->  findings  ->  incidents  ->  notifications
    poll         ingest                   judge         advance        route

`watch` commits and delivers the notifications, and `replay` reports them; there is no other difference. A
callback in a training may drive the pipeline as well. This page knows no format, no rule and no sink.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from hashlib import sha256
from importlib.metadata import version
from socket import gethostname
from typing import Any

from msgspec.structs import replace

from sentinel.common.fault_isolation import Guard
from sentinel.common.processor_budget import Budget, unlimited
from sentinel.detection.engine import DetectorFailed, Judging, log_failure
from sentinel.detectors.api import Declaration
from sentinel.incidents.incident import Change
from sentinel.incidents.lifecycle import IncidentTracker
from sentinel.plugins import packages_with_plugins
from sentinel.run_pipeline import Advance, RunPipeline
from sentinel.runs.console import ConsoleState
from sentinel.runs.end_inference import infer_end
from sentinel.runs.inactivity import Inactivity
from sentinel.runs.ingested import NOTHING, Ingested
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
    is what notifications call the machine on which logs lie, by default this one. ``budget`` limits what each
    stage may cost for one run.
    """

    def __init__(
        self,
        detectors: Iterable[Declaration],
        parameters: Mapping[str, Mapping[str, Any]],
        signals: Mapping[str, str],
        failed: DetectorFailed = log_failure,
        host: str = "",
        budget: Budget = unlimited,
    ) -> None:
        self.detectors = {detector.name: detector for detector in detectors}
        self._parameters = parameters
        self._host = host
        self._budget = budget
        self._specs = series_specs(self.detectors.values())
        self._naming = Naming(signals, self._specs.requested)
        self._judging = Judging(self.detectors.values(), parameters, failed)
        self.checking = self._judging.checking
        self._signals = signals

    def track(self, run: Run, name: str) -> RunPipeline:
        """Return a run in the pipeline, at the start of its log."""
        tracker = IncidentTracker(run.id, self.detectors, self._parameters)
        console = ConsoleState() if self.checking.checks else None
        log = RunLog(run, name, self._naming, self._specs, console=console)
        return RunPipeline(log, tracker, lambda: self._layout, self._host, gethostname())

    @cached_property
    def _layout(self) -> str:
        """What identifies the detectors and the names of tags; every state holds it."""
        releases = (version("training-sentinel"), *packages_with_plugins()) if self._specs else ("",)
        has_checks = bool(self.checking.checks)
        shape = repr((*releases, layout(self._specs), has_checks, sorted(self._signals.items())))
        return sha256(shape.encode("utf-8", "backslashreplace")).hexdigest()

    def advance(
        self,
        run_pipelines: Sequence[RunPipeline],
        max_points: int = MAX_POINTS,
        read_at: float = math.nan,
        *,
        are_over: bool = False,
    ) -> list[Advance]:
        """Poll some runs and judge what is new. Return one advance for each run, in their order.

        ``read_at`` is the time awake of a watch, which counts where a log has no times; NaN in a replay. Runs
        that ``are_over`` are finalized as soon as they are read to their end, which saves a second judging.
        Whatever a run holds, this does not raise and does not change the results of another run.
        """
        limit = max_points // max(len(run_pipelines), 1)
        guard = Guard(budget=self._budget)
        news = [run_pipeline.ingest(limit, read_at, guard) for run_pipeline in run_pipelines]
        undone = [
            run_pipeline.undo_finalize(guard) if ingested.points else ()
            for run_pipeline, ingested in zip(run_pipelines, news, strict=True)
        ]
        over = {
            run_pipeline.id
            for run_pipeline, ingested in zip(run_pipelines, news, strict=True)
            if are_over and not ingested.more
        }
        advances = self._judge(run_pipelines, news, over, guard)
        return [
            replace(advance, changes=[*changes, *advance.changes])
            for advance, changes in zip(advances, undone, strict=True)
        ]

    def finalize(self, run_pipelines: Sequence[RunPipeline]) -> list[Advance]:
        """Judge runs that are over once more. Return one advance for each run, in their order.

        If such a run continues after all, the next `advance` undoes the changes.
        """
        over = {run_pipeline.id for run_pipeline in run_pipelines}
        return self._judge(run_pipelines, [NOTHING] * len(run_pipelines), over, Guard(budget=self._budget))

    def _judge(
        self,
        run_pipelines: Sequence[RunPipeline],
        news: Sequence[Ingested],
        over: Collection[str],
        guard: Guard,
    ) -> list[Advance]:
        """Judge what is new in some runs, and apply the verdicts to their incidents: first those on the news,
        then those on the end of each run that is ``over``.
        """
        of_runs = self._judging.check(run_pipelines, news, guard)
        ended = [
            run_pipeline
            for run_pipeline in run_pipelines
            if run_pipeline.id in over and run_pipeline.id not in guard.failures
        ]
        ends = {run_pipeline.id: run_pipeline.end(guard) for run_pipeline in ended}
        of_ends = self._judging.check(ended, [*ends.values()], guard, final=True)
        news = [
            ingested.followed_by(ends.get(run_pipeline.id, NOTHING))
            for run_pipeline, ingested in zip(run_pipelines, news, strict=True)
        ]
        of_rows, of_last_rows, row_counts = self._judging.judge(run_pipelines, news, guard)
        advances = []
        for run_pipeline, ingested in zip(run_pipelines, news, strict=True):
            id_ = run_pipeline.id
            changes = [*run_pipeline.apply([*of_rows[id_], *of_runs[id_]], guard)]
            if id_ in ends:
                last_verdicts = [*of_last_rows[id_], *of_ends[id_]]
                changes += run_pipeline.apply(last_verdicts, guard, final=True)
            failure = guard.failures.get(id_)
            advances.append(Advance(run_pipeline, ingested, changes, failure, row_counts[id_]))
        return advances

    def review(self, run_pipeline: RunPipeline, inactivity: Inactivity) -> list[Change]:
        """Return the changes that time alone brings to a run under watch; see `RunChecks.segments`."""
        infer_end(run_pipeline.log, inactivity.seconds)
        return run_pipeline.incidents.advance(self.checking.segments(run_pipeline.log, inactivity=inactivity))

    def report_failure(self, run_pipeline: RunPipeline, reason: str) -> Sequence[Change]:
        """Return the incident that says which stage failed on a run; none if that fails as well."""
        findings = self.checking.segments(run_pipeline.log, failure=reason)
        report = partial(run_pipeline.incidents.advance, findings)
        return Guard(budget=self._budget)(run_pipeline.log.run, "reporting", report) or ()
