"""Judges what is new in some runs: the rows of all of them at once, and then each run as a whole."""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sentinel.common.fault_isolation import Guard
from sentinel.common.text import clean_text
from sentinel.detection.run_checks import RunChecks
from sentinel.detectors.api import Declaration
from sentinel.detectors.run_checks import RunCheck
from sentinel.incidents.verdict_merge import Segment
from sentinel.run_pipeline import RunPipeline
from sentinel.runs.inactivity import Inactivity
from sentinel.runs.ingested import Arrived, Ingested

_log = logging.getLogger(__name__)

DetectorFailed = Callable[[str, str, BaseException], None]
"""Called when a detector raises on a run, with the detector's name, the run's id and the error."""

Verdicts = dict[str, list[Segment]]
"""By the id of the run."""

RowCounts = dict[str, Counter[tuple[str, str]]]
"""By the id of the run: how many rows the detectors judged or held back; see `RowDetection`."""


def log_failure(detector: str, run: str, error: BaseException) -> None:
    """Log that a detector raised on a run."""
    what = clean_text(f"{type(error).__name__}: {error}", 300)
    _log.error("detector %s failed on %s: %s", detector, clean_text(run), what)


class Judging:
    """Detectors with the thresholds that differ from the defaults. ``failed`` hears of each that raises."""

    def __init__(
        self,
        detectors: Iterable[Declaration],
        parameters: Mapping[str, Mapping[str, Any]],
        failed: DetectorFailed,
    ) -> None:
        self._parameters = parameters
        self._failed = failed
        checks = [detector for detector in detectors if isinstance(detector, RunCheck)]
        self.checking = RunChecks(checks, parameters, failed)

    def judge(
        self,
        run_pipelines: Sequence[RunPipeline],
        news: Sequence[Ingested],
        guard: Guard,
        *,
        concluded: bool = False,
    ) -> tuple[Verdicts, RowCounts]:
        """Return the verdicts on what is new in each run. The runs are over if they are ``concluded``."""
        verdicts, looked = self._rows(run_pipelines, [absorbed.rows for absorbed in news], guard)
        for run_pipeline, absorbed in zip(run_pipelines, news, strict=True):
            check = partial(self._check, run_pipeline, absorbed, concluded)
            findings = guard(run_pipeline.log.run, "run checks", check) or ()
            verdicts.setdefault(run_pipeline.id, []).extend(findings)
        return verdicts, looked

    def _check(self, run_pipeline: RunPipeline, news: Ingested, concluded: bool) -> list[Segment]:
        """Return the findings of the run checks, if there is something new that they judge."""
        grew = news.points > 0
        if not (concluded or news.tells_of_run or (grew and run_pipeline.incidents.watches_run)):
            return []
        silence = Inactivity(0.0) if grew else None
        return [*self.checking.segments(run_pipeline.log, news, silence=silence, concluded=concluded)]

    def _rows(
        self, run_pipelines: Sequence[RunPipeline], arrived: Sequence[Sequence[Arrived]], guard: Guard
    ) -> tuple[Verdicts, RowCounts]:
        looked: RowCounts = defaultdict(Counter)
        if not any(arrived):
            return {}, looked
        from sentinel.detection.row_detection import RowDetection  # with polars; a listing judges nothing

        def stretches(some: Sequence[tuple[RunPipeline, Sequence[Arrived]]]) -> list[Segment]:
            detection = RowDetection(self._parameters, self._failed)
            awake = {key for run_pipeline, _ in some for key in run_pipeline.incidents.tracked_keys()}
            stretches = [*detection.segments([row for _, rows in some for row in rows], awake)]
            looked.update(detection.row_counts)
            return stretches

        runs = [run_pipeline.log.run for run_pipeline in run_pipelines]
        pairs = [*zip(run_pipelines, arrived, strict=True)]
        verdicts: Verdicts = {}
        for rows in guard.batch(runs, "judging", stretches, pairs):
            verdicts.setdefault(rows[0].key.run, []).append(rows)
        return verdicts, looked
